import ESPHomeProtocol
import NIOCore
import NIOPosix
import SwiftProtobuf

@testable import ESPHomeProtocol

/// A client of the native API without encryption, over TCP.
struct APIClient: Sendable {
    private let channel: any Channel
    /// The messages that were received and not yet waited for. All iterators share them.
    private let messages: AsyncStream<ESPHomeProtocol.Message>

    /// Connects, and greets the server unless `greets` is false.
    ///
    /// - Parameter minorVersion: the client's minor version of the API.
    init(port: Int, greets: Bool = true, minorVersion: UInt8 = 12) async throws {
        let (messages, continuation) = AsyncStream.makeStream(of: ESPHomeProtocol.Message.self)
        self.messages = messages
        channel = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Receiver(continuation))
                }
            }
            .connect(host: "127.0.0.1", port: port).get()
        guard greets else { return }
        try await send(.helloRequest, [10, 4] + Array("test".utf8) + [16, 1, 24, minorVersion])
        _ = try await next(.helloResponse)
    }

    func send(_ type: MessageType, _ payload: [UInt8] = []) async throws {
        var buffer = ByteBuffer()
        PlaintextFraming().encode(Message(type, payload: ByteBuffer(bytes: payload)), into: &buffer)
        try await send(bytes: buffer)
    }

    func send(_ type: MessageType, _ message: some SwiftProtobuf.Message) async throws {
        var buffer = ByteBuffer()
        PlaintextFraming().encode(Message(type, message), into: &buffer)
        try await send(bytes: buffer)
    }

    /// Sends messages in one write, so that the server receives them together.
    func send(_ type: MessageType, together messages: [some SwiftProtobuf.Message]) async throws {
        var buffer = ByteBuffer()
        for message in messages { PlaintextFraming().encode(Message(type, message), into: &buffer) }
        try await send(bytes: buffer)
    }

    func send(bytes: ByteBuffer) async throws {
        try await channel.writeAndFlush(bytes)
    }

    /// Returns the next message; nil if the server has closed the connection.
    private func received() async -> ESPHomeProtocol.Message? {
        var iterator = messages.makeAsyncIterator()
        return await iterator.next()
    }

    /// Returns the next message of a type; those of other types before it are skipped.
    func next(_ type: MessageType) async throws -> ESPHomeProtocol.Message {
        while let message = await received() {
            if message.type == type { return message }
        }
        throw ConnectionClosed()
    }

    func next<Decoded: SwiftProtobuf.Message>(
        _ type: MessageType,
        as decoded: Decoded.Type,
        where predicate: (Decoded) -> Bool = { _ in true }
    ) async throws -> Decoded {
        while true {
            let message = try await next(type).decode(as: decoded)
            if predicate(message) { return message }
        }
    }

    /// Returns the messages until one meets a condition, with that one.
    func messages(until isLast: (ESPHomeProtocol.Message) -> Bool) async throws -> [ESPHomeProtocol.Message] {
        var received: [ESPHomeProtocol.Message] = []
        while let message = await self.received() {
            received.append(message)
            if isLast(message) { return received }
        }
        throw ConnectionClosed()
    }

    /// Waits until the server has closed the connection, and returns the types of the messages before.
    func closed() async -> [MessageType] {
        var types: [MessageType] = []
        while let message = await received() { types.append(message.type) }
        return types
    }

    func close() async throws {
        try await channel.close()
    }

    struct ConnectionClosed: Error {}

    private final class Receiver: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private let continuation: AsyncStream<ESPHomeProtocol.Message>.Continuation
        private var received = ByteBuffer()

        init(_ continuation: AsyncStream<ESPHomeProtocol.Message>.Continuation) {
            self.continuation = continuation
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            received.writeImmutableBuffer(unwrapInboundIn(data))
            while let message = try? PlaintextFraming().decode(from: &received) { continuation.yield(message) }
        }

        func channelInactive(context: ChannelHandlerContext) {
            continuation.finish()
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            context.close(promise: nil)
        }
    }
}
