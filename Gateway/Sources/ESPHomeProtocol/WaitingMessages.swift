import NIOCore

/// The messages of a client that wait until its requests are handled again, in their order.
struct WaitingMessages {
    /// Maximum number of messages that wait.
    static let countLimit = 256
    /// The number of bytes in payloads above which no further message waits. The last message may exceed it.
    static let byteLimit = 64 << 10

    private var messages: CircularBuffer<Message> = []
    private var byteCount = 0

    var isEmpty: Bool { messages.isEmpty }

    /// Whether no further message may wait.
    var isFull: Bool { messages.count >= Self.countLimit || byteCount >= Self.byteLimit }

    mutating func append(_ message: Message) {
        // A copy: the payload may be a slice of a much larger buffer, which would stay in memory.
        let payload = ByteBuffer(bytes: message.payload.readableBytesView)
        messages.append(Message(message.type, payload: payload))
        byteCount += payload.readableBytes
    }

    mutating func popFirst() -> Message? {
        guard let message = messages.popFirst() else { return nil }
        byteCount -= message.payload.readableBytes
        return message
    }
}
