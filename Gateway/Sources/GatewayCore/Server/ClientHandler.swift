import ESPHomeMessages
import ESPHomeProtocol
import Foundation
import NIOCore

/// The last handler of a client's channel: runs the session and sends messages.
///
/// ## Clients that do not read
///
/// While the channel is not writable, no requests are handled and nothing is read, so the client cannot cause answers.
/// Advertisements wait in a bounded queue. Other messages are written up to ``unsentByteLimit``; beyond it, the client
/// is disconnected.
///
/// ## Clients with many requests
///
/// While the client has too many unfinished requests, further ones wait in its session. Pings are answered, because the
/// client would otherwise take the gateway for dead. Nothing is read any more once too many requests wait. That time
/// does not count as the client's silence, as long as the client takes its answers.
final class ClientHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The greatest number of bytes that are written but not sent; a client with more is too slow.
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
    private var isAdmitted = false
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
        guard hub.add(client) else { return end(.serverStopped) }
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

    /// The messages of the client that are handled: none while it does not read answers, and no requests while it has
    /// too many unfinished ones.
    private var handling: APISession.MessageHandling {
        guard let context, let client, context.channel.isWritable else { return .nothing }
        return client.hasTooManyRequests ? .control : .all
    }

    /// Whether messages of the client can be handled, or wait.
    private var acceptsMessages: Bool {
        switch handling {
        case .all: true
        case .control: session.hasRoomForWaitingMessages
        case .nothing: false
        }
    }

    /// Reads from the client only while its messages can be handled, or wait.
    func read(context: ChannelHandlerContext) {
        if client == nil || isEnding || acceptsMessages {
            context.read()
        } else {
            isReadSuspended = true
        }
    }

    /// Handles requests that wait, after devices have finished earlier ones.
    func requestsFinished() {
        excuseSilence()
        resumeReading()
    }

    /// Handles requests that wait, and reads from the client again.
    private func resumeReading() {
        guard !isEnding, handling != .nothing else { return }
        performEffects()
        guard !isEnding, isReadSuspended, acceptsMessages else { return }
        isReadSuspended = false
        context?.read()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        resumeReading()
        while !isEnding, context.channel.isWritable, let batch = unsentBatches.popFirst() {
            unsentAdvertisementCount -= batch.count
            write(batch)
        }
        context.fireChannelWritabilityChanged()
    }

    // MARK: Session

    /// Leaves out the time in which nothing is read from the client, because too many of its requests wait. Silence
    /// still counts while the client does not take its answers.
    private func excuseSilence() {
        guard isReadSuspended, let context, context.channel.isWritable else { return }
        session.excuseSilence(until: context.eventLoop.now)
    }

    private func performEffects() {
        while !isEnding, let effect = session.next(handling) {
            if !isAdmitted, session.isReady { admit() }
            guard !isEnding else { return }
            switch effect {
            case .write(let bytes): write(bytes)
            case .timeRequest: sendTime()
            case .request(let request):
                if let client { hub.handle(request, from: client) }
            case .close(let reason): finish(reason)
            }
        }
    }

    /// Requests a place for the client after Hello, before Hello is answered. A client without a place is disconnected.
    private func admit() {
        guard let client else { return }
        isAdmitted = true
        client.information.withLock { $0 = session.clientInformation }
        client.usesShortUUIDs.store(session.clientVersion.hasShortUUIDs, ordering: .relaxed)
        if let reason = hub.admit(client) { finish(reason) }
    }

    private func setTimer() {
        guard timer == nil, !isEnding, let context, let deadline = session.deadline else { return }
        timer = context.eventLoop.assumeIsolated().scheduleTask(deadline: deadline) { [self] in
            timer = nil
            excuseSilence()
            session.advance(to: context.eventLoop.now)
            performEffects()
            resumeReading()
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
        if [.slowClient, .connectionLost, .displaced].contains(reason) {
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

    /// Sends outputs in their order, and flushes them together. Whenever the channel is not writable, it flushes at
    /// once.
    func send(_ outputs: [Client.Output]) {
        let isFlushedLater = isFlushScheduled
        // This turn of the event loop needs no task for the flush.
        isFlushScheduled = true
        for output in outputs {
            switch output {
            case .message(let message): send(message)
            case .advertisements(let batches): for batch in batches { send(batch) }
            case .end(let reason): end(reason)
            }
            // The socket may take the bytes. Only what it does not take counts against the client.
            if let context, !context.channel.isWritable { context.flush() }
        }
        guard !isFlushedLater else { return }
        isFlushScheduled = false
        context?.flush()
    }

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

    /// Writes bytes. All bytes of one turn of the event loop are flushed together. A client that has not read too many
    /// bytes is disconnected.
    private func write(_ bytes: ByteBuffer) {
        guard let context else { return }
        // A channel with so many bytes is not writable, so most writes need not ask for their number.
        if !context.channel.isWritable,
            let unsent = try? context.channel.syncOptions?.getOption(ChannelOptions.bufferedWritableBytes),
            unsent + bytes.readableBytes > Self.unsentByteLimit
        {
            return finish(.slowClient)
        }
        context.write(wrapOutboundOut(bytes), promise: nil)
        guard !isFlushScheduled else { return }
        isFlushScheduled = true
        context.eventLoop.assumeIsolated().execute { [self] in
            isFlushScheduled = false
            self.context?.flush()
        }
    }
}
