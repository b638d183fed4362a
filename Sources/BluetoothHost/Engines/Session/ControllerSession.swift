import BLEHCI
import BluetoothTypes

/// The controller of a host: its bring-up and recovery, the commands to it, and the handles that it uses without a
/// link.
///
/// ## Bring-up
///
/// ``start(_:)`` opens the transport and brings the controller up. A controller that reports an error during this is
/// reset again, at most twice. An error may erase the controller's settings, such as the event masks. An error that it
/// reports before it has confirmed Reset dates from before the reset and is ignored.
///
/// Two steps are done by the caller: it reads the stored state, and it sets up addresses. A failure during such a step
/// takes effect when the step ends.
///
/// ## Recovery
///
/// A controller that is on and fails is brought up again until that succeeds. After a failed attempt, the transport is
/// closed and opened again. The pause before the next attempt doubles each time, up to 30 s. It starts again at 100 ms
/// if the controller has worked for 30 s, or if the caller knows that it is there again (``retry(at:)``).
///
/// ## Commands
///
/// Each submitted command ends exactly once: it is answered (``answered(_:credits:isSuccessStatus:)``), or it fails
/// (``SessionEffect/commandFailed(_:_:)``). A controller that is on and does not answer in time has failed. During a
/// bring-up, only the command fails, because many of its commands may be unknown to the controller.
///
/// ## Time
///
/// The caller calls ``advance(to:)`` at the ``deadline``. An early call does nothing.
struct ControllerSession {
    /// Whether the controller can be used.
    enum Power: Equatable {
        case off
        case starting
        case on
        case recovering
        case closed
    }

    enum Phase {
        case off
        /// The transport is being opened.
        case opening
        case bringingUp(BringUp)
        case on(since: Instant)
        /// The next attempt of a recovery starts then.
        case pausing(until: Instant)
        /// The host is being closed. The controller may still be told to end its links.
        case closing
        case closed
    }

    private static let shortestRecoveryDelay = Duration.milliseconds(100)
    private static let longestRecoveryDelay = Duration.seconds(30)

    private(set) var phase = Phase.off {
        didSet { updatePower() }
    }
    /// Whether the controller can be used, by the phase. Stored, because the host asks for it with each input.
    private(set) var power = Power.off
    /// The properties of the controller, from when it was last up.
    private(set) var information: ControllerInformation?
    /// Incremented for each transport and each failure of a controller. What began in an earlier generation is ignored.
    private(set) var generation: UInt64 = 0
    var commands: CommandQueue
    var strays = StrayHandles()
    private(set) var isTransportOpen = false
    /// The call of ``start(_:)``, until it ends. Nil during a recovery.
    private var startCall: CallToken? {
        didSet { updatePower() }
    }
    /// How often the first bring-up may start again after an error of the controller.
    private var remainingResets = 0
    private var recoveryDelay = shortestRecoveryDelay
    private let mayUseExtendedCommands: Bool
    private let hostFeatures: LEFeatures
    /// The LE events that commands of GAP's plans enable, until the commands end.
    private var eventsOfPlans: [GAPStep: LEEventMask] = [:]

    /// - Parameters:
    ///   - commandTimeout: the time within which the controller must answer a command.
    ///   - mayUseExtendedCommands: whether extended advertising, scanning and initiating are used if the controller
    ///     supports them.
    ///   - hostFeatures: the features of the host that the controller is told of if it supports them.
    init(commandTimeout: Duration, mayUseExtendedCommands: Bool, hostFeatures: LEFeatures = []) {
        commands = CommandQueue(timeout: commandTimeout)
        self.mayUseExtendedCommands = mayUseExtendedCommands
        self.hostFeatures = hostFeatures
    }

    private mutating func updatePower() {
        power =
            switch phase {
            case .off: .off
            case .opening, .bringingUp, .pausing: startCall == nil ? .recovering : .starting
            case .on: .on
            case .closing, .closed: .closed
            }
    }

    /// When a time limit passes next.
    var deadline: Instant? {
        let endOfPause: Instant? = if case .pausing(let end) = phase { end } else { nil }
        return earliest(commands.deadline, earliest(strays.deadline, endOfPause))
    }

    // MARK: Start and end

    /// Opens the transport and brings the controller up.
    ///
    /// - Parameter call: the call that ends when the controller is up, or could not be brought up.
    /// - Precondition: the session is off.
    mutating func start(_ call: CallToken) -> [SessionEffect] {
        startCall = call
        remainingResets = 2
        return openTransport()
    }

    /// Begins to close. The caller then ends the links and resets the controller if it was on, and calls ``end()``.
    ///
    /// - Returns: whether the controller was on.
    mutating func close() -> Bool {
        let wasOn = power == .on
        phase = .closing
        strays.removeAll()
        return wasOn
    }

    /// Ends closing: all commands fail, and the transport is closed.
    mutating func end() -> [SessionEffect] {
        phase = .closed
        let call = startCall.take()
        return closeTransport() + (call.map { [.finish($0, .closed)] } ?? [])
    }

    // MARK: Transport

