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
///
/// A queue of a link that asks for nothing allocates no memory.
struct ProcedureQueue<Request> {
    private struct Entry {
        /// Nil for a request of the peer, or if the call was cancelled.
        var caller: Caller?
        /// Nil for a procedure whose request was sent before.
        let request: Request?
    }

    /// The current procedure if one runs, then the procedures of the calls in their order, then that of the peer.
    private var entries = Deque<Entry>()
    /// Whether a procedure runs.
    private(set) var isRunning = false
    /// Whether a request of the peer waits. It is the last entry.
    private var hasPeerRequest = false
    /// Ends the current procedure if the controller does not.
    var timer: TimerQueue.Token?

    /// The number of calls that wait.
    var count: Int { entries.count { $0.caller != nil } }

    /// Whether a procedure waits though none runs. The next one was postponed.
    var isPostponed: Bool { !isRunning && !entries.isEmpty }

    /// Adds a call.
    mutating func append(_ caller: Caller, _ request: Request) {
        let index = hasPeerRequest ? entries.count - 1 : entries.count
        entries.insert(Entry(caller: caller, request: request), at: index)
    }

    /// Adds a request whose outcome no call awaits. It replaces an earlier one that waits.
    mutating func appendUnawaited(_ request: Request) {
        removeWaiting { if case .unawaited = $0 { true } else { false } }
        append(.unawaited, request)
    }

    /// Takes a request of the peer. It replaces an earlier one that has not begun, so a peer can make one request wait.
    mutating func setPeerRequest(_ request: Request) {
        if hasPeerRequest { entries.removeLast() }
        entries.append(Entry(caller: nil, request: request))
        hasPeerRequest = true
    }

    /// Starts the oldest procedure, unless one runs.
    ///
    /// - Returns: the request to send to the controller or the peer; nil if there is none.
    mutating func begin() -> Request? {
        guard !isRunning, let first = entries.first else { return nil }
        isRunning = true
        if entries.count == 1 { hasPeerRequest = false }
        return first.request
    }

    /// Begins to wait for the end of a procedure whose call has ended.
    ///
    /// - Returns: false if a procedure runs.
    mutating func beginWithoutCall() -> Bool {
        guard !isRunning else { return false }
        entries.prepend(Entry(caller: nil, request: nil))
        isRunning = true
        return true
    }

    /// Ends the current procedure.
    ///
    /// - Returns: the call that gets the outcome; nil if there is none.
    mutating func end() -> Caller? {
        guard isRunning else { return nil }
        isRunning = false
        return entries.removeFirst().caller
    }

    /// Returns the current procedure to the queue because it cannot begin yet. It is the next one, unless its call was
    /// cancelled.
    mutating func postpone() {
        guard isRunning else { return }
        isRunning = false
        if entries.first?.caller == nil { entries.removeFirst() }
    }

    /// Forgets a suspended call. Its procedure stays the current one if it has begun.
    mutating func remove(_ call: CallToken) {
        if isRunning, entries.first?.caller?.call == call { entries[0].caller = nil }
        removeWaiting { $0.call == call }
    }

    /// Removes the calls that wait and meet a condition.
    private mutating func removeWaiting(where isRemoved: (Caller) -> Bool) {
        let current = isRunning ? entries.popFirst() : nil
        entries.removeAll { $0.caller.map(isRemoved) ?? false }
        if let current { entries.prepend(current) }
    }

    /// Removes all calls.
    ///
    /// - Returns: the calls, the oldest first.
    mutating func removeAll() -> [Caller] {
        defer { entries = [] }
        isRunning = false
        hasPeerRequest = false
        return entries.compactMap(\.caller)
    }
}
