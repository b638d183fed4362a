import BLEByteCoding

/// Free packet buffers. After the first few packets, a packet costs no allocation.
struct BufferPool {
    /// The buffer that was returned last. It is stored in the pool itself, because usually one packet is written at a
    /// time.
    private var last: PacketBuffer?
    private var free: [PacketBuffer] = []
    private let limit: Int
    private let capacity: Int

    /// - Parameters:
    ///   - limit: maximum number of free buffers, not counting the last one.
    ///   - capacity: the number of bytes that a new buffer can hold.
    init(limit: Int = 64, capacity: Int = 288) {
        self.limit = limit
        self.capacity = capacity
    }

    /// An empty buffer.
    mutating func take() -> PacketBuffer {
        if let buffer = last.take() { return buffer }
        return free.popLast() ?? PacketBuffer(capacity: capacity)
    }

    mutating func recycle(_ buffer: consuming PacketBuffer) {
        buffer.reset()
        if last == nil {
            last = buffer
        } else if free.count < limit {
            free.append(buffer)
        }
    }
}
