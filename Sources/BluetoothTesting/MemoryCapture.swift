import BLEByteCoding
import BLECapture
import BluetoothTypes

/// A btsnoop capture in memory, with timestamps in a world's time.
struct MemoryCapture {
    private(set) var bytes: [UInt8] = []
    private var writer = CaptureWriter(.btsnoop)
    private var record = PacketBuffer(capacity: 512, headroom: 0)

    init() {
        writer.encodeHeader(into: &record)
        bytes = [UInt8](copying: record.bytes)
    }

    mutating func append(_ packet: RawSpan, direction: CaptureDirection, microsecondsSince1970: Int64) {
        record.reset()
        let time = CaptureTime(microsecondsSince1970: microsecondsSince1970)
        writer.encode(h4Packet: packet, direction, time: time, into: &record)
        bytes += [UInt8](copying: record.bytes)
    }
}
