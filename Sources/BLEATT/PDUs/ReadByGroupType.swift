import BLEByteCoding
import BluetoothTypes

/// Requests the groups of a type in a range (Vol 3, Part F, 3.4.4.9).
public struct ReadByGroupTypeRequest: ProtocolDataUnit, Hashable, Sendable {
    public static let opcode = ATTOpcode.readByGroupTypeRequest

    /// The handles to search.
    public var range: HandleRange
    /// A UUID of 16 or 128 bits.
    public var groupType: BluetoothUUID

    /// A Read By Group Type Request with its parameters.
    @inlinable
    public init(range: HandleRange, groupType: BluetoothUUID) {
        self.range = range
        self.groupType = groupType
    }

    @inlinable
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(.readByGroupTypeRequest)
        range = try reader.readHandleRange()
        groupType = try reader.readAttributeType()
        try reader.requireEnd()
    }

    @inlinable
    @inline(__always)
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.opcode, range, groupType)
    }
}

/// Groups whose values have the same length (Vol 3, Part F, 3.4.4.10).
public struct ReadByGroupTypeResponse: ProtocolDataUnit, ~Escapable {
    public static let opcode = ATTOpcode.readByGroupTypeResponse

    /// One group: its first and last handle and its value, which may be truncated.
    public struct Entry: ~Escapable {
        /// The group's first handle.
        public let handle: AttributeHandle
        /// The last handle of the group.
        public let endGroupHandle: AttributeHandle
        /// The value, at most its first 251 bytes.
        public let value: RawSpan

        @inlinable
        @_lifetime(copy value)
        init(handle: AttributeHandle, endGroupHandle: AttributeHandle, value: RawSpan) {
            self.handle = handle
            self.endGroupHandle = endGroupHandle
            self.value = value
        }
    }

    /// The length of each entry in bytes: 4 for the handles, and that of the value.
    public let length: UInt8
    /// The entries, one after the other; at least one.
    public let list: RawSpan

    @inlinable
    @_lifetime(copy bytes)
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(.readByGroupTypeResponse)
        length = try reader.readUInt8()
        list = try reader.readList(entryLength: Int(length), minimum: 4)
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.opcode.rawValue)
        buffer.append(length)
        buffer.append(list)
    }

    /// An iterator over ``list``.
    @inlinable
    public var entries: Entries {
        @_lifetime(copy self)
        get { Entries(ByteReader(list), length: Int(length)) }
    }

    /// An iterator over the entries.
    public struct Entries: ~Escapable {
        @usableFromInline var reader: ByteReader
        @usableFromInline let length: Int

        @inlinable
        @_lifetime(copy reader)
        init(_ reader: consuming ByteReader, length: Int) {
            self.reader = reader
            self.length = length
        }

        /// The next entry, or nil after the last.
        @inlinable
        @_lifetime(copy self)
        public mutating func next() -> Entry? {
            guard let handle = try? reader.readHandle(), let end = try? reader.readHandle(),
                let value = try? reader.readBytes(count: length - 4)
            else { return nil }
            return Entry(handle: handle, endGroupHandle: end, value: value)
        }
    }
}
