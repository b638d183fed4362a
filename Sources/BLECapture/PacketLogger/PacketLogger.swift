import BLEByteCoding

/// The type of a record of Apple's PacketLogger.
public struct PacketLoggerType: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt8

    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let command = PacketLoggerType(rawValue: 0x00)
    public static let event = PacketLoggerType(rawValue: 0x01)
    public static let aclSent = PacketLoggerType(rawValue: 0x02)
    public static let aclReceived = PacketLoggerType(rawValue: 0x03)
    public static let synchronousSent = PacketLoggerType(rawValue: 0x08)
    public static let synchronousReceived = PacketLoggerType(rawValue: 0x09)
    /// A packet of the Link Manager Protocol, which a controller reports in a vendor-specific way.
    public static let linkManagerSent = PacketLoggerType(rawValue: 0x0A)
    public static let linkManagerReceived = PacketLoggerType(rawValue: 0x0B)
    /// Lines of the system's logs. The records from this type on contain text.
    public static let systemLog = PacketLoggerType(rawValue: 0xF7)
    public static let kernel = PacketLoggerType(rawValue: 0xF8)
    public static let kernelDebug = PacketLoggerType(rawValue: 0xF9)
    public static let error = PacketLoggerType(rawValue: 0xFA)
    public static let power = PacketLoggerType(rawValue: 0xFB)
    public static let note = PacketLoggerType(rawValue: 0xFC)
    public static let configuration = PacketLoggerType(rawValue: 0xFD)
    public static let newController = PacketLoggerType(rawValue: 0xFE)

    /// Whether such a record contains text.
    public var isText: Bool { (0xF7...0xFE).contains(rawValue) }

    /// The kind and direction of the packet in records of this type; nil for a note.
    public var packet: (kind: CapturedPacketKind, direction: CaptureDirection)? {
        switch self {
        case .command: (.command, .hostToController)
        case .event: (.event, .controllerToHost)
        case .aclSent: (.acl, .hostToController)
        case .aclReceived: (.acl, .controllerToHost)
        case .synchronousSent: (.synchronous, .hostToController)
        case .synchronousReceived: (.synchronous, .controllerToHost)
        default: nil
        }
    }

    /// Whether a file may begin with a record of this type.
    fileprivate var isKnown: Bool {
        packet != nil || isText || self == .linkManagerSent || self == .linkManagerReceived
    }
}

/// The records of a PacketLogger file, which has no header: length, time and type in 13 bytes, then the packet.
enum PacketLoggerRecord {
    private static let headerLength = 13
    /// The number of bytes besides the packet that the length field includes: time and type.
    private static let countedHeaderLength: UInt32 = 9

    /// Returns the byte order of a file that begins with `bytes`, or nil if they do not begin with a record.
    static func byteOrder(of bytes: RawSpan) -> ByteOrder? {
        for order in [ByteOrder.bigEndian, .littleEndian] {
            var reader = OrderedByteReader(bytes, order)
            guard let length = try? reader.readUInt32(), (try? reader.readUInt32()) != nil,
                let microseconds = try? reader.readUInt32(), let type = try? reader.readUInt8()
            else { return nil }
            if (countedHeaderLength...0xFFFF).contains(length), microseconds < 1_000_000,
                PacketLoggerType(rawValue: type).isKnown
            {
                return order
            }
        }
        return nil
    }

    /// Decodes the record at the start of `bytes`.
    static func layout(_ bytes: RawSpan, _ order: ByteOrder) throws(PacketDecodingError) -> RecordLayout {
        var reader = OrderedByteReader(bytes, order)
        let length = try reader.readUInt32()
        guard length >= countedHeaderLength, length - countedHeaderLength <= CaptureReader.maximumPacketLength else {
            throw .invalidLength(Int(length), field: "PacketLogger record")
        }
        let seconds = try reader.readUInt32()
        let microseconds = try reader.readUInt32()
        guard microseconds < 1_000_000 else {
            throw .invalidValue(UInt64(microseconds), field: "microseconds of a PacketLogger time")
        }
        let type = PacketLoggerType(rawValue: try reader.readUInt8())
        try reader.skip(Int(length - countedHeaderLength))
        return RecordLayout(
            length: reader.position,
            meaning: type.packet.map { .packet($0.kind, $0.direction) } ?? .note(.packetLogger(type)),
            payload: headerLength..<reader.position,
            time: CaptureTime(seconds: Int64(seconds), nanoseconds: microseconds * 1000)
        )
    }
}
