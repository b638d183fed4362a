import BLEByteCoding
import BLECapture
import BluetoothTypes

/// The packets between one host and its controller, in capture order.
///
/// A recording is held in memory for random access. ``packetLimit`` bounds it.
public struct PacketRecording: Sendable {
    /// A packet of a recording.
    public struct Packet: Hashable, Sendable {
        /// The record's number in its capture, from 1.
        public let number: Int
        /// The time since the recording's first packet. It never decreases from one packet to the next.
        public let time: Duration
        /// The packet's direction.
        public let direction: CaptureDirection
        /// The packet with its H4 indicator.
        public let bytes: [UInt8]

        package init(number: Int, time: Duration, direction: CaptureDirection, bytes: [UInt8]) {
            self.number = number
            self.time = time
            self.direction = direction
            self.bytes = bytes
        }
    }

    /// Maximum number of packets in a recording.
    public static let packetLimit = 1_000_000

    /// The packets in the order in which they were recorded.
    public let packets: [Packet]
    /// The damage in the capture after the last packet, or nil.
    public let damage: CaptureReadingError?
    /// Whether the capture continues after the last packet. It then has more than ``packetLimit`` packets, its recorder
    /// truncated the next packet, or the next packet is in another section of a pcapng file.
    public let isCut: Bool

    package init(packets: [Packet]) {
        self.packets = packets
        damage = nil
        isCut = false
    }

    /// Whether the recording begins with the bring-up of the controller: the host's first packet is a Reset.
    package var hasBringUp: Bool {
        packets.first { $0.direction == .hostToController }?.bytes == [1, 0x03, 0x0C, 0]
    }

    /// The packets before the host's first packet that a bring-up does not need.
    ///
    /// Such a packet scans, advertises, connects, sends data, sets host data such as addresses or keys, or resets the
    /// controller again.
    package var bringUp: PacketRecording {
        var resets = 0
        let end = packets.firstIndex { packet in
            guard packet.direction == .hostToController else { return false }
            guard packet.bytes.first == 1, packet.bytes.count > 2 else { return true }
            switch UInt16(packet.bytes[1]) | UInt16(packet.bytes[2]) << 8 {
            case 0x0C03:
                resets += 1
                return resets > 1
            // Addresses; parameters of advertising and scanning, creating connections, lists, legacy and extended;
            // keys.
            case 0x2005...0x200E, 0x2010...0x2012, 0x2017, 0x2019, 0x2027, 0x2035...0x2039, 0x203C...0x2043:
                return true
            default: return false
            }
        }
        return PacketRecording(packets: Array(packets[..<(end ?? packets.count)]))
    }

    /// Reads a capture of any format.
    ///
    /// - Parameters:
    ///   - bytes: the whole file.
    ///   - adapter: the adapter whose packets are read, if the capture has several; nil for the adapter of the first
    ///     packet.
    /// - Throws: `CaptureReadingError` if the bytes are not a capture. ``damage`` reports damage after the first
    ///   packet.
    public init(_ bytes: [UInt8], adapter: UInt16? = nil) throws(CaptureReadingError) {
        var reader = CaptureReader()
        reader.append(bytes.rawSpan)
        reader.finish()
        var collector = Collector(adapter: adapter)
        var damage: CaptureReadingError?
        do throws(CaptureReadingError) {
            while !collector.isFull, try reader.advance() == .record {
                if let record = reader.record { collector.take(record) }
            }
        } catch {
            guard !collector.packets.isEmpty else { throw error }
            damage = error
        }
        packets = collector.packets
        isCut = collector.isFull
        self.damage = damage
    }

    /// Reads a capture of any format from a file.
    ///
    /// - Parameters:
    ///   - path: the file.
    ///   - adapter: the adapter whose packets are read, if the capture has several; nil for the adapter of the first
    ///     packet.
    ///   - stop: ends the reading before the file ends, as if the file ended there.
    /// - Throws: ``CaptureFileError`` if the file cannot be read or is not a capture. ``damage`` reports damage after
    ///   the first packet.
    public init(
        path: String,
        adapter: UInt16? = nil,
        stop: CancellationToken = CancellationToken()
    ) throws(CaptureFileError) {
        var file = try CaptureFileReader(path: path, stop: stop)
        var collector = Collector(adapter: adapter)
        var damage: CaptureReadingError?
        do throws(CaptureFileError) {
            while !collector.isFull, let record = try file.next() { collector.take(record) }
        } catch {
            guard case .invalid(_, let reason) = error, !collector.packets.isEmpty else { throw error }
            damage = reason
        }
        packets = collector.packets
        isCut = collector.isFull
        self.damage = damage
    }
}

/// Collects the packets of one adapter from a capture.
private struct Collector {
    private(set) var packets: [PacketRecording.Packet] = []
    private(set) var isFull = false
    private var adapter: UInt16?
    /// The section of a pcapng file. Each section has adapters and links of its own.
    private var section: UInt64?
    private var start: CaptureTime?

    init(adapter: UInt16?) {
        self.adapter = adapter
    }

    mutating func take(_ record: borrowing CaptureRecord) {
        guard case .packet(let kind, let given, let bytes) = record.content,
            let direction = given ?? kind.onlyDirection, record.adapterIndex == adapter ?? record.adapterIndex
        else { return }
        // A truncated packet can be neither played nor compared.
        guard record.cutLength == 0, packets.count < PacketRecording.packetLimit,
            record.section == section ?? record.section
        else {
            isFull = true
            return
        }
        adapter = record.adapterIndex
        section = record.section
        var time = packets.last?.time ?? .zero
        if let taken = record.time {
            let start = self.start ?? taken
            self.start = start
            // The recorder's clock may have been set back between packets.
            time = max(time, .nanoseconds(taken.nanoseconds(since: start)))
        }
        packets.append(
            PacketRecording.Packet(
                number: Int(clamping: record.number),
                time: time,
                direction: direction,
                bytes: [kind.rawValue] + [UInt8](copying: bytes)
            )
        )
    }
}
