import BLEByteCoding

/// Encodes captures, one record at a time, into buffers that the caller writes to a file.
public struct CaptureWriter: Sendable {
    /// The supported formats.
    public enum Format: Hashable, Sendable {
        /// btsnoop of H4 packets, which most programs read. Adapters are not distinguished; times are in microseconds.
        case btsnoop
        /// btsnoop of Linux's monitor channel, with adapters and notes. Times are in microseconds.
        case btsnoopMonitor
        /// pcapng of H4 packets, with an interface for each adapter. Times are in nanoseconds.
        case pcapng
        /// pcapng of Linux's monitor channel, with adapters and notes. Times are in nanoseconds.
        case pcapngMonitor
    }

    public let format: Format
    private var pcapng = PCAPNGEncoder()

    public init(_ format: Format) {
        self.format = format
    }

    /// Writes the header of a file.
    public mutating func encodeHeader(into buffer: inout PacketBuffer) {
        switch format {
        case .btsnoop: BTSnoopHeader(dataLink: .hciUART).encode(into: &buffer)
        case .btsnoopMonitor: BTSnoopHeader(dataLink: .linuxMonitor).encode(into: &buffer)
        case .pcapng: pcapng.encodeSectionHeader(into: &buffer)
        case .pcapngMonitor:
            pcapng.encodeSectionHeader(into: &buffer)
            _ = pcapng.interface(of: 0, .linuxMonitor, into: &buffer)
        }
    }

    /// Writes a record that was read from a capture of any format.
    ///
    /// - Returns: false if this writer's format cannot represent it. For example, the format is of H4 packets and the
    ///   record is a note, or the capture does not give the direction of data. Nothing is written then.
    public mutating func encode(_ record: borrowing CaptureRecord, into buffer: inout PacketBuffer) -> Bool {
        switch record.content {
        case .packet(_, _, let bytes), .note(_, let bytes), .malformed(_, _, let bytes):
            return encode(record, replacingBytesWith: bytes, into: &buffer)
        }
    }

    /// Writes a record that was read, but with `bytes` in place of its bytes.
    ///
    /// - Returns: as ``encode(_:into:)``.
    public mutating func encode(
        _ record: borrowing CaptureRecord,
        replacingBytesWith bytes: RawSpan,
        into buffer: inout PacketBuffer
    ) -> Bool {
        let stamp = Stamp(
            time: record.time ?? CaptureTime(seconds: 0, nanoseconds: 0),
            adapterIndex: record.adapterIndex,
            cutLength: record.cutLength,
            cumulativeDrops: record.cumulativeDrops
        )
        switch record.content {
        case .packet(let kind, let direction, _):
            guard let direction else { return false }
            return encode(kind, direction, bytes, stamp, into: &buffer)
        case .note(.monitor(let opcode), _): return encode(opcode, bytes, stamp, into: &buffer)
        case .malformed(_, let direction, _):
            guard let direction else { return false }
            return encode(indicator: nil, isCommandOrEvent: false, direction, bytes, stamp, into: &buffer)
        case .note: return false
        }
    }

    /// Writes a packet that begins with its H4 indicator.
    ///
    /// - Returns: false if this writer's format cannot represent it. For example, the format is of the monitor channel
    ///   and the indicator is unknown, or a command or event has the wrong direction. Nothing is written then.
    @discardableResult
    public mutating func encode(
        h4Packet packet: RawSpan,
        _ direction: CaptureDirection,
        time: CaptureTime,
        adapterIndex: UInt16 = 0,
        into buffer: inout PacketBuffer
    ) -> Bool {
        let stamp = Stamp(time: time, adapterIndex: adapterIndex, cutLength: 0, cumulativeDrops: 0)
        guard let kind = packet[checked: 0].flatMap(CapturedPacketKind.init(rawValue:)) else {
            return encode(indicator: nil, isCommandOrEvent: false, direction, packet, stamp, into: &buffer)
        }
        return encode(kind, direction, packet.extracting(droppingFirst: 1), stamp, into: &buffer)
    }

