import BluetoothHost

/// A user of a ``SharedHost``: the backend of one manager.
protocol HostMember: AnyObject, Sendable {
    var shared: SharedHost { get }
    /// The options for opening the host, if this member is the first.
    var options: HostOptions { get }
    /// The host, from ``begin(with:on:)`` until the manager is released. Used on the loop.
    var open: OpenHost? { get }

    /// Notifies the member that the host is open. Called once, on its loop, before all actions that the member has
    /// submitted.
    func begin(with open: OpenHost, on host: isolated BluetoothHost)

    /// Notifies the member that the host cannot be opened. The host tries again until it is open or has no members.
    func fail(_ failure: OpeningFailure)
}

/// The host of one adapter, shared by the managers that use it: opened for the first, closed after the last.
final class SharedHost: Sendable {
    typealias Action = @Sendable (isolated BluetoothHost, OpenHost) -> Void

    /// An action that was submitted before the host is open.
    private struct WaitingAction {
        let run: Action
        /// Whether it is the first or the last action of a member, which belongs to one attempt to open the host.
        var isOfMembership = false
    }

    private enum Phase {
        case closed
        /// The actions that are submitted while the host opens.
        case opening([WaitingAction])
        case open(OpenHost)
        /// An adapter that the app has opened and no member uses.
        case unused(OpenHost)
        case failed
    }

    private struct State {
        var phase = Phase.closed
        var members: [any HostMember] = []
        /// The member whose options the host is opened with, while it opens. If it leaves, another member replaces it.
        var beginner: (any HostMember)?
        /// The actions that a failed attempt to open the host did not run, for the next attempt.
        var kept: [WaitingAction] = []
        /// Ends when the last opening or closing has ended.
        var change: Task<Void, Never>?
        /// The number of openings that have failed.
        var failureCount: UInt64 = 0
        /// The text of the last failure since the host was open, which is noted only once.
        var notedFailure: String?
    }

    /// The events of the host, for the apps of the members.
    let events = HostEvents()
    private let state: Guarded<State>
    private let opener: @Sendable (HostOptions) async -> Result<OpenHost, OpeningFailure>
    /// The time from a failed opening to the next attempt.
    private let retryDelay: Duration

    init(
        retryDelay: Duration = .seconds(5),
        opener: @escaping @Sendable (HostOptions) async -> Result<OpenHost, OpeningFailure>
    ) {
        state = Guarded(State())
        self.opener = opener
        self.retryDelay = retryDelay
    }

    /// Creates a shared host of an adapter that the app has opened and closes, such as one of a simulation.
    init(_ open: OpenHost) {
        state = Guarded(State(phase: .open(open)))
        opener = { _ in .success(open) }
        retryDelay = .seconds(5)
        begin(open)
    }

    // MARK: Members

    func join(_ member: any HostMember) {
        state.withLock { state in
            state.members.append(member)
            switch state.phase {
            case .open(let open): open.run(SharedHost.begin(member))
            case .unused(let open):
                state.phase = .open(open)
                begin(open)
                open.run(SharedHost.begin(member))
            case .opening(let actions):
                state.phase = .opening(actions + [SharedHost.waitingBegin(member)])
                state.beginner = state.beginner ?? member
            case .closed, .failed: beginOpening(for: member, &state)
            }
        }
    }

    private func beginOpening(for member: any HostMember, _ state: inout State) {
        state.phase = .opening(state.members.map(SharedHost.waitingBegin) + state.kept)
        state.kept = []
        state.beginner = member
        events.begin()
        let before = state.change
        state.change = Task {
            await before?.value
            await open(with: member.options)
        }
    }

    /// Begins the next attempt after a delay: the adapter may be plugged in, unblocked or given up by another program.
    private func retryLater(after failure: UInt64) {
        Task { [weak self, retryDelay] in
            try? await Task.sleep(for: retryDelay)
            self?.retry(after: failure)
        }
    }

    private func retry(after failure: UInt64) {
        state.withLock { state in
            // A member that joined may have begun another attempt.
            guard case .failed = state.phase, state.failureCount == failure, let member = state.members.first else {
                return
            }
            beginOpening(for: member, &state)
        }
    }

    /// Opens the host with the options of the member that has begun the opening.
    ///
    /// If that member leaves before the opening ends, the opening begins again with the options of the next member,
    /// unless they are the same.
    ///
    /// - Parameter options: the options if there is no member.
    private func open(with options: HostOptions) async {
        while true {
            let options = state.withLock { $0.beginner?.options } ?? options
            let result = await opener(options)
            guard !opened(result, with: options) else { return }
            guard case .success(let rejected) = result else { continue }
            await rejected.store.flush()
            await rejected.close?()
        }
    }

    private func isMember(_ member: any HostMember) -> Bool {
        state.withLock { $0.members.contains { $0 === member } }
    }

    private static func begin(_ member: any HostMember) -> Action {
        { host, open in
            if member.options.usesNetworkPrivacy, !host.usesNetworkPrivacy, member.shared.isMember(member) {
                ProgrammerError.report("the option for network privacy has no effect: the adapter is open without it")
            }
            member.begin(with: open, on: host)
        }
    }

    private static func waitingBegin(_ member: any HostMember) -> WaitingAction {
        WaitingAction(run: begin(member), isOfMembership: true)
    }

    /// Begins the use of an open host by members.
    private func begin(_ open: OpenHost) {
        events.begin()
        open.begin(reportingTo: events.source)
    }

