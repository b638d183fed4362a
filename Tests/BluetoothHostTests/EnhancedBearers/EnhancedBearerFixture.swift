import BLEGATT
import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

/// A host that uses enhanced bearers, and a peer whose bytes a test writes.
final class EnhancedBearerFixture {
    /// The peer's endpoints of channels that it requests are 0x0041 and the following ones.
    static let firstSource: UInt8 = 0x41

    let security: SecurityFixture
    let link: LinkIdentifier
    /// The accesses that the app has received.
    var accesses: [AccessRequest] { security.accesses.all }
    /// The handle of a value that the app provides.
    var valueHandle: AttributeHandle { security.valueHandle }

    init(
        _ role: BLEHCI.Role = .peripheral,
        limit: Int = 3,
        isEncrypted: Bool = true,
        configure: (inout BluetoothHost.Configuration) -> Void = { _ in }
    ) throws {
        security = try SecurityFixture(bond: nil) {
            $0.enhancedBearerLimit = limit
            configure(&$0)
        }
        link = try security.connect(role)
        if isEncrypted { try security.run { $0.setEncrypted(true) } }
    }

    @discardableResult
    func run<Value: Sendable>(
        _ body: @escaping @Sendable (isolated BluetoothHost) async throws -> Value
    ) throws -> Value {
        try security.run(body)
    }

    /// The ATT_MTU of each enhanced bearer.
    var bearerMTUs: [Int] {
        get throws {
            let link = link
            return try run { try $0.information(on: link).enhancedBearerMTUs }
        }
    }

    // MARK: The peer

    /// Makes the peer send a frame.
    ///
    /// - Returns: the payloads of the frames that the host sent on the peer's channel `answers`.
    @discardableResult
    func send(_ payload: [UInt8], on channel: UInt16, answers: UInt8? = nil) -> [[UInt8]] {
        security.controller.forgetData()
        security.controller.emit(HostFixture.acl(payload, channel: channel, on: security.handle))
        security.advance(.milliseconds(1))
        return answers.map { security.sent(on: $0) } ?? []
    }

    /// Makes the peer request enhanced channels for bearers, with 10 credits for each.
    ///
    /// - Returns: the host's response.
    func peerOpens(
        _ count: Int = 1,
        identifier: UInt8 = 1,
        mtu: UInt8 = 100,
        firstSource: UInt8 = EnhancedBearerFixture.firstSource
    ) -> [UInt8]? {
        let sources = (0..<count).flatMap { [firstSource + UInt8($0), 0] as [UInt8] }
        return send(
            [0x17, identifier, UInt8(8 + sources.count), 0, 0x27, 0, mtu, 0, 102, 0, 10, 0] + sources,
            on: 5,
            answers: 5
        ).last
    }

    /// Makes the peer send an ATT PDU on a bearer that it has opened.
    ///
    /// - Parameter bearer: the number of the bearer, from 0.
    /// - Returns: the ATT PDUs that the host sent on this bearer.
    func exchange(_ pdu: [UInt8], on bearer: Int = 0) -> [[UInt8]] {
        send([UInt8(pdu.count), 0] + pdu, on: 0x40 + UInt16(bearer))
        return sent(on: bearer)
    }

    /// The ATT PDUs that the host has sent on a bearer since the test last discarded them.
    func sent(on bearer: Int) -> [[UInt8]] {
        security.sent(on: EnhancedBearerFixture.firstSource + UInt8(bearer)).map { Array($0.dropFirst(2)) }
    }

    /// The ATT PDUs that the host has sent on the fixed channel.
    var sentOnFixedChannel: [[UInt8]] { security.sent(on: 4) }

    /// The commands that the host has sent on the signaling channel.
    var signaling: [[UInt8]] { security.sent(on: 5) }
}
