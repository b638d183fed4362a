import BLEHCI
import BluetoothTypes

/// Brings the controller's scanning to what the apps' scans and the search for peers need.
///
/// # Model
/// The plan has a model of the controller's scanning: see ``Controller``. ``nextCommand(_:)`` compares it with the
/// wanted state and returns one command. When the reply has arrived, the next one is decided in the same way.
/// Parameters can be changed only while scanning is off (Vol 4, Part E, 7.8.10 and 7.8.64). So a change of a running
/// scan takes three commands.
///
/// # Refused commands
/// If the controller refuses a command, all scans of apps end with the error. The plan then waits for a request to run.
/// The search for peers is tried again after ``retryInterval``. If it is unknown whether the controller scans, the plan
/// first turns scanning off. If the controller refuses that with Command Disallowed, it may not be scanning. So for a
/// wanted scan, the plan continues with the parameters, which a controller accepts only while it does not scan. Until
/// the controller accepts them, its state is unknown. If no parameters may be sent now, the next run turns scanning off
/// first again.
///
/// If the controller may refuse the parameters or the start because it still runs a cancelled initiation, the scan
/// starts when that has ended.
///
/// If the controller refuses to scan on LE Coded, it scans on LE 1M for the scans that also request this PHY. Only the
/// scans on LE Coded alone end, also those that start later. The next reset of the controller clears the refusal.
///
/// # Duplicates
/// The controller filters no duplicates. A controller that filters them ignores the data of legacy PDUs, so it does not
/// report the changed data of an advertiser (Vol 6, Part B, 4.4.3.5). ``ScanSession`` filters by the data.
///
/// # Silence
/// A scan that receives nothing for a long time is restarted, because the controller may have stopped listening. If
/// that does not help and no link shows that the controller works, the controller is reset. The silent time is summed
/// over the turns of a scan. While scanning is being turned off, there is no deadline.
struct ScanPlan {
    /// The controller's scan parameters for all scans together.
    struct Parameters: Equatable {
        var isActive: Bool
        var interval: UInt16
        var window: UInt16
        var phys: PHYSet
    }

    /// What the controller does, as far as the host knows.
    enum Controller: Equatable {
        case off
        case on(Parameters)
        /// A command to turn scanning on or off had an unclear outcome, or scanning could not be turned off.
        case unknown
    }

    /// The parameters that are set in the controller.
    struct Configuration: Equatable {
        let isActive: Bool
        let interval: UInt16
        let window: UInt16
        let phys: PHYSet
        let ownAddressType: OwnAddressType
    }

    private enum Purpose {
        case stop
        case configure(Configuration)
        case start(Parameters)

        /// Whether a controller may refuse the command because it initiates.
        var beginsScan: Bool { if case .stop = self { false } else { true } }
    }

    /// The time after which a search for peers is tried again that the controller refused.
    static let retryInterval = Duration.seconds(1)

    /// The time without received packets after which a scan is restarted; nil for no limit.
    private let silenceTimeout: Duration?
    /// The scans of apps.
    var scans = ScanTable()
    var assembler = ExtendedReportAssembler()
    /// Whether the host also scans for peers to connect to whose addresses the controller cannot resolve.
    private(set) var isResolvingPeers = false
    /// Whether the host also scans for the periodic advertising trains that apps want to receive.
    var isSynchronizing = false
    /// Whether one of these peers or trains was received on the LE Coded PHY.
    private var searchesOnCodedPHY = false
    private(set) var run = PlanRun()
    private var pending = PendingCommand<Purpose>(of: .scan)
    private(set) var controller = Controller.off
    /// Whether a stop failed in this run, and the plan continues with the parameters. The reply to them shows whether
    /// the controller scans.
    private var isStopRefused = false
    /// The parameters that the controller has for the next start. Forgotten when the scan starts, because they are set
    /// before each start.
    private var configuration: Configuration?
    /// The controller's refusal to scan on LE Coded; nil if it has not refused since its last reset.
    private(set) var codedRefusal: CommandFailure?
    /// Whether the controller reported the end of the scan before it confirmed the start.
    private var hasEndedEarly = false
    /// Whether scanning is to be turned off and on again because of silence.
    private var isRestartDue = false
    private var hasRestartedInSilence = false
    /// When the last report arrived or the scan was started. Time between the turns of a scan does not count: the
    /// instant is moved forward by it.
    private var lastActivity = Instant(nanoseconds: 0)
    /// The time since the last report, when scanning last stopped.
    private var silence = Duration.zero
    /// When a refused search for peers is tried again.
    private var retryDeadline: Instant?

