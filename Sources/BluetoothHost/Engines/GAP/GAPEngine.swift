import BLEHCI
import BluetoothTypes
import OrderedCollections

/// What an input of a ``GAPEngine`` depends on besides the engine's own state.
struct GAPContext {
    let now: Instant
    /// The properties of the controller; nil while it cannot be used.
    let controller: ControllerInformation?
    /// Whether the controller can be used.
    let isOn: Bool
    /// Whether the controller has connections.
    let hasLinks: Bool
    /// Whether the controller sends or receives broadcast isochronous groups.
    let hasBroadcasts: Bool
    /// This host's key for its private addresses.
    let ownKey: UInt128
    /// The bonds, the most recently used one last.
    let bonds: OrderedDictionary<DeviceAddress, BondRecord>.Values

    init(
        now: Instant,
        controller: ControllerInformation?,
        hasLinks: Bool,
        hasBroadcasts: Bool,
        ownKey: UInt128,
        bonds: OrderedDictionary<DeviceAddress, BondRecord>.Values
    ) {
        self.now = now
        self.controller = controller
        isOn = controller != nil
        self.hasLinks = hasLinks
        self.hasBroadcasts = hasBroadcasts
        self.ownKey = ownKey
        self.bonds = bonds
    }
}

/// Brings the controller's scanning, initiating, advertising, synchronizations and addresses to what the apps want.
///
/// # Plans
/// Each of six plans decides about one of these activities: ``ScanPlan``, ``ConnectionPlan``, ``AdvertisingPlan``,
/// ``SubeventDataPlan``, ``SynchronizationPlan`` and ``AddressPlan``. The engine decides what they share. It gives each
/// plan what it must know of the others, and has a plan run when the state of another one has changed.
///
/// # Passes
/// A plan that may have something to do is requested to run. A run is a series of passes. In a pass, the plan decides
/// at most one command. The next pass follows the reply. The run ends when a pass finds nothing to do: see ``PlanRun``.
/// A pass begins after the jobs that wait on the loop already (``GAPEffect/schedulePass(_:)``). So it sees the outcome
/// of all inputs before it.
///
/// # Addresses
/// Addresses can be changed only while no activity uses them. If the address plan wants a change, it holds the
/// activities: see ``AddressPlan/hold``. An activity rests when the controller does not perform it and no command for
/// it is pending. When all held activities rest, the address plan gets its pass.
///
/// # Set-up
/// In a controller that was reset, the addresses are set up first: ``prepareAddresses(_:_:_:)``. The other plans run
/// from ``controllerIsReady(_:)`` on.
///
/// The engine cannot be copied: the compiler would otherwise copy it for each call that does not change it.
struct GAPEngine: ~Copyable {
    /// The set-up of addresses in a controller that was reset.
    struct Preparation {
        let controller: ControllerInformation
        /// Why it has failed.
        var failure: CommandFailure?
    }

    var scanning: ScanPlan
    var connecting = ConnectionPlan()
    var advertising: AdvertisingPlan
    var subevents = SubeventDataPlan()
    var synchronizing = SynchronizationPlan()
    var addresses: AddressPlan
    /// Nil if no set-up is in progress.
    var preparation: Preparation?
    /// This host's addresses on links of which the controller has reported only the end of the advertising set.
    var addressesOfComingLinks: OrderedDictionary<ConnectionHandle, DeviceAddress> = [:]
    /// The effects of the current input.
    private var effects: [GAPEffect] = []

    init(scanning: ScanPlan, advertising: AdvertisingPlan, addresses: AddressPlan) {
        self.scanning = scanning
        self.advertising = advertising
        self.addresses = addresses
    }

    /// Adds an effect of the current input.
    mutating func add(_ effect: GAPEffect) {
        effects.append(effect)
    }

    /// Whether an input has not taken its effects.
    var hasEffects: Bool { !effects.isEmpty }

    /// Returns the effects of the current input, and clears them. Each input that can add effects ends with this call.
    mutating func takeEffects() -> [GAPEffect] {
        defer { effects = [] }
        return effects
    }

    // MARK: Passes

    /// Has a plan decide its next command.
    mutating func runPass(
        of plan: GAPPlan,
        _ context: GAPContext,
        _ random: inout some RandomNumberGenerator
    ) -> [GAPEffect] {
        switch plan {
        case .scan: scanPass(context)
        case .connection: connectionPass(context)
        case .advertising: advertisingPass(context, &random)
        case .addresses: addressPass(context)
        case .synchronization: synchronizationPass(context)
        case .subevents: subeventPass()
        }
        return takeEffects()
    }

