import BLEByteCoding

/// One AD structure, borrowed: its type and its data (Vol 3, Part C, 11).
public struct ADStructure: ~Escapable {
    /// The kind of data in ``data``.
    public let type: ADType
    /// The bytes after the AD type, borrowed: at most 254, possibly none. Numbers in them are little-endian.
    public let data: RawSpan

    /// Creates a structure that borrows `data`.
    @inlinable
    @_lifetime(copy data)
    public init(type: ADType, data: RawSpan) {
        self.type = type
        self.data = data
    }

    /// The bytes of each UUID, if the structure is a list of UUIDs or data with a UUID at its start.
    @inlinable
    var uuidLength: Int? {
        switch type {
        case .incompleteServiceUUIDs16, .completeServiceUUIDs16, .solicitedServiceUUIDs16, .serviceData16: 2
        case .incompleteServiceUUIDs32, .completeServiceUUIDs32, .solicitedServiceUUIDs32, .serviceData32: 4
        case .incompleteServiceUUIDs128, .completeServiceUUIDs128, .solicitedServiceUUIDs128, .serviceData128: 16
        default: nil
        }
    }

    /// The UUIDs of a list; none for a structure of another type. Trailing bytes that form no whole UUID are ignored.
    @inlinable
    public var uuids: UUIDIterator {
        @_lifetime(copy self)
        get { UUIDIterator(ByteReader(data), uuidLength: uuidLength ?? 0) }
    }

    /// Iterates over a list of UUIDs.
    public struct UUIDIterator: ~Escapable {
        @usableFromInline var reader: ByteReader
        @usableFromInline let uuidLength: Int

        @inlinable
        @_lifetime(copy reader)
        init(_ reader: consuming ByteReader, uuidLength: Int) {
            self.reader = reader
            self.uuidLength = uuidLength
        }

        /// Returns the next UUID; nil at the end of the list, or if the structure has no UUIDs.
        @inlinable
        public mutating func next() -> BluetoothUUID? {
            guard uuidLength > 0 else { return nil }
            return try? BluetoothUUID(decoding: reader.readBytes(count: uuidLength))
        }
    }
}

/// Iterates over the AD structures of advertising data without copying them.
///
/// A length of zero ends the significant part (Vol 3, Part C, 11). The iterator throws an error for a structure that
/// extends past the end of the data. It then ends.
public struct ADStructureIterator: ~Escapable {
    @usableFromInline var reader: ByteReader

    /// Creates an iterator at the first structure of `data`, which is the data of an advertising event or a scan
    /// response.
    @inlinable
    @_lifetime(copy data)
    public init(_ data: RawSpan) {
        reader = ByteReader(data)
    }

    /// Returns the next structure; nil at the end of the significant part.
    ///
    /// - Throws: `PacketDecodingError.truncated` if the structure extends past the end of the data. The next call
    ///   returns nil.
    @inlinable
    @_lifetime(copy self)
    public mutating func next() throws(PacketDecodingError) -> ADStructure? {
        if reader.isAtEnd { return nil }
        let length = Int(try reader.readUInt8())
        if length == 0 {
            _ = reader.readRemaining()
            return nil
        }
        guard length <= reader.remaining else {
            let available = reader.remaining
            _ = reader.readRemaining()
            throw .truncated(needed: length, available: available)
        }
        let type = ADType(rawValue: try reader.readUInt8())
        return ADStructure(type: type, data: try reader.readBytes(count: length - 1))
    }
}
