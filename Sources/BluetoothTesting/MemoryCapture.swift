import BluetoothTypes
import ByteCoding
import Capture
import HCI
import HCITransport

/// A btsnoop capture in memory, stamped with a world's time.
struct MemoryCapture {
    private(set) var bytes: [UInt8]
    private var record = PacketBuffer(capacity: 512, headroom: 0)

    init() {
        bytes = PacketBuffer.bytes { BTSnoopHeader(dataLink: .hciUART).encode(into: &$0) }
    }

    mutating func append(_ packet: RawSpan, direction: CaptureDirection, microsecondsSince1970: Int64) {
        let type = packet[checked: 0].flatMap(PacketType.init(rawValue:))
        record.reset()
        BTSnoopRecord(
            packet: packet,
            direction: direction,
            isCommandOrEvent: type == .command || type == .event,
            microsecondsSince1970: microsecondsSince1970
        ).encode(into: &record)
        bytes += [UInt8](copying: record.bytes)
    }
}
