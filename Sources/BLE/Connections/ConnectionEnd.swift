import BluetoothHost
import BluetoothTypes
import Synchronization

/// The end of one connection, for those that wait for it.
final class ConnectionEnd: Sendable {
    private struct State {
        var reason: DisconnectionReason?
        var time: Instant?
        var waiters: [Waiter] = []
        /// By their identifiers, which ascend in the order in which the observers were added.
        var observers: [UInt64: @Sendable (DisconnectionReason) -> Void] = [:]
        var lastObserver: UInt64 = 0
    }

    private let state = Mutex(State())

    /// The number of calls and observers that wait for the end.
    var count: Int { state.withLock { $0.waiters.count + $0.observers.count } }

    /// Why the connection has ended; nil before its end.
    var reason: DisconnectionReason? { state.withLock { $0.reason } }

    /// The time of the end; nil before it.
    var time: Instant? { state.withLock { $0.time } }

    /// Ends the connection; the first call counts. The observers are called in the order in which they were added.
    func end(_ reason: DisconnectionReason, at time: Instant) {
        let (waiters, observers) = state.withLock { state in
            guard state.reason == nil else { return ([Waiter](), [@Sendable (DisconnectionReason) -> Void]()) }
            state.reason = reason
            state.time = time
            defer {
                state.waiters = []
                state.observers = [:]
            }
            return (state.waiters, state.observers.sorted { $0.key < $1.key }.map(\.value))
        }
        for waiter in waiters { waiter.finish(reason) }
        for observer in observers { observer(reason) }
    }

    /// Calls `observer` once with the reason, immediately if the connection has ended.
    ///
    /// - Returns: the identifier for ``removeObserver(_:)``.
    func observe(_ observer: @escaping @Sendable (DisconnectionReason) -> Void) -> UInt64 {
        let (identifier, reason) = state.withLock { state in
            state.lastObserver += 1
            if state.reason == nil { state.observers[state.lastObserver] = observer }
            return (state.lastObserver, state.reason)
        }
        if let reason { observer(reason) }
        return identifier
    }

    func removeObserver(_ identifier: UInt64) {
        state.withLock { _ = $0.observers.removeValue(forKey: identifier) }
    }

    /// Waits for the end.
    ///
    /// - Returns: nil if the task is cancelled first.
    func wait() async -> DisconnectionReason? {
        let waiter = Waiter()
        let reason = state.withLock { state in
            if state.reason == nil { state.waiters.append(waiter) }
            return state.reason
        }
        if let reason { return reason }
        defer { state.withLock { $0.waiters.removeAll { $0 === waiter } } }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { waiter.start($0) }
        } onCancel: {
            waiter.finish(nil)
        }
    }
}

/// One call that waits for the end of a connection.
private final class Waiter: Sendable {
    private enum State {
        case ready
        case waiting(CheckedContinuation<DisconnectionReason?, Never>)
        case finished(DisconnectionReason?)
    }

    private let state = Mutex(State.ready)

    func start(_ continuation: CheckedContinuation<DisconnectionReason?, Never>) {
        let finished = state.withLock { state -> DisconnectionReason?? in
            if case .finished(let reason) = state { return .some(reason) }
            state = .waiting(continuation)
            return nil
        }
        if let finished { continuation.resume(returning: finished) }
    }

    /// The first call counts.
    func finish(_ reason: DisconnectionReason?) {
        let continuation = state.withLock { state -> CheckedContinuation<DisconnectionReason?, Never>? in
            defer { if case .finished = state {} else { state = .finished(reason) } }
            if case .waiting(let continuation) = state { return continuation }
            return nil
        }
        continuation?.resume(returning: reason)
    }
}
