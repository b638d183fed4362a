import BLE
import FoundationEssentials
import GRPCCore
import SwiftProtobuf

extension Pandora_Connection {
    /// The connection that the device knows by a number. The number is the value of the cookie, in big-endian order.
    init(_ number: Device.ConnectionNumber) {
        self.init()
        cookie.value = Data((0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) })
    }

    /// The device's number of the connection.
    var number: Device.ConnectionNumber {
        get throws {
            guard cookie.value.count == 4 else {
                throw RPCError(code: .invalidArgument, message: "the connection's cookie has not 4 bytes")
            }
            return cookie.value.reduce(0) { $0 << 8 | Device.ConnectionNumber($1) }
        }
    }
}

extension DeviceAddress {
    /// Decodes six bytes, the most significant one first. Nil if there are not six.
    init?(_ data: Data, isRandom: Bool) {
        guard data.count == 6 else { return nil }
        self.init(data.reduce(0) { $0 << 8 | UInt64($1) }, isRandom: isRandom)
    }

    /// The address in six bytes, the most significant one first.
    var data: Data { Data((0..<6).map { UInt8(truncatingIfNeeded: value >> (40 - 8 * $0)) }) }
}
