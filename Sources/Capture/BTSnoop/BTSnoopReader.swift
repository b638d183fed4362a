import ByteCoding

/// Walks the records of a btsnoop file in memory, one at a time and without copying.
public struct BTSnoopReader: ~Escapable {
    /// The file's header.
    public let header: BTSnoopHeader
    private var reader: ByteReader

    /// Reads the header.
    ///
    /// - Throws: when `bytes` do not begin with one.
    @_lifetime(copy bytes)
    public init(_ bytes: RawSpan) throws(PacketDecodingError) {
        header = try BTSnoopHeader(decoding: bytes)
        reader = ByteReader(bytes)
        try reader.skip(BTSnoopHeader.length)
    }

    /// The octet of the file at which the next record starts.
    public var position: Int { reader.position }

    /// The next record; nil at the end of the file.
    ///
    /// - Throws: when the record is malformed or the file ends within it, as one does whose writer was killed. What was
    ///   read before is good; nothing can be read after.
    @_lifetime(copy self)
    public mutating func next() throws(PacketDecodingError) -> BTSnoopRecord? {
        guard !reader.isAtEnd else { return nil }
        return try BTSnoopRecord(decoding: &reader)
    }
}
