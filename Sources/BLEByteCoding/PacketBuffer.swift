/// One outbound packet: bytes are appended at the end, headers are prepended in place at the front.
///
/// A PDU is written once, behind a headroom for the headers of the lower layers. Each lower layer then prepends its
/// header without moving the bytes already written. A buffer is meant to be reused: ``reset()`` keeps its memory.
public struct PacketBuffer: Sendable {
    /// Space for the H4 indicator (1), the ACL header (4), the L2CAP header (4) and an SDU length (2), rounded up.
    public static let defaultHeadroom = 16

    /// The packet lies between `start` and `end`. The array always has its full length, so a field costs one check and
    /// one store.
    @usableFromInline
    var storage: [UInt8]
    @usableFromInline
    var start: Int
    @usableFromInline
    var end: Int
    @usableFromInline
    let headroom: Int

    /// Creates an empty packet with capacity for `capacity` bytes behind `headroom` bytes for headers.
    @inlinable
    public init(capacity: Int = 64, headroom: Int = PacketBuffer.defaultHeadroom) {
        precondition(capacity >= 0 && headroom >= 0)
        storage = [UInt8](repeating: 0, count: headroom + capacity)
        start = headroom
        end = headroom
        self.headroom = headroom
    }

    /// The length of the packet, in bytes.
    @inlinable
    public var count: Int { end &- start }

    /// Whether the packet has no bytes. Its headroom does not count.
    @inlinable
    public var isEmpty: Bool { count == 0 }

    /// The packet's bytes.
    @inlinable
    public var bytes: RawSpan {
        @_lifetime(borrow self)
        get { unsafe storage.span.bytes.extracting(start..<end) }
    }

    /// Empties the packet and restores its headroom, keeping the memory.
    @inlinable
    public mutating func reset() {
        start = headroom
        end = headroom
    }

    // MARK: Appending

    /// Appends one byte.
    @inlinable
    public mutating func append(_ value: UInt8) {
        appendInteger(value)
    }

    /// Appends a signed number as one byte, in two's complement.
    @inlinable
    public mutating func append(_ value: Int8) {
        appendInteger(value)
    }

    /// Appends two bytes, least significant first.
    @inlinable
    public mutating func append(_ value: UInt16) {
        appendInteger(value)
    }

    /// Appends the low three bytes of `value`, least significant first.
    @inlinable
    public mutating func appendUInt24(_ value: UInt32) {
        append(UInt16(truncatingIfNeeded: value))
        append(UInt8(truncatingIfNeeded: value >> 16))
    }

    /// Appends four bytes, least significant first.
    @inlinable
    public mutating func append(_ value: UInt32) {
        appendInteger(value)
    }

    /// Appends the low six bytes of `value`, least significant first, as a device address is sent.
    @inlinable
    public mutating func appendUInt48(_ value: UInt64) {
        append(UInt32(truncatingIfNeeded: value))
        append(UInt16(truncatingIfNeeded: value >> 32))
    }

    /// Appends eight bytes, least significant first.
    @inlinable
    public mutating func append(_ value: UInt64) {
        appendInteger(value)
    }

    /// Appends 16 bytes, least significant first.
    @inlinable
    public mutating func append(_ value: UInt128) {
        append(UInt64(truncatingIfNeeded: value))
        append(UInt64(truncatingIfNeeded: value >> 64))
    }

    /// Appends a copy of `bytes`.
    @inlinable
    public mutating func append(_ bytes: RawSpan) {
        makeRoom(bytes.byteCount)
        let place = end
        unsafe storage.withUnsafeMutableBytes { unsafe PacketBuffer.copy(bytes, to: $0, at: place) }
        end &+= bytes.byteCount
    }

    /// Appends a copy of `bytes`.
    @inlinable
    public mutating func append(_ bytes: [UInt8]) {
        append(bytes.rawSpan)
    }

