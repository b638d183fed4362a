import BLE
import BluetoothHost

/// The events of a ``SharedHost`` for the sequences of apps.
///
/// Apps can make sequences before the host is open. All sequences end when the host is closed. The host may then be
/// opened again, for other sequences.
final class HostEvents: Sendable {
    /// The events of the host from one opening to the next closing.
    struct Source: Sendable {
        fileprivate let events: HostEvents
        fileprivate let opening: UInt64

        func send(_ event: HostEvent) { events.send(event, of: opening) }
        func send(_ event: SecurityEvent) { events.send(event, of: opening) }
    }

    private struct State {
        var isClosed = true
        /// Incremented on each opening; events of an earlier one are ignored.
        var opening: UInt64 = 0
        /// The reason why the saved state cannot be used.
        var stateProblem: String?
        /// The reason why it cannot be used with the controller that was found after a reset.
        var controllerProblem: String?
        var wasReset = false
    }

    private let state = Guarded(State())
    private let adapter = Broadcast<HostEvent>()
    private let security = Broadcast<SecurityEvent>()

    deinit {
        end()
    }

    // MARK: The host

    /// Begins an opening of the host. If the last opening has failed, existing sequences continue.
    func begin() {
        state.withLock { state in
            state.isClosed = false
            state.opening += 1
            state.stateProblem = nil
            state.controllerProblem = nil
            state.wasReset = false
        }
    }

    /// The source for the current opening.
    var source: Source { Source(events: self, opening: state.withLock { $0.opening }) }

    /// Ends all sequences.
    func end() {
        state.withLock { end(&$0) }
    }

    private func end(_ state: inout State) {
        state.isClosed = true
        adapter.send(.closed)
        adapter.finish()
        security.finish()
    }

    private func send(_ event: HostEvent, of opening: UInt64) {
        state.withLock { state in
            guard opening == state.opening, !state.isClosed else { return }
            switch event {
            case .closed: return end(&state)
            case .resetting:
                state.wasReset = true
                // The host reports the reason again if it remains.
                state.controllerProblem = nil
            case .stateUnavailable(let reason) where state.wasReset: state.controllerProblem = reason
            case .stateUnavailable(let reason): state.stateProblem = reason
            case .poweredOn, .scanRestarted, .eventsDropped: break
            }
            adapter.send(event)
        }
    }

    private func send(_ event: SecurityEvent, of opening: UInt64) {
        state.withLock { state in
            if opening == state.opening, !state.isClosed { security.send(event) }
        }
    }

    // MARK: Sequences

    /// Creates a sequence of the adapter's events. If the saved state cannot be used, the first event reports that. The
    /// last event is ``HostEvent/closed``.
    func adapterEvents() -> Events<HostEvent> {
        state.withLock { state in
            let first: HostEvent? =
                state.isClosed
                ? .closed : (state.controllerProblem ?? state.stateProblem).map { .stateUnavailable(reason: $0) }
            let events = adapter.sequence(limit: 256, report: .element { .eventsDropped($0) }, first: first)
            // The sequences of the last opening have ended already.
            if state.isClosed { adapter.finish() }
            return events
        }
    }

    /// Creates a sequence of the events of links' security and of bonds.
    func securityEvents() -> Events<SecurityEvent> {
        state.withLock { state in
            let events = security.sequence(limit: 4096, report: .element { .eventsDropped($0) })
            if state.isClosed { security.finish() }
            return events
        }
    }
}
