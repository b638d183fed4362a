import BluetoothTypes
import ByteCoding

/// Asks for a value (Vol 3, Part F, 3.4.4.3).
public struct ReadRequest: ProtocolDataUnit, Hashable, Sendable {
    public static let opcode = Opcode.readRequest

    /// The attribute.
    public var handle: AttributeHandle

    /// A Read Request with its parameters.
    @inlinable
    public init(handle: AttributeHandle) {
        self.handle = handle
    }

    @inlinable
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(.readRequest)
        handle = try reader.readHandle()
        try reader.requireEnd()
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.opcode.rawValue, handle.rawValue)
    }
}

/// The first ATT_MTU - 1 octets of a value (Vol 3, Part F, 3.4.4.4).
public struct ReadResponse: ProtocolDataUnit, ~Escapable {
    public static let opcode = Opcode.readResponse

    /// The value, or its first ATT_MTU - 1 octets.
    public var value: RawSpan

    /// A Read Response with its parameters.
    @inlinable
    @_lifetime(copy value)
    public init(value: RawSpan) {
        self.value = value
    }

    @inlinable
    @_lifetime(copy bytes)
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(.readResponse)
        value = reader.readRemaining()
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.opcode.rawValue, value)
    }
}