    init(silenceTimeout: Duration?) {
        self.silenceTimeout = silenceTimeout
    }

    /// The combined parameters of the scans: active if any scan is active, with the shortest interval, the longest
    /// window and all PHYs.
    var wanted: Parameters? {
        guard isWanted else { return nil }
        var parameters = Parameters(isActive: false, interval: .max, window: 0, phys: [])
        if isResolvingPeers || isSynchronizing {
            (parameters.interval, parameters.window, parameters.phys) = (0x60, 0x60, .le1M)
            if searchesOnCodedPHY { parameters.phys.insert(.leCoded) }
        }
        for session in scans.sessions.values {
            let options = session.options
            let interval = min(max(options.interval.inUnits(of: .microseconds(625)), 4), 0x4000)
            parameters.isActive = parameters.isActive || options.isActive
            parameters.interval = min(parameters.interval, interval)
            parameters.window = max(parameters.window, max(options.window.inUnits(of: .microseconds(625)), 4))
            parameters.phys.formUnion(options.phys.isDisjoint(with: [.le1M, .leCoded]) ? .le1M : options.phys)
        }
        parameters.window = min(parameters.window, parameters.interval)
        return parameters
    }

    /// Whether an app or the host itself wants a scan.
    private var isWanted: Bool { !scans.isEmpty || isResolvingPeers || isSynchronizing }

    /// Whether a scan is wanted or the controller may be scanning. Otherwise a pass has nothing to do.
    var mayScan: Bool { isWanted || controller != .off || run.isRunning }

    /// Whether the controller does not scan, and no command for it is in progress. A controller whose scan cannot be
    /// turned off counts as well, because waiting for it would not help.
    var isResting: Bool {
        if run.isRunning { return false }
        if case .on = controller { return false }
        return true
    }

    /// Whether the controller may scan actively, now or by the commands in progress.
    var mayScanActively: Bool {
        guard !run.isRunning, case .on(let parameters) = controller else { return true }
        return parameters.isActive
    }

    // MARK: Scans

    /// Requests a pass.
    ///
    /// - Returns: whether the caller must schedule it.
    mutating func requestRun() -> Bool { run.request() }

    /// Ends all scans.
    ///
    /// - Returns: the ended scans, oldest first.
    mutating func endScans() -> [ScanIdentifier] { scans.removeAll() }

    /// Handles a report.
    ///
    /// - Returns: nil if the report is new to no scan.
    mutating func receive(_ receipt: borrowing AdvertisingReceipt, at now: Instant) -> ScanTable.Matches? {
        lastActivity = now
        hasRestartedInSilence = false
        return scans.receive(receipt, at: now)
    }

    // MARK: Commands

    /// Returns the command to send now. Nil if the controller scans as requested, or if the plan waits for a request.
    mutating func nextCommand(_ context: Context) -> PlannedCommand? {
        isResolvingPeers = context.isResolvingPeers
        searchesOnCodedPHY = context.searchesOnCodedPHY
        forgetSilenceUnlessWanted()
        guard !pending.isPending, run.maySend, let purpose = nextPurpose(context) else {
            endRun()
            return nil
        }
        run.sent()
        retryDeadline = nil
        hasEndedEarly = false
        return PlannedCommand(command: command(for: purpose, context), step: pending.begin(purpose))
    }

