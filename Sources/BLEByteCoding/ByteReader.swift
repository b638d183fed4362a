/// Reads little-endian fields from borrowed bytes. Each read checks once that enough bytes remain.
///
/// The reader never copies: ``readBytes(count:)`` and ``readRemaining()`` return spans of the bytes it was given. These
/// spans live as long as those bytes. A failed read throws and does not change the position.
public struct ByteReader: ~Escapable {
    @usableFromInline
    let bytes: RawSpan
    @usableFromInline
    var offset = 0

    /// Creates a reader at the start of `bytes`.
    @inlinable
    @_lifetime(copy bytes)
    public init(_ bytes: RawSpan) {
        self.bytes = bytes
    }

    /// The number of bytes read so far.
    @inlinable
    public var position: Int { offset }

    /// The number of bytes left to read.
    @inlinable
    public var remaining: Int { bytes.byteCount &- offset }

    /// Whether all bytes have been read.
    @inlinable
    public var isAtEnd: Bool { offset == bytes.byteCount }

    /// Reads one byte.
    ///
    /// - Throws: ``PacketDecodingError/truncated(needed:available:)`` if none remains.
    @inlinable
    @inline(__always)
    public mutating func readUInt8() throws(PacketDecodingError) -> UInt8 {
        try load(UInt8.self)
    }

    /// Reads one byte as a signed number.
    ///
    /// - Throws: ``PacketDecodingError/truncated(needed:available:)`` if none remains.
    @inlinable
    public mutating func readInt8() throws(PacketDecodingError) -> Int8 {
        try load(Int8.self)
    }

    /// Reads two bytes, least significant first.
    ///
    /// - Throws: ``PacketDecodingError/truncated(needed:available:)`` if fewer remain.
    @inlinable
    @inline(__always)
    public mutating func readUInt16() throws(PacketDecodingError) -> UInt16 {
        UInt16(littleEndian: try load(UInt16.self))
    }

    /// Reads three bytes, least significant first.
    @inlinable
    public mutating func readUInt24() throws(PacketDecodingError) -> UInt32 {
        try require(3)
        let low = unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt16.self)
        let high = unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset &+ 2, as: UInt8.self)
        offset &+= 3
        return UInt32(UInt16(littleEndian: low)) | UInt32(high) << 16
    }

    /// Reads four bytes, least significant first.
    ///
    /// - Throws: ``PacketDecodingError/truncated(needed:available:)`` if fewer remain.
    @inlinable
    @inline(__always)
    public mutating func readUInt32() throws(PacketDecodingError) -> UInt32 {
        UInt32(littleEndian: try load(UInt32.self))
    }

    /// Reads six bytes, least significant first, as a device address is sent.
    @inlinable
    @inline(__always)
    public mutating func readUInt48() throws(PacketDecodingError) -> UInt64 {
        try require(6)
        let low = unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self)
        let high = unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset &+ 4, as: UInt16.self)
        offset &+= 6
        return UInt64(UInt32(littleEndian: low)) | UInt64(UInt16(littleEndian: high)) << 32
    }

    /// Reads eight bytes, least significant first.
    ///
    /// - Throws: ``PacketDecodingError/truncated(needed:available:)`` if fewer remain.
    @inlinable
    public mutating func readUInt64() throws(PacketDecodingError) -> UInt64 {
        UInt64(littleEndian: try load(UInt64.self))
    }

    /// Reads 16 bytes, least significant first.
    ///
    /// - Throws: ``PacketDecodingError/truncated(needed:available:)`` if fewer remain. It then reports the 8 bytes of
    ///   the missing half as needed.
    @inlinable
    public mutating func readUInt128() throws(PacketDecodingError) -> UInt128 {
        let low = try readUInt64()
        do throws(PacketDecodingError) {
            return UInt128(low) | UInt128(try readUInt64()) << 64
        } catch {
            offset &-= 8
            throw error
        }
    }

    /// Borrows the next `count` bytes.
    @inlinable
    @inline(__always)
    @_lifetime(copy self)
    public mutating func readBytes(count: Int) throws(PacketDecodingError) -> RawSpan {
        try require(count)
        let start = offset
        offset &+= count
        return unsafe bytes.extracting(unchecked: start..<offset)
    }

    /// Borrows all remaining bytes, possibly none.
    @inlinable
    @inline(__always)
    @_lifetime(copy self)
    public mutating func readRemaining() -> RawSpan {
        let start = offset
        offset = bytes.byteCount
        return unsafe bytes.extracting(unchecked: start..<offset)
    }

    /// Moves past the next `count` bytes.
    ///
    /// - Throws: ``PacketDecodingError/truncated(needed:available:)`` if fewer remain, or `count` is negative.
    @inlinable
    public mutating func skip(_ count: Int) throws(PacketDecodingError) {
        try require(count)
        offset &+= count
    }

    /// Throws ``PacketDecodingError/trailingBytes(count:)`` unless all bytes have been read.
    @inlinable
    public func requireEnd() throws(PacketDecodingError) {
        if remaining != 0 { throw .trailingBytes(count: remaining) }
    }

    @inlinable
    @inline(__always)
    func require(_ count: Int) throws(PacketDecodingError) {
        // Compared as unsigned numbers, a negative count is larger than any possible remainder, so one comparison
        // suffices.
        if UInt(bitPattern: remaining) < UInt(bitPattern: count) { throw truncated(count) }
    }

    /// Kept out of the readers, which are inlined wherever a field is read.
    @usableFromInline
    @inline(never)
    func truncated(_ count: Int) -> PacketDecodingError {
        .truncated(needed: count, available: remaining)
    }

    @inlinable
    @inline(__always)
    mutating func load<Value: FixedWidthInteger & BitwiseCopyable>(
        _ type: Value.Type
    ) throws(PacketDecodingError) -> Value {
        try require(MemoryLayout<Value>.size)
        let value = unsafe bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: type)
        offset &+= MemoryLayout<Value>.size
        return value
    }
}
