import BLEByteCoding

/// The header of a btsnoop file: 16 bytes. All numbers of the format are big-endian.
public struct BTSnoopHeader: Hashable, Sendable {
    /// The encapsulation of packets in the records.
    public struct DataLink: RawRepresentable, Hashable, Sendable {
        public let rawValue: UInt32

        public init(rawValue: UInt32) { self.rawValue = rawValue }

        /// HCI packets without an indicator. The record's flags give the direction, and whether the packet is a command
        /// or event.
        public static let hciUnencapsulated = DataLink(rawValue: 1001)
        /// HCI packets with their H4 indicator.
        public static let hciUART = DataLink(rawValue: 1002)
        /// Packets of the BlueCore Serial Protocol. Not supported.
        public static let hciBCSP = DataLink(rawValue: 1003)
        /// Packets of the three-wire UART transport (Vol 4, Part D). Not supported.
        public static let hciThreeWireUART = DataLink(rawValue: 1004)
        /// Packets and notes of Linux's monitor channel. The flags hold the adapter and opcode.
        public static let linuxMonitor = DataLink(rawValue: 2001)
    }

    public static let length = 16
    /// "btsnoop" and a zero byte.
    private static let identification: UInt64 = 0x6274_736E_6F6F_7000

    public var dataLink: DataLink

    static func isAtStart(of bytes: RawSpan) -> Bool {
        var reader = ByteReader(bytes)
        return (try? reader.readUInt64().byteSwapped) == identification
    }

    public init(dataLink: DataLink) {
        self.dataLink = dataLink
    }

    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        let identification = try reader.readUInt64().byteSwapped
        guard identification == BTSnoopHeader.identification else {
            throw .invalidValue(identification, field: "btsnoop identification pattern")
        }
        let version = try reader.readUInt32().byteSwapped
        guard version == 1 else { throw .invalidValue(UInt64(version), field: "btsnoop version") }
        dataLink = DataLink(rawValue: try reader.readUInt32().byteSwapped)
    }

    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(BTSnoopHeader.identification.byteSwapped)
        buffer.append(UInt32(1).byteSwapped)
        buffer.append(dataLink.rawValue.byteSwapped)
    }
}

/// One packet of a btsnoop file.
public struct BTSnoopRecord: ~Escapable {
    /// The number of header bytes before the packet, in each record.
    public static let headerLength = 24
    /// 1970-01-01 in microseconds since the year 0, the epoch of the format.
    private static let epoch: Int64 = 0x00DC_DDB3_0F2F_8000

    public var packet: RawSpan
    /// The packet's length before the recorder truncated it.
    public var originalLength: UInt32
    public var flags: UInt32
    public var cumulativeDrops: UInt32
    public var microsecondsSince1970: Int64

    @_lifetime(copy packet)
    public init(packet: RawSpan, direction: CaptureDirection, isCommandOrEvent: Bool, microsecondsSince1970: Int64) {
        self.packet = packet
        originalLength = UInt32(truncatingIfNeeded: packet.byteCount)
        flags = (direction == .hostToController ? 0 : 1) | (isCommandOrEvent ? 2 : 0)
        cumulativeDrops = 0
        self.microsecondsSince1970 = microsecondsSince1970
    }

    public var direction: CaptureDirection { flags & 1 == 0 ? .hostToController : .controllerToHost }

    public var isCommandOrEvent: Bool { flags & 2 != 0 }

    /// Decodes the record at the position of `reader`.
    @_lifetime(copy reader)
    public init(decoding reader: inout ByteReader) throws(PacketDecodingError) {
        originalLength = try reader.readUInt32().byteSwapped
        let includedLength = try reader.readUInt32().byteSwapped
        flags = try reader.readUInt32().byteSwapped
        cumulativeDrops = try reader.readUInt32().byteSwapped
        let timestamp = Int64(bitPattern: try reader.readUInt64().byteSwapped)
        microsecondsSince1970 = timestamp &- BTSnoopRecord.epoch
        guard includedLength <= CaptureReader.maximumPacketLength, includedLength <= originalLength else {
            throw .invalidLength(Int(includedLength), field: "btsnoop included length")
        }
        packet = try reader.readBytes(count: Int(includedLength))
    }

    public func encode(into buffer: inout PacketBuffer) {
        encode(indicator: nil, into: &buffer)
    }

    /// - Parameter indicator: a byte to write before the packet. The original length already includes it.
    func encode(indicator: UInt8?, into buffer: inout PacketBuffer) {
        let length = packet.byteCount + (indicator == nil ? 0 : 1)
        buffer.append(originalLength.byteSwapped)
        buffer.append(UInt32(truncatingIfNeeded: length).byteSwapped)
        buffer.append(flags.byteSwapped)
        buffer.append(cumulativeDrops.byteSwapped)
        buffer.append(UInt64(bitPattern: microsecondsSince1970 &+ BTSnoopRecord.epoch).byteSwapped)
        if let indicator { buffer.append(indicator) }
        buffer.append(packet)
    }
}
