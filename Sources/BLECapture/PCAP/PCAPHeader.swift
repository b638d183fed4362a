import BLEByteCoding

/// The header of a pcap file: 24 bytes, in the byte order of the machine that wrote it.
public struct PCAPHeader: Hashable, Sendable {
    /// The resolution of the records' times.
    public enum Resolution: Hashable, Sendable {
        case microseconds
        case nanoseconds
    }

    public static let length = 24

    public var byteOrder: ByteOrder
    public var resolution: Resolution
    public var linkType: CaptureLinkType
    /// The length to which recorders truncate packets, in bytes; zero for no limit.
    public var snapLength: UInt32

    static func isAtStart(of bytes: RawSpan) -> Bool {
        marks(of: bytes) != nil
    }

    private static func marks(of bytes: RawSpan) -> (ByteOrder, Resolution)? {
        switch (bytes[checked: 0], bytes[checked: 1], bytes[checked: 2], bytes[checked: 3]) {
        case (0xA1, 0xB2, 0xC3, 0xD4): (.bigEndian, .microseconds)
        case (0xD4, 0xC3, 0xB2, 0xA1): (.littleEndian, .microseconds)
        case (0xA1, 0xB2, 0x3C, 0x4D): (.bigEndian, .nanoseconds)
        case (0x4D, 0x3C, 0xB2, 0xA1): (.littleEndian, .nanoseconds)
        default: nil
        }
    }

    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        guard let (byteOrder, resolution) = PCAPHeader.marks(of: bytes) else {
            var reader = ByteReader(bytes)
            throw .invalidValue(UInt64(try reader.readUInt32()), field: "pcap magic number")
        }
        self.byteOrder = byteOrder
        self.resolution = resolution
        var reader = OrderedByteReader(bytes, byteOrder)
        try reader.skip(4)
        let version = (try reader.readUInt16(), try reader.readUInt16())
        guard version == (2, 4) else {
            throw .invalidValue(UInt64(version.0) << 16 | UInt64(version.1), field: "pcap version")
        }
        // The time zone and accuracy, which every recorder leaves zero.
        try reader.skip(8)
        snapLength = try reader.readUInt32()
        // The upper 16 bits concern frame check sequences.
        linkType = CaptureLinkType(rawValue: UInt16(truncatingIfNeeded: try reader.readUInt32()))
    }
}

/// The records of a pcap file. Each has a header of 16 bytes.
enum PCAPRecord {
    /// Decodes the record at the start of `bytes`.
    static func layout(_ bytes: RawSpan, in header: PCAPHeader) throws(PacketDecodingError) -> RecordLayout {
        var reader = OrderedByteReader(bytes, header.byteOrder)
        let seconds = try reader.readUInt32()
        let fraction = try reader.readUInt32()
        let includedLength = try reader.readUInt32()
        let originalLength = try reader.readUInt32()
        guard includedLength <= CaptureReader.maximumPacketLength else {
            throw .invalidLength(Int(includedLength), field: "pcap captured length")
        }
        let limit: UInt32 = header.resolution == .microseconds ? 1_000_000 : 1_000_000_000
        guard fraction < limit else { throw .invalidValue(UInt64(fraction), field: "fraction of a pcap time") }
        let start = reader.position
        let packet = try reader.readBytes(count: Int(includedLength))
        let content = header.linkType.parse(packet, direction: nil)
        return RecordLayout(
            length: reader.position,
            meaning: content.meaning,
            payload: (start + content.headerLength)..<reader.position,
            time: CaptureTime(
                seconds: Int64(seconds),
                nanoseconds: header.resolution == .microseconds ? fraction * 1000 : fraction
            ),
            adapterIndex: content.adapterIndex ?? 0,
            cutLength: originalLength > includedLength ? originalLength - includedLength : 0
        )
    }
}
