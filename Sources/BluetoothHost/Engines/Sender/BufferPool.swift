import ByteCoding

/// Packet buffers in waiting, so that a packet costs no allocation once the first few have been sent.
struct BufferPool {
    private var free: [PacketBuffer] = []
    private let limit: Int
    private let capacity: Int

    /// - Parameters:
    ///   - limit: how many buffers are kept.
    ///   - capacity: how many octets a new buffer has room for.
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
