import BLEByteCoding

/// A queue of packets, stored one after the other in a reused buffer.
final class PacketQueue {
    // Release builds omit the checks that accesses do not overlap. The closures must not use the queue.
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private var buffer = PacketBuffer(capacity: 4096, headroom: 0)
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    private var ends: [Int] = []

    var isEmpty: Bool { ends.isEmpty }

    /// Adds the packet that `encode` appends to the buffer; none if it appends nothing. `encode` must not use the
    /// queue.
    func append(_ encode: (inout PacketBuffer) -> Void) {
        encode(&buffer)
        if buffer.count > ends.last ?? 0 { ends.append(buffer.count) }
    }

    func removeAll() {
        buffer.reset()
        // Cheaper for few packets than `removeAll(keepingCapacity:)`, which the compiler does not inline.
        while !ends.isEmpty { ends.removeLast() }
    }

    /// Calls `body` with each packet. `body` must not use the queue.
    func withEach(_ body: (RawSpan) -> Void) {
        let buffer = buffer
        let bytes = buffer.bytes
        var start = 0
        for end in ends {
            body(bytes.extracting(start..<end))
            start = end
        }
    }
}
