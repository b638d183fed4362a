import ESPHomeProtocol
import NIOCore
import Synchronization

/// A connected client, for the parts of the gateway that run on other threads.
///
/// Messages from one thread are sent in the order of the calls. Those that other threads send until the event loop
/// takes them are written together. The end of the session has its place among them.
final class Client: Sendable {
    /// A message, a batch of advertisements, or the end, on its way to a client.
    enum Output: Sendable {
        case message(Message)
        case advertisements([AdvertisementBatch])
        /// The end of the session.
        case end(SessionEnd)
    }

    private struct PendingOutputs {
        /// The outputs that the handler has not taken yet, in their order.
        var outputs: [Output] = []
        /// Whether the handler will take them.
        var isScheduled = false
    }

    /// Distinguishes clients.
    let identifier: UInt64
    /// The client's network address.
    let networkAddress: String
    private let eventLoop: any EventLoop
    private let handler: NIOLoopBound<ClientHandler>
    private let pending = Mutex(PendingOutputs())
    /// The number of requests that devices have not finished.
    private let unfinishedRequestCount = Atomic(0)

    /// Whether the session has ended. Nothing more is done for the client.
    let hasEnded = Atomic(false)
    let receivesAdvertisements = Atomic(false)
    /// Whether the client knows the short form of UUIDs; false before Hello.
    let usesShortUUIDs = Atomic(false)
    let advertisementCount = Atomic<UInt64>(0)
    let droppedAdvertisementCount = Atomic<UInt64>(0)
    /// What the client says it is.
    let information = Mutex("")

    /// While a client has this number of unfinished requests, its further requests wait.
    private static let requestLimit = 512
    /// The number of unfinished requests at which those that wait are handled again. Pings behind them wait as well, so
    /// it is not much less than the limit.
    private static let resumptionCount = 448

    /// - Precondition: the caller runs on `eventLoop`.
    init(identifier: UInt64, networkAddress: String, handler: ClientHandler, eventLoop: any EventLoop) {
        self.identifier = identifier
        self.networkAddress = networkAddress
        self.eventLoop = eventLoop
        self.handler = NIOLoopBound(handler, eventLoop: eventLoop)
    }

    /// Sends a message. The handler runs later, so callers may hold locks.
    func send(_ message: Message) { submit(.message(message)) }

    /// Sends advertisements, or drops some if the client is too slow.
    func send(_ batches: [AdvertisementBatch]) { submit(.advertisements(batches)) }

    private func submit(_ output: Output) {
        let isScheduled = pending.withLock { pending in
            pending.outputs.append(output)
            defer { pending.isScheduled = true }
            return pending.isScheduled
        }
        guard !isScheduled else { return }
        eventLoop.execute { [self] in handler.value.send(takeOutputs()) }
    }

    private func takeOutputs() -> [Output] {
        pending.withLock { pending in
            defer { pending = PendingOutputs() }
            return pending.outputs
        }
    }

    /// Ends the client's session after the outputs before it. Later ones do not reach the client.
    func end(_ reason: SessionEnd) { submit(.end(reason)) }

    // MARK: Requests

    /// Whether the client has so many unfinished requests that further ones wait.
    var hasTooManyRequests: Bool { unfinishedRequestCount.load(ordering: .relaxed) >= Self.requestLimit }

    /// Counts a request that a device will finish.
    func beginRequest() {
        unfinishedRequestCount.wrappingAdd(1, ordering: .relaxed)
    }

    /// Counts finished requests. Those that wait are handled again soon after the client has fewer than the limit.
    ///
    /// This is not ordered with outputs: a request that waited may be answered before them, as one that has just
    /// arrived.
    func finishRequests(_ count: Int = 1) {
        let (old, new) = unfinishedRequestCount.wrappingSubtract(count, ordering: .relaxed)
        if old > Self.resumptionCount, new <= Self.resumptionCount {
            eventLoop.execute { [handler] in handler.value.requestsFinished() }
        }
    }
}

extension Client: Equatable {
    static func == (left: Client, right: Client) -> Bool { left === right }
}
