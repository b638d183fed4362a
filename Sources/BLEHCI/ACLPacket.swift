import BLEByteCoding
import BluetoothTypes

/// Whether an ACL packet starts an L2CAP PDU or continues one (Vol 4, Part E, 5.4.2).
public enum PacketBoundaryFlag: UInt8, Sendable {
    /// Starts a PDU that is not flushed. A host sends this value on LE.
    case firstNonFlushable = 0b00
    /// Continues the PDU of the last packet that started one.
    case continuing = 0b01
    /// Starts a PDU that may be flushed. A controller sends this value on LE.
    case firstFlushable = 0b10
    /// A whole PDU, on AMP controllers only.
    case complete = 0b11
}

/// The destination of an ACL packet (Vol 4, Part E, 5.4.2). Always ``pointToPoint`` on LE.
public enum BroadcastFlag: UInt8, Sendable {
    /// To the device of the connection handle.
    case pointToPoint = 0b00
    /// To all peripherals of a BR/EDR piconet.
    case brEdrBroadcast = 0b01
    /// Reserved: decoded as it was received, without a meaning.
    case reserved2 = 0b10
    /// Reserved: decoded as it was received, without a meaning.
    case reserved3 = 0b11
}

/// The header of an ACL data packet (Vol 4, Part E, 5.4.2).
public struct ACLHeader: Sendable, Equatable {
    /// The length of the header in bytes.
    public static let length = 4

    /// The connection that the data belongs to.
    public var connectionHandle: ConnectionHandle
    /// Whether the data starts an L2CAP PDU or continues one.
    public var packetBoundaryFlag: PacketBoundaryFlag
    /// The destination: ``BroadcastFlag/pointToPoint`` on LE.
    public var broadcastFlag: BroadcastFlag
    /// The number of bytes after the header.
    public var dataTotalLength: UInt16

    /// Creates a header. The default length, 0, is for a packet whose length is not known yet.
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

    /// Appends the header, of ``length`` bytes.
    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(firstWord, dataTotalLength)
    }

    /// Prepends the header to the data in `buffer`. The header takes the length of the data in place of
    /// ``dataTotalLength``.
    ///
    /// An ACL header cannot represent data longer than 65,535 bytes; the length is then cut to its low 16 bits.
    @inlinable
    public func prepend(to buffer: inout PacketBuffer) {
        prepend(to: &buffer, dataTotalLength: UInt16(truncatingIfNeeded: buffer.count))
    }

    /// Prepends the header to a buffer whose first `dataTotalLength` bytes are the packet's data.
    ///
    /// The bytes after them belong to later packets: a PDU is fragmented in place.
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
    /// The connection, the flags and the length of ``payload``.
    public let header: ACLHeader
    /// The data, with the length that the header gives.
    public let payload: RawSpan

    /// - Throws: an error if the length of the packet differs from its header.
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
