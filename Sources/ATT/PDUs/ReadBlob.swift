import BluetoothTypes
import ByteCoding

/// Asks for a value from an offset on (Vol 3, Part F, 3.4.4.5).
public struct ReadBlobRequest: ProtocolDataUnit, Hashable, Sendable {
    public static let opcode = Opcode.readBlobRequest

    /// The attribute.
    public var handle: AttributeHandle
    /// From the start of the value, in octets.
    public var offset: UInt16

    /// A Read Blob Request with its parameters.
    @inlinable
    public init(handle: AttributeHandle, offset: UInt16) {
        self.handle = handle
        self.offset = offset
    }

    @inlinable
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(.readBlobRequest)
        handle = try reader.readHandle()
        offset = try reader.readUInt16()
        try reader.requireEnd()
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.opcode.rawValue, handle.rawValue, offset)
    }
}

/// At most ATT_MTU - 1 octets of a value from the offset on (Vol 3, Part F, 3.4.4.6).
public struct ReadBlobResponse: ProtocolDataUnit, ~Escapable {
    public static let opcode = Opcode.readBlobResponse

    /// The part of the value; empty where the offset is the value's length.
    public var value: RawSpan

    /// A Read Blob Response with its parameters.
    @inlinable
    @_lifetime(copy value)
    public init(value: RawSpan) {
        self.value = value
    }

    @inlinable
    @_lifetime(copy bytes)
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(.readBlobResponse)
        value = reader.readRemaining()
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.opcode.rawValue, value)
    }
}
