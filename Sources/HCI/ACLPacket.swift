import BluetoothTypes
import ByteCoding

/// Whether an ACL packet starts an L2CAP PDU or continues one (Vol 4, Part E, 5.4.2).
public enum PacketBoundaryFlag: UInt8, Sendable {
    /// Starts a PDU that is not flushed. What a host sends on LE.
    case firstNonFlushable = 0b00
    case continuing = 0b01
    /// Starts a PDU that may be flushed. What a controller sends on LE.
    case firstFlushable = 0b10
    /// A whole PDU, on AMP controllers only.
    case complete = 0b11
}

/// To whom an ACL packet goes (Vol 4, Part E, 5.4.2). Always ``pointToPoint`` on LE.
public enum BroadcastFlag: UInt8, Sendable {
    case pointToPoint = 0b00
    case brEdrBroadcast = 0b01
    case reserved2 = 0b10
    case reserved3 = 0b11
}

/// The header of an ACL data packet (Vol 4, Part E, 5.4.2).
public struct ACLHeader: Sendable, Equatable {
    /// In octets.
    public static let length = 4

    public var connectionHandle: ConnectionHandle
    public var packetBoundaryFlag: PacketBoundaryFlag
    public var broadcastFlag: BroadcastFlag
    /// How many octets follow the header.
    public var dataTotalLength: UInt16

    @inlinable
    public init(
        connectionHandle: ConnectionHandle,
        packetBoundaryFlag: PacketBoundaryFlag,
        broadcastFlag: BroadcastFlag = .pointToPoint,
        dataTotalLength: UInt16 = 0
    ) {
        self.connectionHandle = connectionHandle
        self.packetBoundaryFlag = packetBoundaryFlag
        self.broadcastFlag = broadcastFlag
        self.dataTotalLength = dataTotalLength
    }

    /// Reads the header and leaves the reader at the data.
    @inlinable
    @inline(__always)
    public init(decoding reader: inout ByteReader) throws(PacketDecodingError) {
        let both = try reader.readUInt32()
        let word = UInt16(truncatingIfNeeded: both)
        connectionHandle = ConnectionHandle(word)
        packetBoundaryFlag =
            switch word >> 12 & 0b11 {
            case 0b00: .firstNonFlushable
            case 0b01: .continuing
            case 0b10: .firstFlushable
            default: .complete
            }
        broadcastFlag =
            switch word >> 14 {
            case 0b00: .pointToPoint
            case 0b01: .brEdrBroadcast
            case 0b10: .reserved2
            default: .reserved3
            }
        dataTotalLength = UInt16(truncatingIfNeeded: both >> 16)
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(firstWord)
        buffer.append(dataTotalLength)
    }

    /// Puts the header before the data that `buffer` holds, whose length it takes in place of ``dataTotalLength``.
    ///
    /// Data longer than 65,535 octets has no ACL header; the length is then cut to its low 16 bits.
    @inlinable
    public func prepend(to buffer: inout PacketBuffer) {
        prepend(to: &buffer, dataTotalLength: UInt16(truncatingIfNeeded: buffer.count))
    }

    /// Puts the header before a buffer whose first `dataTotalLength` octets are the packet's data.
    ///
    /// What follows them belongs to later packets: a PDU is fragmented where it lies.
    @inlinable
    public func prepend(to buffer: inout PacketBuffer, dataTotalLength: UInt16) {
        buffer.prepend(firstWord, dataTotalLength)
    }

    @inlinable
    var firstWord: UInt16 {
        connectionHandle.rawValue | UInt16(packetBoundaryFlag.rawValue) << 12 | UInt16(broadcastFlag.rawValue) << 14
    }
}

/// An ACL data packet: its header and the borrowed data (Vol 4, Part E, 5.4.2).
public struct ACLPacket: ~Escapable {
    public let header: ACLHeader
    /// As many octets as the header says.
    public let payload: RawSpan

    /// - Throws: when the packet is shorter or longer than its header says.
    @inlinable
    @inline(__always)
    @_lifetime(copy packet)
    public init(decoding packet: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(packet)
        header = try ACLHeader(decoding: &reader)
        payload = try reader.readBytes(count: Int(header.dataTotalLength))
        try reader.requireEnd()
    }
}
