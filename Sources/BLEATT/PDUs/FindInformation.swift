import BLEByteCoding
import BluetoothTypes

/// Requests the types of the attributes in a range (Vol 3, Part F, 3.4.3.1).
public struct FindInformationRequest: ProtocolDataUnit, Hashable, Sendable {
    public static let opcode = ATTOpcode.findInformationRequest

    /// The handles to search.
    public var range: HandleRange

    /// A Find Information Request with its parameters.
    @inlinable
    public init(range: HandleRange) {
        self.range = range
    }

    @inlinable
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(.findInformationRequest)
        range = try reader.readHandleRange()
        try reader.requireEnd()
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.opcode.rawValue, range.start.rawValue, range.end.rawValue)
    }
}

/// Handles and types of attributes, all of the same width (Vol 3, Part F, 3.4.3.2).
public struct FindInformationResponse: ProtocolDataUnit, ~Escapable {
    public static let opcode = ATTOpcode.findInformationResponse

    /// The width of the UUIDs.
    public enum Format: UInt8, Sendable {
        /// UUIDs of 16 bits.
        case uuid16 = 0x01
        /// UUIDs of 128 bits.
        case uuid128 = 0x02

        @inlinable
        var uuidLength: Int { self == .uuid16 ? 2 : 16 }
    }

    /// One attribute.
    public struct Entry: Hashable, Sendable {
        /// The attribute.
        public let handle: AttributeHandle
        /// The attribute's type.
        public let type: BluetoothUUID

        @inlinable
        init(handle: AttributeHandle, type: BluetoothUUID) {
            self.handle = handle
            self.type = type
        }
    }

    /// The width of the UUIDs in ``list``.
    public let format: Format
    /// The entries, one after the other; at least one.
    public let list: RawSpan

    @inlinable
    @_lifetime(copy bytes)
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(.findInformationResponse)
        let value = try reader.readUInt8()
        guard let format = Format(rawValue: value) else { throw .invalidValue(UInt64(value), field: "format") }
        self.format = format
        list = try reader.readList(entryLength: 2 + format.uuidLength, minimum: 4)
    }

    @inlinable
    public func encode(into buffer: inout PacketBuffer) {
        buffer.append(Self.opcode.rawValue)
        buffer.append(format.rawValue)
        buffer.append(list)
    }

    /// An iterator over ``list``.
    @inlinable
    public var entries: Entries {
        @_lifetime(copy self)
        get { Entries(ByteReader(list), uuidLength: format.uuidLength) }
    }

    /// An iterator over the entries.
    public struct Entries: ~Escapable {
        @usableFromInline var reader: ByteReader
        @usableFromInline let uuidLength: Int

        @inlinable
        @_lifetime(copy reader)
        init(_ reader: consuming ByteReader, uuidLength: Int) {
            self.reader = reader
            self.uuidLength = uuidLength
        }

        /// The next entry, or nil after the last.
        @inlinable
        public mutating func next() -> Entry? {
            if uuidLength == 2 {
                guard let both = try? reader.readUInt32() else { return nil }
                return Entry(
                    handle: AttributeHandle(UInt16(truncatingIfNeeded: both)),
                    type: BluetoothUUID(UInt16(truncatingIfNeeded: both >> 16))
                )
            }
            guard let handle = try? reader.readHandle(), let type = try? reader.readUInt128() else { return nil }
            return Entry(handle: handle, type: BluetoothUUID(type))
        }
    }
}
