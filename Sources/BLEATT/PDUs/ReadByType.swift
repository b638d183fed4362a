import BLEByteCoding
import BluetoothTypes

/// Requests the values of a type in a range (Vol 3, Part F, 3.4.4.1).
public struct ReadByTypeRequest: ProtocolDataUnit, Hashable, Sendable {
    public static let opcode = ATTOpcode.readByTypeRequest

    /// The handles to search.
    public var range: HandleRange
    /// A UUID of 16 or 128 bits.
    public var type: BluetoothUUID

    /// A Read By Type Request with its parameters.
    @inlinable
    public init(range: HandleRange, type: BluetoothUUID) {
        self.range = range
        self.type = type
    }

    @inlinable
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(.readByTypeRequest)
        range = try reader.readHandleRange()
        type = try reader.readAttributeType()
        try reader.requireEnd()
    }

    @inlinable
    @inline(__always)
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.opcode, range, type)
    }
}

/// Values of the same length with their handles (Vol 3, Part F, 3.4.4.2).
public struct ReadByTypeResponse: ProtocolDataUnit, ~Escapable {
    public static let opcode = ATTOpcode.readByTypeResponse

    /// One value, which may be truncated.
    public struct Entry: ~Escapable {
        /// The attribute.
        public let handle: AttributeHandle
        /// The value, at most its first 253 bytes.
        public let value: RawSpan

        @inlinable
        @_lifetime(copy value)
        init(handle: AttributeHandle, value: RawSpan) {
            self.handle = handle
            self.value = value
        }
    }

    /// The length of each entry in bytes: 2 for the handle, and that of the value.
    public let length: UInt8
    /// The entries, one after the other; at least one.
    public let list: RawSpan

    @inlinable
    @_lifetime(copy bytes)
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(.readByTypeResponse)
        length = try reader.readUInt8()
        list = try reader.readList(entryLength: Int(length), minimum: 2)
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
            guard let handle = try? reader.readHandle(), let value = try? reader.readBytes(count: length - 2) else {
                return nil
            }
            return Entry(handle: handle, value: value)
        }
    }
}
