/// One outbound packet: bytes appended at the end, headers prepended in place at the front.
///
/// A PDU is written once, after a headroom that leaves space for the headers of the layers below it; each lower layer
/// then prepends its own without moving what is there. A buffer is made to be reused: ``reset()`` keeps its memory.
public struct PacketBuffer: Sendable {
    /// Space for the H4 indicator (1), the ACL header (4), the L2CAP header (4) and an SDU length (2), rounded up.
    public static let defaultHeadroom = 16

    @usableFromInline
    var storage: [UInt8]
    @usableFromInline
    var start: Int
    @usableFromInline
    let headroom: Int

    /// Makes an empty packet with room for `capacity` octets behind `headroom` octets of headers.
    @inlinable
    public init(capacity: Int = 64, headroom: Int = PacketBuffer.defaultHeadroom) {
        storage = []
        storage.reserveCapacity(headroom + capacity)
        storage.append(contentsOf: repeatElement(0, count: headroom))
        start = headroom
        self.headroom = headroom
    }

    /// How many octets the packet has.
    @inlinable
    public var count: Int { storage.count &- start }

    @inlinable
    public var isEmpty: Bool { count == 0 }

    /// The packet's bytes.
    @inlinable
    public var bytes: RawSpan {
        @_lifetime(borrow self)
        get { unsafe storage.span.bytes.extracting(droppingFirst: start) }
    }

    /// Empties the packet and restores its headroom, keeping the memory.
    @inlinable
    public mutating func reset() {
        if storage.count > headroom {
            storage.removeLast(storage.count &- headroom)
        } else if storage.count < headroom {
            storage.append(contentsOf: repeatElement(0, count: headroom &- storage.count))
        }
        start = headroom
    }

    @inlinable
    public mutating func append(_ value: UInt8) {
        storage.append(value)
    }

    @inlinable
    public mutating func append(_ value: Int8) {
        storage.append(UInt8(bitPattern: value))
    }

    @inlinable
    public mutating func append(_ value: UInt16) {
        storage.append(UInt8(truncatingIfNeeded: value))
        storage.append(UInt8(truncatingIfNeeded: value >> 8))
    }

    /// Appends the low three octets of `value`, least significant first.
    @inlinable
    public mutating func appendUInt24(_ value: UInt32) {
        append(UInt16(truncatingIfNeeded: value))
        append(UInt8(truncatingIfNeeded: value >> 16))
    }

    @inlinable
    public mutating func append(_ value: UInt32) {
        append(UInt16(truncatingIfNeeded: value))
        append(UInt16(truncatingIfNeeded: value >> 16))
    }

    /// Appends the low six octets of `value`, least significant first, as a device address is sent.
    @inlinable
    public mutating func appendUInt48(_ value: UInt64) {
        append(UInt32(truncatingIfNeeded: value))
        append(UInt16(truncatingIfNeeded: value >> 32))
    }

    @inlinable
    public mutating func append(_ value: UInt64) {
        append(UInt32(truncatingIfNeeded: value))
        append(UInt32(truncatingIfNeeded: value >> 32))
    }

    @inlinable
    public mutating func append(_ value: UInt128) {
        append(UInt64(truncatingIfNeeded: value))
        append(UInt64(truncatingIfNeeded: value >> 64))
    }

    @inlinable
    public mutating func append(_ bytes: RawSpan) {
        unsafe bytes.withUnsafeBytes { unsafe storage.append(contentsOf: $0) }
    }

    @inlinable
    public mutating func append(_ bytes: [UInt8]) {
        storage.append(contentsOf: bytes)
    }

    /// Appends `count` octets of zero, as padding.
    @inlinable
    public mutating func appendZeros(_ count: Int) {
        storage.append(contentsOf: repeatElement(0, count: count))
    }

    @inlinable
    public mutating func prepend(_ value: UInt8) {
        makeHeadroom(1)
        start &-= 1
        storage[start] = value
    }

    @inlinable
    public mutating func prepend(_ value: UInt16) {
        makeHeadroom(2)
        start &-= 2
        storage[start] = UInt8(truncatingIfNeeded: value)
        storage[start &+ 1] = UInt8(truncatingIfNeeded: value >> 8)
    }

    /// Writes over the octet at `offset` from the packet's start, for a length or count known only afterwards.
    ///
    /// - Precondition: `offset` lies in the packet.
    @inlinable
    public mutating func overwrite(at offset: Int, with value: UInt8) {
        storage[start &+ offset] = value
    }

    /// Writes over the two octets at `offset` from the packet's start.
    ///
    /// - Precondition: both octets lie in the packet.
    @inlinable
    public mutating func overwrite(at offset: Int, with value: UInt16) {
        storage[start &+ offset] = UInt8(truncatingIfNeeded: value)
        storage[start &+ offset &+ 1] = UInt8(truncatingIfNeeded: value >> 8)
    }

    /// Drops `count` octets from the front; the space becomes headroom again.
    ///
    /// - Precondition: the packet has that many.
    @inlinable
    public mutating func removeFirst(_ count: Int) {
        precondition(count >= 0 && count <= self.count)
        start &+= count
    }

    /// Drops octets from the end until the packet has `count` of them, where it has more.
    @inlinable
    public mutating func truncate(to count: Int) {
        if self.count > count { storage.removeLast(self.count &- count) }
    }

    @inlinable
    mutating func makeHeadroom(_ count: Int) {
        if start < count {
            storage.insert(contentsOf: repeatElement(0, count: PacketBuffer.defaultHeadroom), at: 0)
            start &+= PacketBuffer.defaultHeadroom
        }
    }
}

extension PacketBuffer {
    /// Runs `encode` on an empty buffer and returns what it wrote: for tests, tools and other places off the packet path.
    @inlinable
    public static func bytes(_ encode: (inout PacketBuffer) -> Void) -> [UInt8] {
        var buffer = PacketBuffer()
        encode(&buffer)
        return [UInt8](copying: buffer.bytes)
    }
}
