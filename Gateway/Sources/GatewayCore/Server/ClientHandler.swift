import ESPHomeMessages
import ESPHomeProtocol
import Foundation
import NIOCore

/// The last handler of a client's channel: runs the session and sends messages.
final class ClientHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// Unsent bytes, apart from advertisements, from which a client is too slow.
    static let unsentByteLimit = 4 << 20
    /// Advertisements that wait for a slow client; beyond it the oldest are dropped.
    static let unsentAdvertisementLimit = 1024

    /// How long the last messages to a client may take.
    private static let closeTimeout = TimeAmount.seconds(5)

    private let hub: GatewayHub
    private var session: APISession
    private var context: ChannelHandlerContext?
    private var client: Client?
    private var isEnding = false
    private var isFlushScheduled = false
    private var isReadSuspended = false
    private var timer: Scheduled<Void>?
    private var closeTimer: Scheduled<Void>?
    private var unsentBatches: CircularBuffer<AdvertisementBatch> = []
    private var unsentAdvertisementCount = 0

    init(hub: GatewayHub, session: APISession) {
        self.hub = hub
        self.session = session
    }

    // MARK: Channel

    func channelActive(context: ChannelHandlerContext) {
        self.context = context
        let client = hub.makeClient(
            networkAddress: context.remoteAddress?.ipAddress ?? "?",
            handler: self,
            eventLoop: context.eventLoop
        )
        self.client = client
        guard hub.add(client) else { return end(.tooManyClients) }
        setTimer()
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        finish(.connectionLost)
        timer?.cancel()
        closeTimer?.cancel()
        self.context = nil
        client = nil
        unsentBatches = []
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        finish(.connectionLost)
        context.close(promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isEnding else { return }
        session.receive(unwrapInboundIn(data), now: context.eventLoop.now)
        performEffects()
    }

    /// Reads from the client only while it has not too many unfinished requests.
    func read(context: ChannelHandlerContext) {
        if client?.hasTooManyRequests == true {
            isReadSuspended = true
        } else {
            context.read()
        }
    }

    /// Reads from the client again.
    func resumeReading() {
        guard isReadSuspended else { return }
        isReadSuspended = false
        context?.read()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        while context.channel.isWritable, let batch = unsentBatches.popFirst() {
            unsentAdvertisementCount -= batch.count
            write(batch)
        }
        context.fireChannelWritabilityChanged()
    }

    // MARK: Session

    private func performEffects() {
        while let effect = session.next() {
            switch effect {
            case .write(let bytes): write(bytes)
            case .timeRequest: sendTime()
            case .request(let request):
                if let client { hub.handle(request, from: client) }
            case .close(let reason): finish(reason)
            }
        }
        if let client, session.isReady {
            client.information.withLock { if $0.isEmpty { $0 = session.clientInformation } }
        }
    }

    private func setTimer() {
        guard timer == nil, !isEnding, let context, let deadline = session.deadline else { return }
        timer = context.eventLoop.assumeIsolated().scheduleTask(deadline: deadline) { [self] in
            timer = nil
            session.advance(to: context.eventLoop.now)
            performEffects()
            setTimer()
        }
    }

    private func sendTime() {
        var response = ESPHomeGetTimeResponse()
        response.epochSeconds = UInt32(clamping: Int(Date().timeIntervalSince1970))
        send(Message(.getTimeResponse, response))
    }

    /// Ends the session, if it has not ended: the client is asked to disconnect first.
    func end(_ reason: SessionEnd) {
        session.end(reason)
        performEffects()
    }

    /// Closes the connection after everything that was written.
    private func finish(_ reason: SessionEnd) {
        guard !isEnding, let client else { return }
        isEnding = true
        hub.remove(client, reason)
        guard let context else { return }
        if reason == .slowClient || reason == .connectionLost {
            context.close(promise: nil)
        } else {
            // This empty write completes after those before it, unless the client does not read.
            context.writeAndFlush(wrapOutboundOut(ByteBuffer())).assumeIsolated().whenComplete { _ in
                context.close(promise: nil)
            }
            closeTimer = context.eventLoop.assumeIsolated().scheduleTask(in: Self.closeTimeout) {
                context.close(promise: nil)
            }
        }
    }

    // MARK: Output

    /// Sends a message. A client that does not read is disconnected.
    func send(_ message: Message) {
        guard !isEnding, let context else { return }
        var buffer = context.channel.allocator.buffer(capacity: message.payload.readableBytes + 32)
        guard session.frame(message, into: &buffer) else {
            return hub.logger.error(
                "a message is too long to be sent",
                metadata: ["type": "\(message.type.rawValue)", "length": "\(message.payload.readableBytes)"]
            )
        }
        write(buffer)
        let unsent = try? context.channel.syncOptions?.getOption(ChannelOptions.bufferedWritableBytes)
        if let unsent, unsent > Self.unsentByteLimit { finish(.slowClient) }
    }

    /// Sends advertisements, or keeps them until the client has read earlier ones.
    func send(_ batch: AdvertisementBatch) {
        guard !isEnding, let context, let client else { return }
        if unsentBatches.isEmpty, context.channel.isWritable { return write(batch) }
        unsentBatches.append(batch)
        unsentAdvertisementCount += batch.count
        while unsentAdvertisementCount > Self.unsentAdvertisementLimit, let oldest = unsentBatches.popFirst() {
            unsentAdvertisementCount -= oldest.count
            client.droppedAdvertisementCount.wrappingAdd(UInt64(oldest.count), ordering: .relaxed)
        }
    }

    private func write(_ batch: AdvertisementBatch) {
        guard let context else { return }
        let message = batch.message
        var buffer = context.channel.allocator.buffer(capacity: message.payload.readableBytes + 32)
        guard session.frame(message, into: &buffer) else { return }
        client?.advertisementCount.wrappingAdd(UInt64(batch.count), ordering: .relaxed)
        write(buffer)
    }

    /// Writes bytes. All bytes of one turn of the event loop are flushed together.
    private func write(_ bytes: ByteBuffer) {
        guard let context else { return }
        context.write(wrapOutboundOut(bytes), promise: nil)
        guard !isFlushScheduled else { return }
        isFlushScheduled = true
        context.eventLoop.assumeIsolated().execute { [self] in
            isFlushScheduled = false
            self.context?.flush()
        }
    }
}
