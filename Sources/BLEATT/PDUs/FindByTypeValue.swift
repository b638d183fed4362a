import BLEByteCoding
import BluetoothTypes

/// Requests the attributes of a type that have a given value (Vol 3, Part F, 3.4.3.3).
public struct FindByTypeValueRequest: ProtocolDataUnit, ~Escapable {
    public static let opcode = ATTOpcode.findByTypeValueRequest

    /// The handles to search.
    public var range: HandleRange
    /// A 16-bit UUID.
    public var type: UInt16
    /// The complete value to compare with.
    public var value: RawSpan

    /// A Find By Type Value Request with its parameters.
    @inlinable
    @_lifetime(copy value)
    public init(range: HandleRange, type: UInt16, value: RawSpan) {
        self.range = range
        self.type = type
        self.value = value
    }

    @inlinable
    @_lifetime(copy bytes)
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(.findByTypeValueRequest)
        range = try reader.readHandleRange()
        type = try reader.readUInt16()
        value = reader.readRemaining()
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.opcode.rawValue, range.start.rawValue, range.end.rawValue)
        buffer.append(type)
        buffer.append(value)
    }
}

/// The found attributes and the ends of their groups (Vol 3, Part F, 3.4.3.4).
public struct FindByTypeValueResponse: ProtocolDataUnit, ~Escapable {
    public static let opcode = ATTOpcode.findByTypeValueResponse

    /// One attribute and the end of its group, which is its own handle if it heads no group.
    public struct Entry: Hashable, Sendable {
        /// The handle of the attribute.
        public let handle: AttributeHandle
        /// The last handle of the group.
        public let endGroupHandle: AttributeHandle

        @inlinable
        init(handle: AttributeHandle, endGroupHandle: AttributeHandle) {
            self.handle = handle
            self.endGroupHandle = endGroupHandle
        }
    }

    /// The entries, one after the other; at least one.
    public let list: RawSpan

    @inlinable
    @_lifetime(copy bytes)
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(.findByTypeValueResponse)
        list = try reader.readList(entryLength: 4, minimum: 4)
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.opcode.rawValue)
        buffer.append(list)
    }

    /// An iterator over ``list``.
    @inlinable
    public var entries: Entries {
        @_lifetime(copy self)
        get { Entries(ByteReader(list)) }
    }

    /// An iterator over the entries.
    public struct Entries: ~Escapable {
        @usableFromInline var reader: ByteReader

        @inlinable
        @_lifetime(copy reader)
        init(_ reader: consuming ByteReader) {
            self.reader = reader
        }

        /// The next entry, or nil after the last.
        @inlinable
        public mutating func next() -> Entry? {
            guard let handle = try? reader.readHandle(), let end = try? reader.readHandle() else { return nil }
            return Entry(handle: handle, endGroupHandle: end)
        }
    }
}
