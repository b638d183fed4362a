import BluetoothHost

/// Somebody who uses a ``SharedHost``: the engine of one manager.
protocol HostMember: AnyObject, Sendable {
    var shared: SharedHost { get }

    /// The host is open: called once, on its loop, before all that the member has posted.
    func begin(with open: OpenHost, on host: isolated BluetoothHost)

    /// The host cannot be opened; it is tried again with the next member.
    func fail(_ failure: OpeningFailure)
}

/// One adapter of this process for the managers that use it: opened with the first, closed after the last.
final class SharedHost: Sendable {
    typealias Action = @Sendable (isolated BluetoothHost, OpenHost) -> Void

    private enum Phase {
        case closed
        /// What is posted meanwhile waits.
        case opening([Action])
        case open(OpenHost)
        case failed
    }

    private struct State {
        var phase = Phase.closed
        var members: [any HostMember] = []
        /// Ends when the last opening or closing has.
        var change: Task<Void, Never>?
    }

    private let state: Guarded<State>
    private let opener: @Sendable () async -> Result<OpenHost, OpeningFailure>

    init(opener: @escaping @Sendable () async -> Result<OpenHost, OpeningFailure>) {
        state = Guarded(State())
        self.opener = opener
    }

    /// A host that somebody else has opened and closes, such as one of a simulation.
    init(_ open: OpenHost) {
        state = Guarded(State(phase: .open(open)))
        opener = { .success(open) }
    }

    // MARK: Members

    func join(_ member: any HostMember) {
        state.withLock { state in
            state.members.append(member)
            switch state.phase {
            case .open(let open): open.run(SharedHost.begin(member))
            case .opening(let actions): state.phase = .opening(actions + [SharedHost.begin(member)])
            case .closed, .failed:
                state.phase = .opening(state.members.map(SharedHost.begin))
                let before = state.change
                state.change = Task {
                    await before?.value
                    opened(await opener())
                }
            }
        }
    }

    private static func begin(_ member: any HostMember) -> Action {
        { host, open in member.begin(with: open, on: host) }
    }

    /// - Parameter farewell: is done on the loop before, where the host is open.
    func leave(_ member: any HostMember, _ farewell: @escaping Action) {
        state.withLock { state in
            guard let index = state.members.firstIndex(where: { $0 === member }) else { return }
            state.members.remove(at: index)
            switch state.phase {
            case .open(let open):
                open.run(farewell)
                if state.members.isEmpty { close(open, &state) }
            case .opening(let actions): state.phase = .opening(actions + [farewell])
            case .failed where state.members.isEmpty: state.phase = .closed
            case .closed, .failed: break
            }
        }
    }

    private func close(_ open: OpenHost, _ state: inout State) {
        guard let closing = open.close else { return }
        state.phase = .closed
        let before = state.change
        state.change = Task {
            await before?.value
            await open.store.flush()
            await closing()
        }
    }

    /// Waits for what is going on, the host's opening or its closing; whether it has not failed.
    func settle() async -> Bool {
        await state.withLock { $0.change }?.value
        return state.withLock { state in if case .failed = state.phase { false } else { true } }
    }

    private func opened(_ result: Result<OpenHost, OpeningFailure>) {
        let told = state.withLock { state -> [any HostMember] in
            guard case .opening(let actions) = state.phase else { return [] }
            switch result {
            case .success(let open):
                state.phase = .open(open)
                for action in actions { open.run(action) }
                if state.members.isEmpty { close(open, &state) }
                return []
            case .failure:
                state.phase = state.members.isEmpty ? .closed : .failed
                return state.members
            }
        }
        guard case .failure(let failure) = result else { return }
        Misuse.note(failure.text)
        for member in told { member.fail(failure) }
    }

    // MARK: Work

    /// Runs `action` on the loop, after what was posted before; nothing happens where the host cannot be opened.
    func post(_ action: @escaping Action) {
        state.withLock { state in
            switch state.phase {
            case .open(let open): open.run(action)
            case .opening(let actions): state.phase = .opening(actions + [action])
            case .closed, .failed: break
            }
        }
    }

    /// The host where it is open, for what is answered at once.
    var open: OpenHost? {
        state.withLock { state in if case .open(let open) = state.phase { open } else { nil } }
    }
}
