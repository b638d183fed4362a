import BLEByteCoding
import BluetoothTypes

// The formats that several PDUs share. Such a PDU is a format with a kind, which gives the opcode.

/// Distinguishes the PDUs of one format.
public protocol PDUKind {
    /// The first byte of the PDU.
    static var opcode: ATTOpcode { get }
}

/// A PDU without parameters.
public struct PDUWithoutParameters<Kind: PDUKind>: ProtocolDataUnit, Hashable, Sendable {
    @inlinable
    public static var opcode: ATTOpcode { Kind.opcode }

    /// The PDU, which has no parameters.
    @inlinable
    public init() {}

    @inlinable
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(Kind.opcode)
        try reader.requireEnd()
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Kind.opcode.rawValue)
    }
}

/// A PDU with a value.
public struct ValuePDU<Kind: PDUKind>: ProtocolDataUnit, ~Escapable {
    @inlinable
    public static var opcode: ATTOpcode { Kind.opcode }

    /// The value or a part of it, at most ATT_MTU - 1 bytes.
    public var value: RawSpan

    /// A PDU with its parameters.
    @inlinable
    @_lifetime(copy value)
    public init(value: RawSpan) {
        self.value = value
    }

    @inlinable
    @_lifetime(copy bytes)
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(Kind.opcode)
        value = reader.readRemaining()
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Kind.opcode.rawValue, value)
    }
}

/// A PDU with the handle of an attribute and a value.
public struct HandleValuePDU<Kind: PDUKind>: ProtocolDataUnit, ~Escapable {
    @inlinable
    public static var opcode: ATTOpcode { Kind.opcode }

    /// The attribute.
    public var handle: AttributeHandle
    /// The value or the first part of it, at most ATT_MTU - 3 bytes.
    public var value: RawSpan

    /// A PDU with its parameters.
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
        try reader.readOpcode(Kind.opcode)
        handle = try reader.readHandle()
        value = reader.readRemaining()
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Kind.opcode.rawValue, handle.rawValue, value)
    }
}

/// A PDU with a part of the value of an attribute.
public struct PartValuePDU<Kind: PDUKind>: ProtocolDataUnit, ~Escapable {
    @inlinable
    public static var opcode: ATTOpcode { Kind.opcode }

    /// The attribute.
    public var handle: AttributeHandle
    /// The offset from the start of the value, in bytes.
    public var offset: UInt16
    /// The part, at most ATT_MTU - 5 bytes.
    public var partValue: RawSpan

    /// A PDU with its parameters.
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
        try reader.readOpcode(Kind.opcode)
        handle = try reader.readHandle()
        offset = try reader.readUInt16()
        partValue = reader.readRemaining()
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Kind.opcode.rawValue, handle.rawValue)
        buffer.append(offset)
        buffer.append(partValue)
    }
}

/// A PDU with a set of handles.
public struct HandleSetPDU<Kind: PDUKind>: ProtocolDataUnit, ~Escapable {
    @inlinable
    public static var opcode: ATTOpcode { Kind.opcode }

    /// At least two handles, of 2 bytes each.
    public let list: RawSpan

    @inlinable
    @_lifetime(copy bytes)
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(Kind.opcode)
        list = try reader.readList(entryLength: 2, minimum: 2)
        if list.byteCount < 4 { throw .invalidLength(list.byteCount, field: "set of handles") }
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Kind.opcode.rawValue)
        buffer.append(list)
    }

    /// Appends a request for `handles`; there must be at least two.
    @inlinable
    public static func encode(_ handles: [AttributeHandle], into buffer: inout PacketBuffer) {
        buffer.append(Kind.opcode.rawValue)
        for handle in handles { buffer.append(handle) }
    }

    /// An iterator over ``list``.
    @inlinable
    public var handles: HandleIterator {
        @_lifetime(copy self)
        get { HandleIterator(ByteReader(list)) }
    }
}

/// An iterator over a list of handles.
public struct HandleIterator: ~Escapable {
    @usableFromInline var reader: ByteReader

    @inlinable
    @_lifetime(copy reader)
    init(_ reader: consuming ByteReader) {
        self.reader = reader
    }

    /// The next handle, or nil after the last.
    @inlinable
    public mutating func next() -> AttributeHandle? {
        try? reader.readHandle()
    }
}
