import DequeModule

/// A kind of procedure of the Link Layer that calls ask for.
enum LinkProcedure {
    case connectionUpdate
    case phyUpdate
}

/// The calls that ask for one kind of Link Layer procedure on a link, for example a connection update.
///
/// The event that ends a procedure does not say for which request it is. So the next procedure begins when the current one
/// has ended, and each call gets the outcome of its own.
struct ProcedureQueue<Request> {
    private struct Waiting {
        /// Nil for a request of the peer, or if the call was cancelled.
        var call: CallToken?
        let request: Request
    }

    private var current: Waiting?
    private var waiting = Deque<Waiting>()
    /// The peer's last request, which begins after those of the calls.
    private var peerRequest: Request?
    /// Ends the current procedure if the controller does not.
    var timer: TimerQueue.Token?

    /// The number of calls that wait.
    var count: Int { waiting.count + (current?.call == nil ? 0 : 1) }

    /// Whether a procedure runs.
    var isRunning: Bool { current != nil }

    /// Adds a call.
    mutating func append(_ call: CallToken, _ request: Request) {
        waiting.append(Waiting(call: call, request: request))
    }

    /// Takes a request of the peer. It replaces an earlier one that has not begun, so a peer can make one request wait.
    mutating func setPeerRequest(_ request: Request) {
        peerRequest = request
    }

    /// Starts the oldest procedure, unless one runs.
    ///
    /// - Returns: the request to send to the controller or the peer; nil if there is none.
    mutating func begin() -> Request? {
        guard !isRunning else { return nil }
        current = waiting.popFirst() ?? peerRequest.take().map { Waiting(call: nil, request: $0) }
        return current?.request
    }

    /// Ends the current procedure.
    ///
    /// - Returns: the call that gets the outcome; nil if there is none.
    mutating func end() -> CallToken? {
        current.take().flatMap(\.call)
    }

    /// Returns the current procedure to the queue because it cannot begin yet. It is the next one, unless its call was
    /// cancelled.
    mutating func postpone() {
        guard let postponed = current.take(), postponed.call != nil else { return }
        waiting.prepend(postponed)
    }

    /// Forgets a call. Its procedure stays the current one if it has begun.
    mutating func remove(_ call: CallToken) {
        if current?.call == call { current?.call = nil }
        waiting.removeAll { $0.call == call }
    }

    /// Removes all calls.
    ///
    /// - Returns: the calls, the oldest first.
    mutating func removeAll() -> [CallToken] {
        peerRequest = nil
        defer { waiting = [] }
        return (end().map { [$0] } ?? []) + waiting.compactMap(\.call)
    }
}