    /// Ends the run: the controller cannot be used now.
    mutating func endRun() {
        isStopRefused = false
        run.end()
    }

    private func nextPurpose(_ context: Context) -> Purpose? {
        let wanted = wantedParameters(context)
        switch controller {
        case .unknown where !isStopRefused || !isWanted: return .stop
        case .on(let parameters): return parameters == wanted && !isRestartDue ? nil : .stop
        case .off, .unknown:
            guard let wanted else { return nil }
            let needed = Configuration(
                isActive: wanted.isActive,
                interval: wanted.interval,
                window: wanted.window,
                phys: wanted.phys,
                ownAddressType: context.ownAddressType
            )
            return configuration == needed ? .start(wanted) : .configure(needed)
        }
    }

    /// The parameters with which the controller should scan now.
    private func wantedParameters(_ context: Context) -> Parameters? {
        guard !context.isHeld, var wanted else { return nil }
        wanted.phys.formIntersection(context.canScanCodedPHY && codedRefusal == nil ? [.le1M, .leCoded] : .le1M)
        if wanted.phys.isEmpty { wanted.phys = .le1M }
        return context.isInitiating && !context.canScanWhileInitiating(actively: wanted.isActive) ? nil : wanted
    }

    private func command(for purpose: Purpose, _ context: Context) -> GAPCommand {
        switch purpose {
        case .stop: enableCommand(false, context)
        case .start: enableCommand(true, context)
        case .configure(let configuration):
            context.usesExtendedCommands
                ? GAPCommand(configuration.extendedCommand) : GAPCommand(configuration.legacyCommand)
        }
    }

    private func enableCommand(_ isEnabled: Bool, _ context: Context) -> GAPCommand {
        context.usesExtendedCommands
            ? GAPCommand(LESetExtendedScanEnable(enable: isEnabled))
            : GAPCommand(LESetScanEnable(leScanEnable: isEnabled))
    }

    // MARK: Replies

    /// Handles a successful reply. A reply to a command of an earlier controller has no effect.
    mutating func finished(_ step: GAPStep, at now: Instant) {
        switch pending.end(step) {
        case nil: break
        case .stop: stopped(.off, at: now)
        case .configure(let configuration):
            // The controller accepts parameters only while it does not scan.
            if controller == .unknown { stopped(.off, at: now) }
            isStopRefused = false
            self.configuration = configuration
        case .start(let parameters):
            assembler.removeAll()
            configuration = nil
            lastActivity = now + (.zero - silence)
            controller = hasEndedEarly ? .unknown : .on(parameters)
        }
    }

    /// Handles a command that failed. All scans end, unless the controller is reset or the plan can continue.
    ///
    /// - Parameter mayInitiate: whether the controller may still run a cancelled initiation, beside which it cannot
    ///   scan.
    mutating func failed(
        _ step: GAPStep,
        _ failure: CommandFailure,
        mayInitiate: Bool = false,
        at now: Instant
    ) -> [ScanEffect] {
        let purpose = pending.end(step)
        isStopRefused = false
        if mayInitiate, purpose?.beginsScan == true, failure.isDisallowed {
            configuration = nil
            return [.cancelInitiation]
        }
        if let purpose, refusesCoded(purpose, failure) {
            configuration = nil
            codedRefusal = failure
            return [.codedRefused(failure)] + scans.removeScansOnCodedAlone().map { .end($0, failure) }
        }
        switch purpose {
        case nil: return []
        // The controller ended the scan before.
        case .stop where !failure.meansReset && controller == .off:
            stopped(.off, at: now)
            return []
        // The controller may have ended the scan before, or may have stopped working. So the restart continues.
        case .stop where !failure.meansReset && isRestartDue:
            stopped(.unknown, at: now)
            isStopRefused = true
            return []
        // Perhaps it does not scan. If it does, it refuses the parameters.
        case .stop where controller == .unknown && isWanted && failure.isDisallowed:
            isStopRefused = true
            return []
        case .stop: stopped(.unknown, at: now)
        // Parameters are refused while the controller scans (Vol 4, Part E, 7.8.10). So it may do that.
        case .configure: if failure.isDisallowed { controller = .unknown }
        case .start: if failure.isOutcomeUnknown { controller = .unknown }
        }
        configuration = nil
        run.refused()
        if failure.meansReset { return [] }
        let ended: [ScanEffect] = endScans().map { .end($0, failure) }
        guard isResolvingPeers || isSynchronizing else { return ended }
        retryDeadline = now + ScanPlan.retryInterval
        return ended + [.refused(failure)]
    }

