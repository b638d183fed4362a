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
        var caller: Caller?
        /// Nil for a procedure whose request was sent before.
        let request: Request?
    }

    private var current: Waiting?
    private var waiting = Deque<Waiting>()
    /// The peer's last request, which begins after those of the calls.
    private var peerRequest: Request?
    /// Ends the current procedure if the controller does not.
    var timer: TimerQueue.Token?

    /// The number of calls that wait.
    var count: Int { waiting.count + (current?.caller == nil ? 0 : 1) }

    /// Whether a procedure runs.
    var isRunning: Bool { current != nil }

    /// Whether a procedure waits though none runs. The next one was postponed.
    var isPostponed: Bool { !isRunning && (!waiting.isEmpty || peerRequest != nil) }

    /// Adds a call.
    mutating func append(_ caller: Caller, _ request: Request) {
        waiting.append(Waiting(caller: caller, request: request))
    }

    /// Adds a request whose outcome no call awaits. It replaces an earlier one that waits.
    mutating func appendUnawaited(_ request: Request) {
        waiting.removeAll { if case .unawaited? = $0.caller { true } else { false } }
        waiting.append(Waiting(caller: .unawaited, request: request))
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
        current = waiting.popFirst() ?? peerRequest.take().map { Waiting(caller: nil, request: $0) }
        return current.flatMap(\.request)
    }

    /// Begins to wait for the end of a procedure whose call has ended.
    ///
    /// - Returns: false if a procedure runs.
    mutating func beginWithoutCall() -> Bool {
        guard !isRunning else { return false }
        current = Waiting(caller: nil, request: nil)
        return true
    }

    /// Ends the current procedure.
    ///
    /// - Returns: the call that gets the outcome; nil if there is none.
    mutating func end() -> Caller? {
        current.take().flatMap(\.caller)
    }

    /// Returns the current procedure to the queue because it cannot begin yet. It is the next one, unless its call was
    /// cancelled.
    mutating func postpone() {
        guard let postponed = current.take(), postponed.caller != nil else { return }
        waiting.prepend(postponed)
    }

    /// Forgets a suspended call. Its procedure stays the current one if it has begun.
    mutating func remove(_ call: CallToken) {
        if current?.caller?.call == call { current?.caller = nil }
        waiting.removeAll { $0.caller?.call == call }
    }

    /// Removes all calls.
    ///
    /// - Returns: the calls, the oldest first.
    mutating func removeAll() -> [Caller] {
        peerRequest = nil
        defer { waiting = [] }
        return (end().map { [$0] } ?? []) + waiting.compactMap(\.caller)
    }
}
