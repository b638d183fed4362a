import BLEByteCoding
import BluetoothTypes

/// Sends several values at once (Vol 3, Part F, 3.4.7.4).
public struct MultipleHandleValueNotification: ProtocolDataUnit, ~Escapable {
    public static let opcode = ATTOpcode.multipleHandleValueNotification

    /// One attribute's value.
    public struct Entry: ~Escapable {
        /// The attribute.
        public let handle: AttributeHandle
        /// The whole value.
        public let value: RawSpan

        @inlinable
        @_lifetime(copy value)
        init(handle: AttributeHandle, value: RawSpan) {
            self.handle = handle
            self.value = value
        }
    }

    /// Two entries or more: handle, length and value.
    public let list: RawSpan

    @inlinable
    @_lifetime(copy bytes)
    public init(decoding bytes: RawSpan) throws(PacketDecodingError) {
        var reader = ByteReader(bytes)
        try reader.readOpcode(.multipleHandleValueNotification)
        list = reader.readRemaining()
        var walker = ByteReader(list)
        var count = 0
        while !walker.isAtEnd {
            try walker.skip(2)
            try walker.skip(Int(try walker.readUInt16()))
            count += 1
        }
        if count < 2 { throw .invalidLength(count, field: "handle length value tuple list") }
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
        @_lifetime(copy self)
        public mutating func next() -> Entry? {
            guard let handle = try? reader.readHandle(), let length = try? reader.readUInt16(),
                let value = try? reader.readBytes(count: Int(length))
            else { return nil }
            return Entry(handle: handle, value: value)
        }
    }
}
