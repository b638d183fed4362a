import BluetoothTypes
import DequeModule

/// The requests for one kind of Link Layer procedure on a link, for example connection updates.
///
/// The event that ends a procedure does not say for which request it is. So the next procedure begins when the current
/// one has ended, and each call gets the outcome of its own.
///
/// A queue of a link that asks for nothing allocates no memory.
struct ProcedureQueue<Request: Equatable>: Equatable {
    private enum Origin: Equatable {
        case call(CallToken)
        /// A call that was cancelled while its procedure ran, or a procedure that began without a request.
        case noCall
        /// This host. No call awaits the outcome.
        case unawaited
        case peer
    }

    private struct Entry: Equatable {
        var origin: Origin
        /// Nil for a procedure whose request was sent before.
        let request: Request?
    }

    /// The current procedure if one runs, then the requests of calls in their order, then that of the peer.
    private var entries = Deque<Entry>()
    /// When the current procedure has taken too long; nil if none runs.
    private(set) var deadline: Instant?
    /// The number of the procedure that began last.
    private(set) var number: UInt32 = 0

    /// Whether a procedure runs.
    var isRunning: Bool { deadline != nil }

    /// The number of calls that wait, with those of requests whose outcome no call awaits.
    var count: Int { entries.count { $0.origin != .noCall && $0.origin != .peer } }

    /// The request of the current procedure; nil if none runs, or if its request was sent before.
    var current: Request? { isRunning ? entries.first?.request : nil }

    /// Whether a procedure waits though none runs. The next one was postponed.
    var isPostponed: Bool { !isRunning && !entries.isEmpty }

    /// Whether a request of the peer waits. It is the last entry.
    private var hasPeerRequest: Bool {
        entries.last?.origin == .peer && (!isRunning || entries.count > 1)
    }

    /// Adds the request of a call.
    mutating func append(_ call: CallToken, _ request: Request) {
        insert(Entry(origin: .call(call), request: request))
    }

    /// Adds a request whose outcome no call awaits. It replaces an earlier one that waits.
    mutating func appendUnawaited(_ request: Request) {
        removeWaiting(.unawaited)
        insert(Entry(origin: .unawaited, request: request))
    }

    private mutating func insert(_ entry: Entry) {
        entries.insert(entry, at: hasPeerRequest ? entries.count - 1 : entries.count)
    }

    /// Takes a request of the peer. It replaces an earlier one that has not begun, so a peer can make one request wait.
    mutating func setPeerRequest(_ request: Request) {
        if hasPeerRequest { entries.removeLast() }
        entries.append(Entry(origin: .peer, request: request))
    }

    /// Starts the oldest procedure, unless one runs.
    ///
    /// - Parameter deadline: when the procedure has taken too long.
    /// - Returns: the request to send to the controller or the peer; nil if there is none.
    mutating func begin(until deadline: Instant) -> Request? {
        guard !isRunning, let first = entries.first else { return nil }
        start(until: deadline)
        return first.request
    }

    /// Begins to wait for the end of a procedure whose call has ended, unless one runs.
    mutating func beginWithoutCall(until deadline: Instant) {
        guard !isRunning else { return }
        entries.prepend(Entry(origin: .noCall, request: nil))
        start(until: deadline)
    }

    /// Gives the current procedure more time, because the peer has answered its request. Does nothing if none runs.
    ///
    /// - Parameter deadline: when the procedure has taken too long. An earlier time than before has no effect.
    mutating func extend(until deadline: Instant) {
        guard let before = self.deadline else { return }
        self.deadline = max(before, deadline)
    }

    private mutating func start(until deadline: Instant) {
        self.deadline = deadline
        number &+= 1
    }

    /// Ends the current procedure.
    ///
    /// - Returns: the call that gets the outcome; nil if there is none.
    mutating func end() -> CallToken? {
        guard isRunning else { return nil }
        deadline = nil
        if case .call(let call) = entries.removeFirst().origin { return call }
        return nil
    }

    /// Returns the current procedure to the queue because it cannot begin yet. It is the next one, unless its call was
    /// cancelled.
    mutating func postpone() {
        guard isRunning else { return }
        deadline = nil
        switch entries.first?.origin {
        case .call, .unawaited: break
        case .noCall, .peer: entries.removeFirst()
        case nil: break
        }
    }

    /// Forgets a suspended call. Its procedure stays the current one if it has begun.
    mutating func remove(_ call: CallToken) {
        if isRunning, entries.first?.origin == .call(call) { entries[0].origin = .noCall }
        removeWaiting(.call(call))
    }

    private mutating func removeWaiting(_ origin: Origin) {
        let current = isRunning ? entries.popFirst() : nil
        entries.removeAll { $0.origin == origin }
        if let current { entries.prepend(current) }
    }

    /// Removes all requests.
    ///
    /// - Returns: the calls, the oldest first.
    mutating func removeAll() -> [CallToken] {
        defer { entries = [] }
        deadline = nil
        return entries.compactMap { if case .call(let call) = $0.origin { call } else { nil } }
    }
}