    /// Gives a plan the reply to its command: a failure, or nil for success. The plan gets the reply at once when it
    /// arrives, so that it never sees a later event first. It decides the next command in the next pass.
    mutating func commandEnded(_ step: GAPStep, _ failure: CommandFailure?, _ context: GAPContext) -> [GAPEffect] {
        // First, so that this plan's next pass precedes the passes of other plans that the reply causes.
        add(.schedulePass(step.plan))
        switch step.plan {
        case .scan: scanCommandEnded(step, failure, context)
        case .connection: connectionCommandEnded(step, failure, context)
        case .advertising: advertisingCommandEnded(step, failure, context)
        case .addresses: addressCommandEnded(step, failure, context)
        case .synchronization: synchronizationCommandEnded(step, failure, context)
        case .subevents: subeventCommandEnded(step, failure)
        }
        return takeEffects()
    }

    // MARK: The controller

    /// Handles a controller that can be used from now on.
    mutating func controllerIsReady(_ context: GAPContext) -> [GAPEffect] {
        // The order of the passes: addresses before the activities that use them. Initiating is last, because it may
        // have to wait for scanning.
        addresses.startLifetime(at: context.now)
        requestAddressPass(context)
        requestAdvertisingPass(context)
        requestScanPass(context)
        requestConnectionPass(context)
        requestSynchronizationPass(context)
        return takeEffects()
    }

    /// Records that the controller was reset and has nothing of the plans.
    mutating func controllerWasLost(_ context: GAPContext) -> [GAPEffect] {
        scanning.controllerLost()
        subevents.controllerLost()
        perform(advertising.controllerLost(), context)
        perform(synchronizing.controllerLost())
        scanning.isSynchronizing = synchronizing.isSearching
        connecting.controllerLost(at: context.now)
        addresses.controllerLost()
        addressesOfComingLinks = [:]
        preparation = nil
        return takeEffects()
    }

    /// Has advertising and initiating stopped and started again, in case the controller ended them without the host's
    /// knowledge.
    mutating func restartRoles(_ context: GAPContext) -> [GAPEffect] {
        if context.isOn { advertising.refresh() }
        requestAdvertisingPass(context)
        perform(connecting.restartInitiating(), context)
        return takeEffects()
    }

    /// Ends all scans, attempts and advertisements of apps. The caller resets the controller.
    mutating func endAllOperations(_ error: HostError, _ context: GAPContext) -> [GAPEffect] {
        for scan in scanning.endScans() { add(.endScan(scan, error)) }
        for attempt in connecting.endAll(at: context.now) { add(.attemptFailed(attempt, error)) }
        perform(subevents.remove(subevents.advertisements, error))
        perform(advertising.removeAll(error), context)
        for identifier in synchronizing.removeAll() { add(.endSynchronization(identifier, error)) }
        for identifier in synchronizing.reception.removeAll() { add(.endReception(identifier, error)) }
        return takeEffects()
    }

    // MARK: Time

    /// When the engine has something to do; nil if it waits for no time.
    ///
    /// - Parameter isOn: whether the controller can be used. Otherwise the deadlines of scanning and of private
    ///   addresses are ignored.
    ///
    /// It changes nothing. It is `mutating`, because the compiler copies a structure of this size for a call that is
    /// not.
    mutating func deadline(isOn: Bool) -> Instant? {
        let always = earliest(connecting.deadline, advertising.deadline)
        guard isOn else { return always }
        return earliest(earliest(always, synchronizing.deadline), earliest(scanning.deadline, addresses.deadline))
    }

    /// Handles the passing of time.
    mutating func advance(_ context: GAPContext, _ random: inout some RandomNumberGenerator) -> [GAPEffect] {
        let now = context.now
        if context.isOn {
            let isInUse = context.hasLinks || context.hasBroadcasts || advertising.hasTrain || synchronizing.hasTrain
            perform(scanning.advance(to: now, mayReset: !isInUse), context)
        }
        let connection = context.controller.map { connectionContext($0) }
        perform(connecting.advance(to: now, connection), context)
        if let deadline = advertising.deadline, deadline <= now {
            perform(advertising.advance(to: now), context)
            requestAdvertisingPass(context)
        }
        advanceSynchronizations(context)
        if context.isOn, addresses.advance(to: now, context.ownKey, &random) {
            requestAddressPass(context)
            requestAdvertisingPass(context)
        }
        return takeEffects()
    }
}