    private mutating func openTransport() -> [SessionEffect] {
        generation += 1
        phase = .opening
        return [.openTransport(generation: generation)]
    }

    /// Whether a transport that was opened for this generation is to be used.
    func awaitsTransport(_ generation: UInt64) -> Bool {
        if case .opening = phase { generation == self.generation } else { false }
    }

    mutating func transportOpened(at now: Instant) -> [SessionEffect] {
        guard case .opening = phase else { return [] }
        isTransportOpen = true
        return beginBringUp(at: now)
    }

    /// Handles that no transport could be opened.
    ///
    /// - Parameter reason: a description of the error.
    mutating func transportNotOpened(_ reason: String, at now: Instant) -> [SessionEffect] {
        guard case .opening = phase else { return [] }
        return attemptFailed(.controllerFailed(reason), reason, at: now)
    }

    /// Handles the end of the transport, which the caller has closed by now.
    mutating func transportEnded(_ reason: String, at now: Instant) -> [SessionEffect] {
        guard isTransportOpen else { return [] }
        isTransportOpen = false
        return abortCommands() + failed(reason, isTransportLost: true, at: now)
    }

    private mutating func closeTransport() -> [SessionEffect] {
        generation += 1
        let wasOpen = isTransportOpen
        isTransportOpen = false
        return abortCommands() + (wasOpen ? [.closeTransport] : [])
    }

    // MARK: Failures

    /// Handles a failure of the controller. One that is on is brought up again. An attempt to bring it up fails.
    mutating func failed(_ reason: String, at now: Instant) -> [SessionEffect] {
        failed(reason, isTransportLost: false, at: now)
    }

    private mutating func failed(_ reason: String, isTransportLost: Bool, at now: Instant) -> [SessionEffect] {
        switch phase {
        case .on(let since): return recover(reason, upFor: now - since, at: now)
        case .bringingUp(var bringUp):
            guard isTransportLost || bringUp.step != .reset && bringUp.failure == nil else { return [] }
            let effects = [.report(.failedDuringBringUp(reason: reason))] + abortCommands()
            guard bringUp.step.isByCaller else { return effects + attemptFailed(.controllerFailed(reason), at: now) }
            bringUp.failure = reason
            phase = .bringingUp(bringUp)
            return effects
        case .off, .opening, .pausing, .closing, .closed: return []
        }
    }

    /// Starts to bring a controller up again that has failed while it was on.
    private mutating func recover(_ reason: String, upFor time: Duration, at now: Instant) -> [SessionEffect] {
        generation += 1
        strays.removeAll()
        let effects = abortCommands() + [.lost(reason: reason)]
        if time > .seconds(30) { recoveryDelay = ControllerSession.shortestRecoveryDelay }
        // Prevents a busy loop if the controller fails immediately each time.
        if time < .seconds(1) {
            phase = .pausing(until: now + recoveryDelay)
            return effects
        }
        return effects + attempt(at: now)
    }

    /// Starts the next attempt of a recovery. Commands of the pause before it are not sent any more.
    mutating func attempt(at now: Instant) -> [SessionEffect] {
        guard isTransportOpen else { return openTransport() }
        let aborted = commands.count == 0 ? [] : abortCommands()
        return aborted + beginBringUp(at: now)
    }

    /// Ends the pause before the next attempt of a recovery, because the controller is there again. If an attempt is in
    /// progress and fails, the pause after it is short.
    mutating func retry(at now: Instant) -> [SessionEffect] {
        guard power == .recovering else { return [] }
        recoveryDelay = ControllerSession.shortestRecoveryDelay
        if case .pausing = phase { return attempt(at: now) }
        return []
    }

    /// - Parameter reason: a description of the error for the report; nil for its own description.
    private mutating func attemptFailed(
        _ error: HostError,
        _ reason: String? = nil,
        at now: Instant
    ) -> [SessionEffect] {
        guard let call = startCall else {
            let report = SessionEffect.report(.willRetry(reason: reason ?? "\(error)", after: recoveryDelay))
            phase = .pausing(until: now + recoveryDelay)
            lengthenRecoveryDelay()
            return [report] + closeTransport()
        }
        if case .controllerFailed = error, isTransportOpen, remainingResets > 0 {
            remainingResets -= 1
            return beginBringUp(at: now)
        }
        startCall = nil
        phase = .off
        return closeTransport() + [.finish(call, error)]
    }

    private mutating func lengthenRecoveryDelay() {
        recoveryDelay = min(recoveryDelay * 2, ControllerSession.longestRecoveryDelay)
    }

    // MARK: Bring-up

    private mutating func beginBringUp(at now: Instant) -> [SessionEffect] {
        let bringUp = BringUp(
            publicAddress: information?.publicAddress,
            mayUseExtendedCommands: mayUseExtendedCommands,
            hostFeatures: hostFeatures
        )
        phase = .bringingUp(bringUp)
        return perform(bringUp.action, at: now)
    }

    private mutating func proceed(_ bringUp: BringUp, at now: Instant) -> [SessionEffect] {
        var bringUp = bringUp
        guard let action = bringUp.proceed() else { return ready(bringUp.information, at: now) }
        phase = .bringingUp(bringUp)
        return perform(action, at: now)
    }

