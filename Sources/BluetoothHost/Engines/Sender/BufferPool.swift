import ByteCoding

/// Free packet buffers. After the first few packets, a packet costs no allocation.
struct BufferPool {
    private var free: [PacketBuffer] = []
    private let limit: Int
    private let capacity: Int

    /// - Parameters:
    ///   - limit: the maximum number of free buffers.
    ///   - capacity: the number of bytes that a new buffer can hold.
    init(limit: Int = 64, capacity: Int = 288) {
        self.limit = limit
        self.capacity = capacity
    }

    /// An empty buffer.
    mutating func take() -> PacketBuffer {
        free.popLast() ?? PacketBuffer(capacity: capacity)
    }

    mutating func recycle(_ buffer: consuming PacketBuffer) {
        guard free.count < limit else { return }
        buffer.reset()
        free.append(buffer)
    }
}
