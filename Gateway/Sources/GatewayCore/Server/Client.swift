import ESPHomeProtocol
import NIOCore
import Synchronization

/// A connected client, for the parts of the gateway that run on other threads.
///
/// Messages from one thread are sent in the order of the calls.
final class Client: Sendable {
    /// Distinguishes clients.
    let identifier: UInt64
    /// The client's network address.
    let networkAddress: String
    private let eventLoop: any EventLoop
    private let handler: NIOLoopBound<ClientHandler>
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

    /// Reading from a client stops while it has this number of unfinished requests.
    private static let requestLimit = 512

    /// - Precondition: the caller runs on `eventLoop`.
    init(identifier: UInt64, networkAddress: String, handler: ClientHandler, eventLoop: any EventLoop) {
        self.identifier = identifier
        self.networkAddress = networkAddress
        self.eventLoop = eventLoop
        self.handler = NIOLoopBound(handler, eventLoop: eventLoop)
    }

    /// Sends a message. The handler runs later, so callers may hold locks.
    func send(_ message: Message) {
        eventLoop.execute { [handler] in handler.value.send(message) }
    }

    /// Sends advertisements, or drops some if the client is too slow.
    func send(_ batches: [AdvertisementBatch]) {
        eventLoop.execute { [handler] in
            for batch in batches { handler.value.send(batch) }
        }
    }

    /// Ends the client's session.
    func end(_ reason: SessionEnd) {
        eventLoop.execute { [handler] in handler.value.end(reason) }
    }

    // MARK: Requests

    /// Whether the client has so many unfinished requests that no more are read.
    var hasTooManyRequests: Bool { unfinishedRequestCount.load(ordering: .relaxed) >= Self.requestLimit }

    /// Counts a request that a device will finish.
    func beginRequest() {
        unfinishedRequestCount.wrappingAdd(1, ordering: .relaxed)
    }

    /// Counts finished requests. Reading continues when half of the limit is left.
    func finishRequests(_ count: Int = 1) {
        let (old, new) = unfinishedRequestCount.wrappingSubtract(count, ordering: .relaxed)
        if old > Self.requestLimit / 2, new <= Self.requestLimit / 2 {
            eventLoop.execute { [handler] in handler.value.requestsFinished() }
        }
    }
}

extension Client: Equatable {
    static func == (left: Client, right: Client) -> Bool { left === right }
}
