import BluetoothTypes
import Synchronization

/// The suspended calls of apps, and calls whose outcome a closure receives.
///
/// ## Overview
///
/// A call has an entry from before it reaches the loop until it ends. The parts of the host that may end it have only
/// its token. The first of them ends the call: with its outcome, at its time limit, or because its task is cancelled.
/// The others find no entry for the token.
///
/// An entry names the place where the call waits. So a cancellation removes the call from that place only.
///
/// ## Threads
///
/// Calls are reserved on any thread, because a call must have its token before its task can be cancelled. This needs
/// the lock. All other functions are used on the loop.
///
/// ## Calls without an entry
///
/// The call of a client procedure has no entry. A ``ProcedureCall`` holds its continuation, and the procedure's run
/// names it: a cancellation finds the run in its link's lane or client. So a read or write on the loop takes no lock.
///
/// A call that waits for the controller's answer to a command, or in an object of an API for what the host reports to
/// it, has no entry either.
final class CallTable: Sendable {
    /// What a call waits for.
    enum Subject: Sendable {
        /// A place that keeps nothing of a call that is cancelled.
        case other
        /// The lanes or the packets of a link.
        case lane(LinkIdentifier)
        /// The lanes of several links.
        case lanes
        case endOfLink(LinkIdentifier)
        /// A procedure of the Link Layer.
        case procedure(LinkIdentifier)
        /// The peer's answer to new lengths of a channel.
        case reconfiguration(LinkIdentifier)
        case startOfAdvertisement(AdvertisementIdentifier)
        case endOfAdvertisement(AdvertisementIdentifier)
        /// The controller to accept data for subevents.
        case subeventData(AdvertisementIdentifier)
        /// Room in the queue of an isochronous stream.
        case stream(IsochronousStreamIdentifier)
        /// Time to pass.
        case time
        /// The host to be closed.
        case close
        /// A connection; with the number of the attempt.
        case connection(attempt: UInt64)
        /// A link to be secure.
        case security(LinkIdentifier)
    }

    struct Call: Sendable {
        enum State: Sendable {
            /// The call has not begun.
            case reserved
            /// The task was cancelled before the call has begun.
            case cancelled
            case waiting(CallContinuation)
            /// The call has begun, and a closure of an app receives its outcome.
            case callback(@Sendable (Result<Void, HostError>) -> Void)
        }

        let subject: Subject
        var state = State.reserved
        /// Limits how long the call waits.
        var timer: TimerQueue.Token?
    }

    private let calls = Mutex(SlotTable<Call>())
    private let end = Atomic(false)
    private let readers: ReaderQueue

    /// - Parameter readers: the readers of sequences, which are woken before a call is resumed.
    init(_ readers: ReaderQueue) {
        self.readers = readers
    }

    /// Whether the host was closed. From then on, no observer is called, and the host holds nothing for its users.
    var hasEnded: Bool { end.load(ordering: .relaxed) }

    /// Records that the host was closed.
    func setEnded() {
        end.store(true, ordering: .relaxed)
    }

    // MARK: Beginning

    /// Makes an entry for a call, which then begins or is discarded.
    func reserve(_ subject: Subject) -> CallToken {
        calls.withLock { $0.insert(Call(subject: subject)) }
    }

    /// Removes the entry of a call that does not begin.
    func discard(_ call: CallToken) {
        calls.withLock { _ = $0.remove(call) }
    }

    /// Begins a call.
    ///
    /// - Returns: false if its task was cancelled before; the call has ended then.
    func begin(_ call: CallToken, _ continuation: CallContinuation) -> Bool {
        let hasBegun = calls.withLock { calls in
            guard case .reserved? = calls[call]?.state else {
                calls.remove(call)
                return false
            }
            calls.update(call) { $0.state = .waiting(continuation) }
            return true
        }
        if !hasBegun { continuation.resume(returning: .failure(.cancelled)) }
        return hasBegun
    }