    /// Removes a member.
    ///
    /// - Parameter farewell: the last action of the member. It runs on the loop, before the host closes, if the host is
    ///   open or opening.
    func leave(_ member: any HostMember, _ farewell: @escaping Action) {
        // Actions are released after the lock: one may hold the last reference to an object whose end calls the host.
        let released = state.withLock { state -> [WaitingAction] in
            guard let index = state.members.firstIndex(where: { $0 === member }) else { return [] }
            state.members.remove(at: index)
            if state.beginner === member { state.beginner = state.members.first }
            switch state.phase {
            case .open(let open):
                open.run(farewell)
                if state.members.isEmpty { close(open, &state) }
            case .opening(let actions):
                // The settings of the last member do not apply to a later one.
                let others = state.members.isEmpty ? actions.filter(\.isOfMembership) : actions
                state.phase = .opening(others + [WaitingAction(run: farewell, isOfMembership: true)])
                return actions
            case .failed where state.members.isEmpty:
                state.phase = .closed
                events.end()
                defer { state.kept = [] }
                return state.kept
            case .closed, .failed, .unused: break
            }
            return []
        }
        withExtendedLifetime(released) {}
    }

    private func close(_ open: OpenHost, _ state: inout State) {
        events.end()
        guard let closing = open.close else {
            state.phase = .unused(open)
            return open.end()
        }
        state.phase = .closed
        let before = state.change
        state.change = Task {
            await before?.value
            await open.store.flush()
            await closing()
        }
    }

    /// Waits until the host's opening or closing has ended. Returns whether the host has not failed to open.
    func settle() async -> Bool {
        await state.withLock { $0.change }?.value
        return state.withLock { state in if case .failed = state.phase { false } else { true } }
    }

    /// Ends an opening.
    ///
    /// - Returns: false if the members have other options than those of the opening, which has to begin again.
    private func opened(_ result: Result<OpenHost, OpeningFailure>, with options: HostOptions) -> Bool {
        var isNews = false
        // Released after the lock.
        var released: [WaitingAction] = []
        let told = state.withLock { state -> [any HostMember]? in
            guard case .opening(let actions) = state.phase else { return [] }
            if let beginner = state.beginner, beginner.options != options { return nil }
            state.beginner = nil
            released = actions
            switch result {
            case .success(let open):
                state.phase = .open(open)
                state.notedFailure = nil
                open.begin(reportingTo: events.source)
                for action in actions { open.run(action.run) }
                if state.members.isEmpty { close(open, &state) }
                return []
            case .failure(let failure):
                state.phase = state.members.isEmpty ? .closed : .failed
                state.failureCount += 1
                // The next attempt begins with the first actions of the members at that time.
                state.kept = state.members.isEmpty ? [] : actions.filter { !$0.isOfMembership }
                if state.members.isEmpty { events.end() }
                isNews = state.notedFailure != failure.text
                state.notedFailure = failure.text
                return state.members
            }
        }
        withExtendedLifetime(released) {}
        guard let told else { return false }
        if case .failure(let failure) = result {
            if isNews { ProgrammerError.note(failure.text) }
            for member in told { member.fail(failure) }
            // Afterwards, so that the members are never told of a later success first.
            if !told.isEmpty { retryLater(after: state.withLock { $0.failureCount }) }
        }
        return true
    }

    // MARK: Work

    /// Runs `action` on the loop, after the actions that were submitted before. An action that is submitted while the
    /// host opens runs once it is open, even if the first attempts fail, unless the last member leaves before that.
    ///
    /// - Returns: false if no member uses the host, or if the last attempt to open it has failed and the next one has
    ///   not begun. `action` then does not run.
    func submit(_ action: @escaping Action) -> Bool {
        state.withLock { state in
            switch state.phase {
            case .open(let open): open.run(action)
            case .opening(let actions): state.phase = .opening(actions + [WaitingAction(run: action)])
            case .closed, .failed, .unused: return false
            }
            return true
        }
    }

    /// The host if it is open, for calls that are answered at once.
    var open: OpenHost? {
        state.withLock { state in if case .open(let open) = state.phase { open } else { nil } }
    }
}

extension HostMember {
    /// Runs `action` on the loop, after the actions that the member has submitted before.
    ///
    /// A call after the manager was released, or while no host is open, has no effect and is reported.
    ///
    /// - Parameters:
    ///   - call: the reported name; nil for a call that the app does not make.
    ///   - otherwise: called instead of `action` if the call has no effect.
    func submit(
        call: String? = #function,
        otherwise: @escaping @Sendable () -> Void = {},
        _ action: @escaping SharedHost.Action
    ) {
        let refuse: @Sendable () -> Void = {
            if let call { ProgrammerError.report("\(call) has no effect: its manager was released, or has no adapter") }
            otherwise()
        }
        let isSubmitted = shared.submit { host, open in
            guard self.open != nil else { return refuse() }
            action(host, open)
        }
        if !isSubmitted { refuse() }
    }

    /// Runs `action` on the loop, for a call with a result. If the call has no effect, completes with
    /// ``CBError/Code/notConnected``.
    func submit<Value>(
        _ completion: @escaping Completion<Value>,
        call: String? = #function,
        _ action: @escaping SharedHost.Action
    ) {
        submit(call: call, otherwise: { completion(.failure(.core(.notConnected))) }, action)
    }
}
