import BluetoothTypes
import ByteCoding

/// Tells a value without asking for a confirmation (Vol 3, Part F, 3.4.7.1).
public struct HandleValueNotification: ProtocolDataUnit, ~Escapable {
    public static let opcode = Opcode.handleValueNotification

    /// The attribute.
    public var handle: AttributeHandle
    /// The value, or its first ATT_MTU - 3 octets.
    public var value: RawSpan

    /// A Handle Value Notification with its parameters.
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
        try reader.readOpcode(.handleValueNotification)
        handle = try reader.readHandle()
        value = reader.readRemaining()
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.opcode.rawValue, handle.rawValue, value)
    }
}

/// Tells a value and asks for a confirmation (Vol 3, Part F, 3.4.7.2).
public struct HandleValueIndication: ProtocolDataUnit, ~Escapable {
    public static let opcode = Opcode.handleValueIndication

    /// The attribute.
    public var handle: AttributeHandle
    /// The value, or its first ATT_MTU - 3 octets.
    public var value: RawSpan

    /// A Handle Value Indication with its parameters.
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
        try reader.readOpcode(.handleValueIndication)
        handle = try reader.readHandle()
        value = reader.readRemaining()
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.opcode.rawValue, handle.rawValue, value)
    }
}

/// An indication has been received (Vol 3, Part F, 3.4.7.3).
public struct HandleValueConfirmation: ProtocolDataUnit, Hashable, Sendable {
    public static let opcode = Opcode.handleValueConfirmation

    /// A Handle Value Confirmation, which has no parameters.
    @inlinable
    public init() {}

    @inlinable
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(.handleValueConfirmation)
        try reader.requireEnd()
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.opcode.rawValue)
    }
}
