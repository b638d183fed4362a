import BLEByteCoding
import BluetoothTypes

/// Which part of an SDU an ISO packet has (Vol 4, Part E, 5.4.5).
public enum ISOPacketBoundaryFlag: UInt8, Sendable {
    /// The first of several fragments.
    case first = 0b00
    /// A fragment between the first and the last.
    case continuation = 0b01
    /// A whole SDU.
    case complete = 0b10
    /// The last of several fragments.
    case last = 0b11

    /// Whether the packet begins an SDU, and so has an ``ISODataLoadHeader``.
    @inlinable
    public var isStart: Bool { self == .first || self == .complete }
}

/// Whether a received SDU is valid (Vol 4, Part E, 5.4.5). A host sends ``valid``.
public enum ISOPacketStatus: UInt8, Sendable {
    /// The SDU was received without an error.
    case valid = 0b00
    /// The SDU may have errors: parts of it may be wrong or missing.
    case possiblyInvalid = 0b01
    /// Parts of the SDU, or the whole SDU, were not received.
    case lost = 0b10
    /// Reserved: decoded as it was received, without a meaning.
    case reserved = 0b11
}

/// The header of an ISO data packet (Vol 4, Part E, 5.4.5).
public struct ISOHeader: Sendable, Equatable {
    /// The length of the header in bytes.
    public static let length = 4

    /// The CIS or BIS that the data belongs to.
    public var connectionHandle: ConnectionHandle
    /// The part of the SDU that the packet has.
    public var packetBoundaryFlag: ISOPacketBoundaryFlag
    /// Whether the load begins with a time stamp. Only a packet that begins an SDU may have one.
    public var hasTimeStamp: Bool
    /// The number of bytes after the header, 0 to 0x3FFF.
    public var dataLoadLength: UInt16

    /// Creates a header.
    @inlinable
    public init(
        connectionHandle: ConnectionHandle,
        packetBoundaryFlag: ISOPacketBoundaryFlag,
        hasTimeStamp: Bool = false,
        dataLoadLength: UInt16 = 0
    ) {
        self.connectionHandle = connectionHandle
        self.packetBoundaryFlag = packetBoundaryFlag
        self.hasTimeStamp = hasTimeStamp
        self.dataLoadLength = dataLoadLength
    }

    /// Reads the header and leaves the reader at the load. Reserved bits are ignored.
    @inlinable
    public init(decoding reader: inout ByteReader) throws(PacketDecodingError) {
        let word = try reader.readUInt16()
        connectionHandle = ConnectionHandle(word)
        packetBoundaryFlag =
            switch word >> 12 & 0b11 {
            case 0b00: .first
            case 0b01: .continuation
            case 0b10: .complete
            default: .last
            }
        hasTimeStamp = word >> 14 & 1 == 1
        dataLoadLength = try reader.readUInt16() & 0x3FFF
    }

    /// Appends the header, of ``length`` bytes.
    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(
            connectionHandle.rawValue & 0x0FFF | UInt16(packetBoundaryFlag.rawValue) << 12
                | (hasTimeStamp ? 1 << 14 : 0)
        )
        buffer.append(dataLoadLength & 0x3FFF)
    }
}

/// The fields before the data in the first packet of an SDU (Vol 4, Part E, 5.4.5).
public struct ISODataLoadHeader: Sendable, Equatable {
    /// The length of the longest SDU, in bytes.
    public static let maximumSDULength = 0x0FFF

    /// In microseconds, by the controller's clock; nil if the packet has none.
    public var timeStamp: UInt32?
    /// The number of the SDU, one more than that of the SDU before; continues at 0 after 0xFFFF.
    public var packetSequenceNumber: UInt16
    /// The length of the whole SDU in bytes, 0 to ``maximumSDULength``.
    public var sduLength: UInt16
    /// Whether the SDU is valid.
    public var packetStatus: ISOPacketStatus

