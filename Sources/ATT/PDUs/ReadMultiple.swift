import BluetoothTypes
import ByteCoding

/// Asks for several values of known length (Vol 3, Part F, 3.4.4.7).
public struct ReadMultipleRequest: ProtocolDataUnit, ~Escapable {
    public static let opcode = Opcode.readMultipleRequest

    /// Two handles or more, of 2 octets each.
    public let list: RawSpan

    @inlinable
    @_lifetime(copy bytes)
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(.readMultipleRequest)
        list = try reader.readList(entryLength: 2, minimum: 2)
        if list.byteCount < 4 { throw .invalidLength(list.byteCount, field: "set of handles") }
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.opcode.rawValue)
        buffer.append(list)
    }

    /// Appends a request for `handles`, of which there must be two or more.
    public static func encode(_ handles: [AttributeHandle], into buffer: inout PacketBuffer) {
        buffer.append(opcode.rawValue)
        for handle in handles { buffer.append(handle) }
    }

    /// A walk through ``list``.
    @inlinable
    public var handles: HandleIterator {
        @_lifetime(copy self)
        get { HandleIterator(ByteReader(list)) }
    }
}

/// The values one after the other; the last may be cut (Vol 3, Part F, 3.4.4.8).
public struct ReadMultipleResponse: ProtocolDataUnit, ~Escapable {
    public static let opcode = Opcode.readMultipleResponse

    /// The values without their lengths, at most ATT_MTU - 1 octets.
    public var values: RawSpan

    /// A Read Multiple Response with its parameters.
    @inlinable
    @_lifetime(copy values)
    public init(values: RawSpan) {
        self.values = values
    }

    @inlinable
    @_lifetime(copy bytes)
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(.readMultipleResponse)
        values = reader.readRemaining()
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.opcode.rawValue)
        buffer.append(values)
    }
}

/// Walks a list of handles.
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
