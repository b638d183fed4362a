import BluetoothTypes
import ByteCoding

/// Writes a value and asks for a response (Vol 3, Part F, 3.4.5.1).
public struct WriteRequest: ProtocolDataUnit, ~Escapable {
    public static let opcode = Opcode.writeRequest

    /// The attribute.
    public var handle: AttributeHandle
    /// What to write, at most ATT_MTU - 3 octets.
    public var value: RawSpan

    /// A Write Request with its parameters.
    @inlinable
    @_lifetime(copy value)
    public init(handle: AttributeHandle, value: RawSpan) {
        self.handle = handle
        self.value = value
    }

    @inlinable
    @_lifetime(copy bytes)
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(.writeRequest)
        handle = try reader.readHandle()
        value = reader.readRemaining()
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.opcode.rawValue, handle.rawValue, value)
    }
}

/// A value has been written (Vol 3, Part F, 3.4.5.2).
public struct WriteResponse: ProtocolDataUnit, Hashable, Sendable {
    public static let opcode = Opcode.writeResponse

    /// A Write Response, which has no parameters.
    @inlinable
    public init() {}

    @inlinable
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(.writeResponse)
        try reader.requireEnd()
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.opcode.rawValue)
    }
}

/// Writes a value without a response (Vol 3, Part F, 3.4.5.3).
public struct WriteCommand: ProtocolDataUnit, ~Escapable {
    public static let opcode = Opcode.writeCommand

    /// The attribute.
    public var handle: AttributeHandle
    /// What to write, at most ATT_MTU - 3 octets.
    public var value: RawSpan

    /// A Write Command with its parameters.
    @inlinable
    @_lifetime(copy value)
    public init(handle: AttributeHandle, value: RawSpan) {
        self.handle = handle
        self.value = value
    }

    @inlinable
    @_lifetime(copy bytes)
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(.writeCommand)
        handle = try reader.readHandle()
        value = reader.readRemaining()
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.opcode.rawValue, handle.rawValue, value)
    }
}