    private mutating func perform(_ action: BringUp.Action?, at now: Instant) -> [SessionEffect] {
        switch action {
        case .send(let request): submit(request, at: now)
        case .loadBonds(let publicAddress): [.loadBonds(publicAddress)]
        case .prepareAddresses(let information): [.prepareAddresses(information)]
        case nil: []
        }
    }

    private mutating func ready(_ information: ControllerInformation, at now: Instant) -> [SessionEffect] {
        self.information = information
        phase = .on(since: now)
        lengthenRecoveryDelay()
        let call = startCall.take()
        return [.ready(information)] + (call.map { [.finish($0, nil)] } ?? [])
    }

    /// Whether a command may be sent now. During a bring-up, a command that others submit is for the controller before
    /// its reset, except while the caller carries out a step.
    func mayTake(_ request: CommandRequest) -> Bool {
        guard isTransportOpen else { return false }
        guard case .bringingUp(let bringUp) = phase else { return true }
        if case .bringUp = request.tag { return true }
        return bringUp.step.isByCaller
    }

    /// The bring-up, if this is its current step.
    private func bringUp(at step: BringUpStep) -> BringUp? {
        guard case .bringingUp(let bringUp) = phase, bringUp.step == step else { return nil }
        return bringUp
    }

    /// Handles the answer to the command of a step.
    mutating func received(_ reply: RawSpan, for step: BringUpStep, at now: Instant) -> [SessionEffect] {
        guard var bringUp = bringUp(at: step) else { return [] }
        do throws(CommandFailure) {
            try bringUp.receive(reply)
        } catch {
            return stepFailed(step, error, at: now)
        }
        return proceed(bringUp, at: now)
    }

    /// Handles the failure of a step's command. After an optional one, the bring-up continues.
    mutating func stepFailed(_ step: BringUpStep, _ failure: CommandFailure, at now: Instant) -> [SessionEffect] {
        guard let bringUp = bringUp(at: step) else { return [] }
        guard step.isOptional else { return attemptFailed(.command(failure), at: now) }
        return [.report(.optionalCommandFailed(failure))] + proceed(bringUp, at: now)
    }

    // MARK: Events

    /// Records that the controller is to report further LE events. One mask selects all events, so all parts of the
    /// host add their events here. The mask to send is then that of ``information``.
    ///
    /// - Returns: the events that are new in the mask, for ``enablingFailed(_:_:)``. Empty if the controller reports
    ///   these events already, or is not up.
    mutating func enable(_ events: LEEventMask) -> LEEventMask {
        guard let enabled = information?.leEvents else { return [] }
        information?.leEvents.formUnion(events)
        return events.subtracting(enabled)
    }

    /// Records the LE events that a command of a plan enables.
    mutating func enable(_ events: LEEventMask, by step: GAPStep) {
        let added = enable(events)
        if !added.isEmpty { eventsOfPlans[step] = added }
    }

    /// Handles the end of a plan's command: nil means success.
    mutating func planCommandEnded(_ step: GAPStep, _ failure: CommandFailure?) {
        guard let added = eventsOfPlans.removeValue(forKey: step), let failure else { return }
        enablingFailed(added, failure)
    }

    /// Handles the failure of a command with a mask. If the controller has refused the mask, it does not report the new
    /// events. So later masks do not have them.
    ///
    /// - Parameter added: the events that were new in the mask.
    mutating func enablingFailed(_ added: LEEventMask, _ failure: CommandFailure) {
        guard case .status = failure else { return }
        information?.leEvents.subtract(added)
    }

    // MARK: Stored state and addresses

    /// Whether the bring-up waits for the stored state.
    var awaitsBonds: Bool { bringUp(at: .loadBonds) != nil }

    /// Continues the bring-up after the stored state was read.
    ///
    /// - Parameters:
    ///   - identity: the address that the host uses as its own.
    ///   - obstacle: the reason why the controller must not be brought up; nil if there is none.
    mutating func bondsLoaded(
        identity: DeviceAddress,
        obstacle: String?,
        at now: Instant
    ) -> [SessionEffect] {
        guard var bringUp = bringUp(at: .loadBonds) else { return [] }
        if let obstacle { return attemptFailed(.stateUnavailable(obstacle), at: now) }
        if let failure = bringUp.failure { return attemptFailed(.controllerFailed(failure), at: now) }
        bringUp.setIdentity(identity)
        return proceed(bringUp, at: now)
    }

    /// Continues the bring-up after the addresses were set up.
    ///
    /// - Parameter failure: why a command that is necessary for this has failed; nil if the addresses are set up.
    mutating func addressesPrepared(_ failure: CommandFailure?, at now: Instant) -> [SessionEffect] {
        guard let bringUp = bringUp(at: .prepareAddresses) else { return [] }
        if let failure = bringUp.failure { return attemptFailed(.controllerFailed(failure), at: now) }
        if let failure { return attemptFailed(.command(failure), at: now) }
        return proceed(bringUp, at: now)
    }
}