    /// Writes a record of Linux's monitor channel.
    ///
    /// - Returns: false if this writer's format cannot represent it. Nothing is written then.
    @discardableResult
    public mutating func encode(
        _ opcode: MonitorOpcode,
        _ bytes: RawSpan,
        adapterIndex: UInt16,
        time: CaptureTime,
        into buffer: inout PacketBuffer
    ) -> Bool {
        let stamp = Stamp(time: time, adapterIndex: adapterIndex, cutLength: 0, cumulativeDrops: 0)
        guard let (kind, direction) = opcode.packet else { return encode(opcode, bytes, stamp, into: &buffer) }
        return encode(kind, direction, bytes, stamp, into: &buffer)
    }

    /// The fields in the header of every record.
    struct Stamp {
        var time: CaptureTime
        var adapterIndex: UInt16
        var cutLength: UInt32
        var cumulativeDrops: UInt64

        func originalLength(_ length: Int) -> UInt32 {
            let (sum, isOver) = cutLength.addingReportingOverflow(UInt32(clamping: length))
            return isOver ? .max : sum
        }
    }

    private mutating func encode(
        _ kind: CapturedPacketKind,
        _ direction: CaptureDirection,
        _ bytes: RawSpan,
        _ stamp: Stamp,
        into buffer: inout PacketBuffer
    ) -> Bool {
        switch format {
        case .btsnoop, .pcapng:
            let isCommandOrEvent = kind == .command || kind == .event
            return encode(
                indicator: kind.rawValue,
                isCommandOrEvent: isCommandOrEvent,
                direction,
                bytes,
                stamp,
                into: &buffer
            )
        case .btsnoopMonitor, .pcapngMonitor:
            guard let opcode = MonitorOpcode(kind, direction) else { return false }
            return encode(opcode, bytes, stamp, into: &buffer)
        }
    }

    /// Writes an H4 record: the indicator, if any, and `bytes`.
    private mutating func encode(
        indicator: UInt8?,
        isCommandOrEvent: Bool,
        _ direction: CaptureDirection,
        _ bytes: RawSpan,
        _ stamp: Stamp,
        into buffer: inout PacketBuffer
    ) -> Bool {
        switch format {
        case .btsnoop:
            var record = BTSnoopRecord(
                packet: bytes,
                direction: direction,
                isCommandOrEvent: isCommandOrEvent,
                microsecondsSince1970: stamp.time.microsecondsSince1970
            )
            record.originalLength = stamp.originalLength(bytes.byteCount + (indicator == nil ? 0 : 1))
            record.cumulativeDrops = UInt32(clamping: stamp.cumulativeDrops)
            record.encode(indicator: indicator, into: &buffer)
            return true
        case .pcapng:
            guard let interface = pcapng.interface(of: stamp.adapterIndex, .hciH4WithDirection, into: &buffer) else {
                return false
            }
            pcapng.encodePacket(
                header: direction == .hostToController ? 0 : 1,
                indicator: indicator,
                bytes,
                direction,
                stamp,
                interface: interface,
                into: &buffer
            )
            return true
        case .btsnoopMonitor, .pcapngMonitor: return false
        }
    }

    private mutating func encode(
        _ opcode: MonitorOpcode,
        _ bytes: RawSpan,
        _ stamp: Stamp,
        into buffer: inout PacketBuffer
    ) -> Bool {
        switch format {
        case .btsnoopMonitor:
            var record = BTSnoopRecord(
                packet: bytes,
                direction: .hostToController,
                isCommandOrEvent: false,
                microsecondsSince1970: stamp.time.microsecondsSince1970
            )
            record.flags = UInt32(stamp.adapterIndex) << 16 | UInt32(opcode.rawValue)
            record.originalLength = stamp.originalLength(bytes.byteCount)
            record.cumulativeDrops = UInt32(clamping: stamp.cumulativeDrops)
            record.encode(into: &buffer)
            return true
        case .pcapngMonitor:
            pcapng.encodePacket(
                header: UInt32(stamp.adapterIndex) << 16 | UInt32(opcode.rawValue),
                indicator: nil,
                bytes,
                opcode.packet?.direction,
                stamp,
                interface: 0,
                into: &buffer
            )
            return true
        case .btsnoop, .pcapng: return false
        }
    }
}