    /// Appends a number and the bytes after it, with one capacity check.
    @inlinable
    public mutating func append(_ first: UInt8, _ rest: RawSpan) {
        makeRoom(rest.byteCount &+ 1)
        let place = end
        unsafe storage.withUnsafeMutableBytes { storage in
            unsafe storage.storeBytes(of: first, toByteOffset: place, as: UInt8.self)
            unsafe PacketBuffer.copy(rest, to: storage, at: place &+ 1)
        }
        end &+= rest.byteCount &+ 1
    }

    /// Appends two numbers and the bytes after them, with one capacity check.
    @inlinable
    public mutating func append(_ first: UInt8, _ second: UInt16, _ rest: RawSpan) {
        makeRoom(rest.byteCount &+ 3)
        let place = end
        unsafe storage.withUnsafeMutableBytes { storage in
            unsafe storage.storeBytes(of: first, toByteOffset: place, as: UInt8.self)
            unsafe storage.storeBytes(of: second.littleEndian, toByteOffset: place &+ 1, as: UInt16.self)
            unsafe PacketBuffer.copy(rest, to: storage, at: place &+ 3)
        }
        end &+= rest.byteCount &+ 3
    }

    /// Appends `count` zero bytes, as padding.
    @inlinable
    public mutating func appendZeros(_ count: Int) {
        for _ in 0..<count { append(UInt8(0)) }
    }

    @inlinable
    mutating func appendInteger<Value: FixedWidthInteger & BitwiseCopyable>(_ value: Value) {
        makeRoom(MemoryLayout<Value>.size)
        store(value, at: end)
        end &+= MemoryLayout<Value>.size
    }

    /// Copies bytes into the storage. The caller ensures that they fit.
    @inlinable
    static func copy(_ bytes: RawSpan, to storage: UnsafeMutableRawBufferPointer, at offset: Int) {
        unsafe bytes.withUnsafeBytes { bytes in
            guard let source = bytes.baseAddress, let storage = storage.baseAddress else { return }
            unsafe storage.advanced(by: offset).copyMemory(from: source, byteCount: bytes.count)
        }
    }

    // MARK: Appending several fields

    /// Appends numbers in order, with one capacity check.
    @inlinable
    @inline(__always)
    public mutating func append<First: Field, Second: Field>(_ first: First, _ second: Second) {
        var place = beginAppending(MemoryLayout<First>.size &+ MemoryLayout<Second>.size)
        unsafe storage.withUnsafeMutableBytes { storage in
            unsafe PacketBuffer.store(first, to: storage, at: &place)
            unsafe PacketBuffer.store(second, to: storage, at: &place)
        }
    }

    /// Appends numbers in order, with one capacity check.
    @inlinable
    @inline(__always)
    public mutating func append<First: Field, Second: Field, Third: Field>(
        _ first: First,
        _ second: Second,
        _ third: Third
    ) {
        var place = beginAppending(
            MemoryLayout<First>.size &+ MemoryLayout<Second>.size &+ MemoryLayout<Third>.size
        )
        unsafe storage.withUnsafeMutableBytes { storage in
            unsafe PacketBuffer.store(first, to: storage, at: &place)
            unsafe PacketBuffer.store(second, to: storage, at: &place)
            unsafe PacketBuffer.store(third, to: storage, at: &place)
        }
    }

    /// Appends numbers in order, with one capacity check.
    @inlinable
    @inline(__always)
    public mutating func append<First: Field, Second: Field, Third: Field, Fourth: Field>(
        _ first: First,
        _ second: Second,
        _ third: Third,
        _ fourth: Fourth
    ) {
        var place = beginAppending(
            MemoryLayout<First>.size &+ MemoryLayout<Second>.size &+ MemoryLayout<Third>.size
                &+ MemoryLayout<Fourth>.size
        )
        unsafe storage.withUnsafeMutableBytes { storage in
            unsafe PacketBuffer.store(first, to: storage, at: &place)
            unsafe PacketBuffer.store(second, to: storage, at: &place)
            unsafe PacketBuffer.store(third, to: storage, at: &place)
            unsafe PacketBuffer.store(fourth, to: storage, at: &place)
        }
    }

    /// An unsigned number of a packet. Literals default to the signed `Int`, so none is taken for a field of eight
    /// bytes.
    public typealias Field = FixedWidthInteger & UnsignedInteger & BitwiseCopyable

