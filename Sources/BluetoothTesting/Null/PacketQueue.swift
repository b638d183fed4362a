import BLEByteCoding

/// A queue of packets, stored one after the other in a reused buffer.
struct PacketQueue {
    private var buffer = PacketBuffer(capacity: 4096, headroom: 0)
    private var ends: [Int] = []

    var isEmpty: Bool { ends.isEmpty }

    /// Adds the packet that `encode` appends to the buffer; none if it appends nothing.
    mutating func append(_ encode: (inout PacketBuffer) -> Void) {
        encode(&buffer)
        if buffer.count > ends.last ?? 0 { ends.append(buffer.count) }
    }

    mutating func removeAll() {
        buffer.reset()
        // Cheaper for few packets than `removeAll(keepingCapacity:)`, which the compiler does not inline.
        while !ends.isEmpty { ends.removeLast() }
    }

    func forEach(_ body: (RawSpan) -> Void) {
        let bytes = buffer.bytes
        var start = 0
        for end in ends {
            body(bytes.extracting(start..<end))
            start = end
        }
    }
}
