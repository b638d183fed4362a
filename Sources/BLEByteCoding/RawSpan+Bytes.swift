extension Array where Element == UInt8 {
    /// Copies borrowed bytes into a new array.
    @inlinable
    public init(copying bytes: RawSpan) {
        self = unsafe bytes.withUnsafeBytes { unsafe Array($0) }
    }

    /// Appends a copy of borrowed bytes.
    @inlinable
    public mutating func append(copying bytes: RawSpan) {
        unsafe bytes.withUnsafeBytes { unsafe append(contentsOf: $0) }
    }

    /// Replaces all bytes by a copy of borrowed bytes. The array's memory is kept, unless it is shared or too small.
    @inlinable
    public mutating func replaceAll(copying bytes: RawSpan) {
        guard count == bytes.byteCount else {
            removeAll(keepingCapacity: true)
            return append(copying: bytes)
        }
        unsafe withUnsafeMutableBytes { destination in
            unsafe bytes.withUnsafeBytes { unsafe destination.copyMemory(from: $0) }
        }
    }

    /// The array's bytes, borrowed.
    @inlinable
    public var rawSpan: RawSpan {
        @_lifetime(borrow self)
        get { unsafe span.bytes }
    }
}

extension RawSpan {
    /// The byte at `offset`, or nil past the end.
    @inlinable
    public subscript(checked offset: Int) -> UInt8? {
        guard offset >= 0, offset < byteCount else { return nil }
        return unsafe unsafeLoad(fromByteOffset: offset, as: UInt8.self)
    }

    /// Whether both spans hold the same bytes.
    @inlinable
    public func elementsEqual(_ other: RawSpan) -> Bool {
        guard byteCount == other.byteCount else { return false }
        return unsafe withUnsafeBytes { left in
            unsafe other.withUnsafeBytes { right in
                unsafe left.elementsEqual(right)
            }
        }
    }
}