    /// Whether the controller refuses to scan on LE Coded. Command Disallowed does not show that: the controller may be
    /// scanning (Vol 4, Part E, 7.8.64).
    private func refusesCoded(_ purpose: Purpose, _ failure: CommandFailure) -> Bool {
        guard case .status(let status, _) = failure, status != .commandDisallowed else { return false }
        return switch purpose {
        case .stop: false
        case .configure(let configuration): configuration.phys.contains(.leCoded)
        case .start(let parameters): parameters.phys.contains(.leCoded)
        }
    }

    /// Records that scanning is off, or could not be turned off. The silent time is kept if a scan is still wanted.
    private mutating func stopped(_ state: Controller, at now: Instant) {
        if case .on(let parameters) = controller {
            silence = isRestartDue || !parameters.phys.contains(.le1M) ? .zero : now - lastActivity
        }
        controller = state
        isRestartDue = false
        assembler.removeAll()
        forgetSilenceUnlessWanted()
    }

    // MARK: Events

    /// Handles the end of a scan by the controller itself (Vol 4, Part E, 7.7.65.17).
    mutating func endedByController(at now: Instant) {
        if case .start? = pending.purpose { hasEndedEarly = true }
        if case .on = controller { stopped(.off, at: now) }
    }

    /// Records that the controller was reset and no longer scans. All advertisers are reported again.
    mutating func controllerLost() {
        pending.forget()
        controller = .off
        isStopRefused = false
        configuration = nil
        codedRefusal = nil
        isRestartDue = false
        silence = .zero
        hasRestartedInSilence = false
        retryDeadline = nil
        assembler.removeAll()
        scans.forgetAdvertisers()
    }

    // MARK: Silence

    /// When the plan has something to do; nil if it waits for no time.
    var deadline: Instant? { earliest(silenceDeadline, retryDeadline) }

    /// When the scan will have been silent for too long; nil if the controller does not scan on LE 1M. On LE Coded
    /// alone, silence is usual.
    private var silenceDeadline: Instant? {
        guard let silenceTimeout, !pending.isPending, !isRestartDue, case .on(let parameters) = controller,
            parameters.phys.contains(.le1M)
        else { return nil }
        return lastActivity + silenceTimeout
    }

    /// Handles the passing of time.
    ///
    /// - Parameter mayReset: whether the controller may be reset: nothing that a reset would end is in use.
    mutating func advance(to now: Instant, mayReset: Bool) -> [ScanEffect] {
        if let retryDeadline, retryDeadline <= now {
            self.retryDeadline = nil
            return [.run]
        }
        guard let silenceDeadline, let silenceTimeout, silenceDeadline <= now else { return [] }
        if hasRestartedInSilence, mayReset {
            hasRestartedInSilence = false
            return [.reset(silence: silenceTimeout * 2)]
        }
        hasRestartedInSilence = true
        isRestartDue = true
        return [.restart(afterSilence: silenceTimeout)]
    }

    /// Forgets the silent time if no scan is wanted.
    mutating func forgetSilenceUnlessWanted() {
        guard !isWanted else { return }
        silence = .zero
        hasRestartedInSilence = false
    }
}