    /// Makes an entry for a call that has reached the loop and cannot be cancelled, and begins it.
    func begin(_ continuation: CallContinuation) -> CallToken {
        calls.withLock { $0.insert(Call(subject: .other, state: .waiting(continuation))) }
    }

    /// Makes an entry for a call whose outcome a closure receives. ``takeCallback(of:)`` ends it.
    func begin(_ callback: @escaping @Sendable (Result<Void, HostError>) -> Void) -> CallToken {
        calls.withLock { $0.insert(Call(subject: .other, state: .callback(callback))) }
    }

    /// Notes the timer of a call that has begun. It is cancelled when the call ends.
    func setTimer(_ timer: TimerQueue.Token, of call: CallToken) {
        calls.withLock { calls in calls.update(call) { $0.timer = timer } }
    }

    // MARK: Ending

    /// Ends a call that has begun. Does nothing if it has ended.
    ///
    /// - Returns: the call's timer, which the caller cancels.
    @discardableResult
    func end(_ call: CallToken, _ outcome: CallOutcome) -> TimerQueue.Token? {
        let ended = calls.withLock { $0.remove(call) }
        guard let ended, case .waiting(let continuation) = ended.state else { return nil }
        readers.wakeAll()
        continuation.resume(returning: outcome)
        return ended.timer
    }

    /// Ends a call whose outcome a closure receives.
    ///
    /// - Returns: the closure; nil if the call is that of a task, or has ended.
    func takeCallback(of call: CallToken) -> (@Sendable (Result<Void, HostError>) -> Void)? {
        calls.withLock { calls in
            guard case .callback(let callback)? = calls[call]?.state else { return nil }
            calls.remove(call)
            return callback
        }
    }

    /// Cancels a call. One that has not begun ends when it begins.
    ///
    /// - Returns: the call if it was waiting; the caller then removes what the host keeps of it.
    func cancel(_ call: CallToken) -> Call? {
        let cancelled = calls.withLock { calls -> Call? in
            switch calls[call]?.state {
            case .reserved:
                calls.update(call) { $0.state = .cancelled }
                return nil
            case .waiting: return calls.remove(call)
            case .cancelled, .callback, nil: return nil
            }
        }
        guard let cancelled, case .waiting(let continuation) = cancelled.state else { return nil }
        continuation.resume(returning: .failure(.cancelled))
        return cancelled
    }

    // MARK: Looking

    /// The number of calls of tasks that have not ended.
    var count: Int {
        calls.withLock { calls in
            calls.count - calls.tokens { if case .callback = $0.state { true } else { false } }.count
        }
    }

    /// The number of calls that have a timer.
    var timerCount: Int { calls.withLock { $0.tokens { $0.timer != nil }.count } }

    /// The calls that wait for time to pass.
    var sleeps: [CallToken] { waitingCalls { if case .time = $0 { true } else { false } } }

    /// The calls that wait for the host to be closed.
    var closes: [CallToken] { waitingCalls { if case .close = $0 { true } else { false } } }

    /// The calls of tasks that have begun, and wait for such a subject.
    private func waitingCalls(for isIncluded: (Subject) -> Bool) -> [CallToken] {
        calls.withLock { calls in
            calls.tokens { call in
                if case .waiting = call.state { isIncluded(call.subject) } else { false }
            }
        }
    }

    /// The subject of a call that has begun and not ended, and whose subject meets a condition; nil if there is none.
    func waitingCall(where isWanted: (Subject) -> Bool) -> Subject? {
        calls.withLock { calls in
            calls.firstElement { call in
                if case .waiting = call.state { isWanted(call.subject) } else { false }
            }?.subject
        }
    }

    /// Whether a call has begun and not ended.
    func isWaiting(_ call: CallToken) -> Bool {
        calls.withLock { calls in
            if case .waiting? = calls[call]?.state { true } else { false }
        }
    }
}
