import BluetoothTypes
import ByteCoding

/// Asks the server to queue a part of a value (Vol 3, Part F, 3.4.6.1).
public struct PrepareWriteRequest: ProtocolDataUnit, ~Escapable {
    public static let opcode = Opcode.prepareWriteRequest

    /// The attribute.
    public var handle: AttributeHandle
    /// From the start of the value, in octets.
    public var offset: UInt16
    /// The part, at most ATT_MTU - 5 octets.
    public var partValue: RawSpan

    /// A Prepare Write Request with its parameters.
    @inlinable
    @_lifetime(copy partValue)
    public init(handle: AttributeHandle, offset: UInt16, partValue: RawSpan) {
        self.handle = handle
        self.offset = offset
        self.partValue = partValue
    }

    @inlinable
    @_lifetime(copy bytes)
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(.prepareWriteRequest)
        handle = try reader.readHandle()
        offset = try reader.readUInt16()
        partValue = reader.readRemaining()
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.opcode.rawValue, handle.rawValue)
        buffer.append(offset)
        buffer.append(partValue)
    }
}

/// A part of a value is in the queue, as the server understood it (Vol 3, Part F, 3.4.6.2).
public struct PrepareWriteResponse: ProtocolDataUnit, ~Escapable {
    public static let opcode = Opcode.prepareWriteResponse

    /// The attribute, as in the request.
    public var handle: AttributeHandle
    /// From the start of the value, in octets.
    public var offset: UInt16
    /// The part, at most ATT_MTU - 5 octets.
    public var partValue: RawSpan

    /// A Prepare Write Response with its parameters.
    @inlinable
    @_lifetime(copy partValue)
    public init(handle: AttributeHandle, offset: UInt16, partValue: RawSpan) {
        self.handle = handle
        self.offset = offset
        self.partValue = partValue
    }

    @inlinable
    @_lifetime(copy bytes)
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(.prepareWriteResponse)
        handle = try reader.readHandle()
        offset = try reader.readUInt16()
        partValue = reader.readRemaining()
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.opcode.rawValue, handle.rawValue)
        buffer.append(offset)
        buffer.append(partValue)
    }
}