    /// Ensures capacity for `count` bytes, adds them to the packet, and returns the offset of the first.
    @inlinable
    mutating func beginAppending(_ count: Int) -> Int {
        makeRoom(count)
        defer { end &+= count }
        return end
    }

    @inlinable
    static func store<Value: Field>(_ value: Value, to storage: UnsafeMutableRawBufferPointer, at place: inout Int) {
        unsafe storage.storeBytes(of: value.littleEndian, toByteOffset: place, as: Value.self)
        place &+= MemoryLayout<Value>.size
    }

    // MARK: Prepending

    /// Prepends one byte. If the headroom is used up, all bytes move to make more.
    @inlinable
    public mutating func prepend(_ value: UInt8) {
        makeHeadroom(1)
        start &-= 1
        store(value, at: start)
    }

    /// Prepends two bytes, least significant first. If the headroom is too short, all bytes move to make more.
    @inlinable
    public mutating func prepend(_ value: UInt16) {
        makeHeadroom(2)
        start &-= 2
        store(value, at: start)
    }

    /// Prepends two numbers, `first` before `second`, as headers contain them.
    @inlinable
    public mutating func prepend(_ first: UInt16, _ second: UInt16) {
        makeHeadroom(4)
        start &-= 4
        store(UInt32(first) | UInt32(second) << 16, at: start)
    }

    // MARK: Changing

    /// Overwrites the byte at `offset` from the packet's start, for a length or count that is known only later.
    ///
    /// - Precondition: `offset` lies in the packet.
    @inlinable
    public mutating func overwrite(at offset: Int, with value: UInt8) {
        precondition(offset >= 0 && offset < count)
        store(value, at: start &+ offset)
    }

    /// Overwrites the two bytes at `offset` from the packet's start.
    ///
    /// - Precondition: both bytes lie in the packet.
    @inlinable
    public mutating func overwrite(at offset: Int, with value: UInt16) {
        precondition(offset >= 0 && offset < count &- 1)
        store(value, at: start &+ offset)
    }

    /// Removes `count` bytes from the front. Their space becomes headroom again.
    ///
    /// - Precondition: the packet has at least `count` bytes.
    @inlinable
    public mutating func removeFirst(_ count: Int) {
        precondition(count >= 0 && count <= self.count)
        start &+= count
    }

    /// Removes bytes from the end so that at most `count` remain.
    @inlinable
    public mutating func truncate(to count: Int) {
        precondition(count >= 0)
        if count < self.count { end = start &+ count }
    }

    // MARK: Storage

    /// Overwrites part of the storage with a number, least significant byte first. The caller ensures that it fits.
    @inlinable
    mutating func store<Value: FixedWidthInteger & BitwiseCopyable>(_ value: Value, at offset: Int) {
        unsafe storage.withUnsafeMutableBytes {
            unsafe $0.storeBytes(of: value.littleEndian, toByteOffset: offset, as: Value.self)
        }
    }

    @inlinable
    mutating func makeRoom(_ count: Int) {
        if storage.count &- end < count { grow(count) }
    }

    @usableFromInline
    mutating func grow(_ count: Int) {
        let length = max(storage.count * 2, end + count)
        storage.append(contentsOf: repeatElement(0, count: length - storage.count))
    }

    @inlinable
    mutating func makeHeadroom(_ count: Int) {
        if start < count { growHeadroom() }
    }

    @usableFromInline
    mutating func growHeadroom() {
        storage.insert(contentsOf: repeatElement(0, count: PacketBuffer.defaultHeadroom), at: 0)
        start += PacketBuffer.defaultHeadroom
        end += PacketBuffer.defaultHeadroom
    }
}

extension PacketBuffer {
    /// Runs `encode` on an empty buffer and returns the bytes it wrote. For tests, tools and other code off the packet
    /// path.
    @inlinable
    public static func bytes(_ encode: (inout PacketBuffer) -> Void) -> [UInt8] {
        var buffer = PacketBuffer()
        encode(&buffer)
        return [UInt8](copying: buffer.bytes)
    }
}