    /// The length of these fields in bytes, 4 or 8.
    @inlinable
    public var length: Int { timeStamp == nil ? 4 : 8 }

    /// Creates the fields of an SDU that is sent, or of a received one.
    @inlinable
    public init(
        timeStamp: UInt32? = nil,
        packetSequenceNumber: UInt16,
        sduLength: UInt16,
        packetStatus: ISOPacketStatus = .valid
    ) {
        self.timeStamp = timeStamp
        self.packetSequenceNumber = packetSequenceNumber
        self.sduLength = sduLength
        self.packetStatus = packetStatus
    }

    /// Reads the fields and leaves the reader at the data. Reserved bits are ignored.
    @inlinable
    public init(decoding reader: inout ByteReader, hasTimeStamp: Bool) throws(PacketDecodingError) {
        timeStamp = hasTimeStamp ? try reader.readUInt32() : nil
        packetSequenceNumber = try reader.readUInt16()
        let word = try reader.readUInt16()
        sduLength = word & 0x0FFF
        packetStatus =
            switch word >> 14 {
            case 0b00: .valid
            case 0b01: .possiblyInvalid
            case 0b10: .lost
            default: .reserved
            }
    }

    /// Appends the fields, of ``length`` bytes.
    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        if let timeStamp { buffer.append(timeStamp) }
        buffer.append(packetSequenceNumber)
        buffer.append(sduLength & 0x0FFF | UInt16(packetStatus.rawValue) << 14)
    }
}

/// An ISO data packet: its headers and the borrowed part of an SDU (Vol 4, Part E, 5.4.5).
public struct ISOPacket: ~Escapable {
    /// The stream, the flags and the length.
    public let header: ISOHeader
    /// The fields of the SDU; nil in a packet that continues one.
    public let loadHeader: ISODataLoadHeader?
    /// The part of the SDU.
    public let payload: RawSpan

    /// - Throws: an error if the length of the packet differs from its header, or the packet is too short for its
    ///   fields.
    @inlinable
    @_lifetime(copy packet)
    public init(decoding packet: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(packet)
        header = try ISOHeader(decoding: &reader)
        let load = try reader.readBytes(count: Int(header.dataLoadLength))
        try reader.requireEnd()
        var loadReader = ByteReader(load)
        loadHeader =
            header.packetBoundaryFlag.isStart
            ? try ISODataLoadHeader(decoding: &loadReader, hasTimeStamp: header.hasTimeStamp) : nil
        payload = loadReader.readRemaining()
    }

    /// Appends a packet that begins an SDU. `fragment` has the first bytes of it, or all of them if `isComplete`. The
    /// length of the packet has 14 bits.
    @inlinable
    public static func encodeStart(
        of loadHeader: ISODataLoadHeader,
        on connectionHandle: ConnectionHandle,
        isComplete: Bool,
        fragment: RawSpan,
        into buffer: inout PacketBuffer
    ) {
        ISOHeader(
            connectionHandle: connectionHandle,
            packetBoundaryFlag: isComplete ? .complete : .first,
            hasTimeStamp: loadHeader.timeStamp != nil,
            dataLoadLength: UInt16(truncatingIfNeeded: loadHeader.length + fragment.byteCount)
        )
        .encode(into: &buffer)
        loadHeader.encode(into: &buffer)
        buffer.append(fragment)
    }

    /// Appends a packet that continues an SDU. `fragment` has the next bytes of it, and the last ones if `isLast`. The
    /// length of the packet has 14 bits.
    @inlinable
    public static func encodeContinuation(
        on connectionHandle: ConnectionHandle,
        isLast: Bool,
        fragment: RawSpan,
        into buffer: inout PacketBuffer
    ) {
        ISOHeader(
            connectionHandle: connectionHandle,
            packetBoundaryFlag: isLast ? .last : .continuation,
            dataLoadLength: UInt16(truncatingIfNeeded: fragment.byteCount)
        )
        .encode(into: &buffer)
        buffer.append(fragment)
    }
}
