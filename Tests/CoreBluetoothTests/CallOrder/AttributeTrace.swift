import BLEByteCoding
import BLECapture
import BluetoothTesting
import Testing

/// The ATT PDUs and the requests for channels in a capture of one link, in their order.
///
/// A request for a channel is identified by the code of its command, which is not an opcode of the Attribute Protocol.
struct AttributeTrace {
    struct Entry {
        let direction: CaptureDirection
        let pdu: [UInt8]
    }

    /// The code of a request for a channel with LE credit-based flow control (Vol 3, Part A, 4.22).
    static let channelRequest: UInt8 = 0x14

    private(set) var entries: [Entry] = []
    private var fragments: [CaptureDirection: [UInt8]] = [:]

    init(_ capture: [UInt8]) throws {
        var reader = CaptureReader()
        reader.append(capture.rawSpan)
        reader.finish()
        while case .record = try reader.advance() {
            guard let record = reader.record, case .packet(.acl, let direction?, let bytes) = record.content else {
                continue
            }
            add([UInt8](copying: bytes), direction)
        }
    }

    /// The PDUs that the host of the capture has sent.
    var sent: [[UInt8]] { entries.filter { $0.direction == .hostToController }.map(\.pdu) }

    /// Adds an ACL packet. A PDU has the position of its last fragment (Vol 3, Part A, 7.2.2).
    private mutating func add(_ packet: [UInt8], _ direction: CaptureDirection) {
        let isContinuation = packet[1] >> 4 & 0x03 == 0x01
        let data = packet.dropFirst(4)
        let frame = isContinuation ? fragments[direction, default: []] + data : Array(data)
        fragments[direction] = frame
        guard frame.count >= 4, frame.count == 4 + Int(frame[0]) + Int(frame[1]) << 8 else { return }
        guard frame.count > 4, frame[3] == 0x00 else { return }
        if frame[2] == 0x04 || frame[2] == 0x05 && frame[4] == AttributeTrace.channelRequest {
            entries.append(Entry(direction: direction, pdu: Array(frame.dropFirst(4))))
        }
    }
}

/// The conditions of a link on which a model of call order is checked.
struct LinkConditions: CustomTestStringConvertible, Sendable {
    /// Whether packets wait for connection events.
    let isPaced: Bool
    /// The number of ACL packets that the controllers hold.
    let bufferCount: UInt8
    /// The longest ACL packet, in bytes.
    let bufferLength: UInt16

    var testDescription: String {
        "\(isPaced ? "paced" : "unpaced"), \(bufferCount) buffers of \(bufferLength) bytes"
    }

    static let all: [LinkConditions] = [true, false].flatMap { isPaced in
        [(1, 27), (2, 251), (16, 251)].map { count, length in
            LinkConditions(isPaced: isPaced, bufferCount: count, bufferLength: length)
        }
    }

    func apply(to configuration: inout ControllerConfiguration) {
        configuration.pacesPackets = isPaced
        configuration.aclPacketCount = bufferCount
        configuration.aclDataLength = bufferLength
    }
}
