import BLEHCI
import BluetoothTypes
import OrderedCollections

/// Brings the controller's initiation of connections to what the apps' attempts need.
///
/// # Model
/// A controller initiates one connection at a time. For several peers, it uses its filter accept list. The plan has
/// a model of the initiation and of that list: see ``Controller`` and ``acceptList``. ``nextCommand(_:at:)`` compares
/// the model with the wanted state and returns one command. When the reply has arrived, the next one is decided in the
/// same way. The accept list cannot be read, so it is cleared and written again for each initiation.
///
/// # Turns
/// Peers that do not all fit on the accept list take turns: see ``Window``. Some controllers cannot scan while they
/// initiate connections (Vol 4, Part E, 7.8.27). With these, scans have a turn after each turn of peers.
///
/// # Unknown outcomes
/// A cancelled initiation ends with an event (Vol 4, Part E, 7.8.13). If the event does not arrive in time, the plan
/// assumes that the controller initiates nothing. If the controller then refuses the next initiation, or had refused
/// the cancellation, the plan cancels once more. It also does so if the controller refuses to change its accept list or
/// to scan, because it may still initiate. An initiation whose reply is unclear, or which may have ended without an
/// event, is cancelled and started again.
///
/// # Trains
/// A connection to a device that is synchronized with a train of this host is requested in a subevent (Vol 6, Part B,
/// 4.4.2.12). Such attempts precede others, because each has a time limit. They take turns: a request takes one event
/// of the train, and is repeated if the device has not answered. An attempt whose train does not run waits.
///
/// # LE Coded
/// If the controller refuses an initiation on LE Coded, the plan tries it on LE 1M alone: see ``CodedRefusal``.
struct ConnectionPlan {
    /// The parameters of the controller's initiation.
    struct Initiation: Equatable {
        var addresses: Set<DeviceAddress>
        var parameters: ConnectionParameters
        /// Whether the controller initiates on the LE Coded PHY too.
        var usesCodedPHY = false
        /// The subevent in which the connection is requested; nil for a connection to an advertiser.
        var subevent: SubeventTarget?
        /// The train of that subevent.
        var train: RunningTrain?
    }

    /// What the controller does, as far as the host knows.
    enum Controller: Equatable {
        case idle
        case initiating(Initiation)
        /// Cancel was sent; a Connection Complete event will follow.
        case cancelling
        /// A command had an unclear outcome: the controller may be initiating connections, and must stop.
        case unknown
    }

    private enum Purpose {
        case clearList(Initiation)
        case addToList(DeviceAddress)
        case create(Initiation)
        case cancel

        var isCancellation: Bool { if case .cancel = self { true } else { false } }
    }

    /// The duration of a turn. A peer that advertises about once a second is found within this time.
    static let turnDuration = Duration.seconds(4)
    /// How long the host waits for the end of a cancelled initiation.
    static let cancellationTimeout = Duration.seconds(2)
    /// How long a peer is expected to use the private address at which it was found.
    ///
    /// The durations take turns. With a single one, each search could find the same advertisement of a peer's period:
    /// the last one before the peer changes its address.
    static let foundPeerLifetimes: [Duration] = [.seconds(5), .milliseconds(5700), .milliseconds(6400)]

    /// All attempts, oldest first.
    var attempts: [ConnectionAttempt] = []
    /// The addresses of all attempts.
    var queue = AcceptListQueue(sufficientTime: ConnectionPlan.turnDuration / 2)
    /// The addresses at which peers were found, by their identity addresses.
    var foundPeers: OrderedDictionary<DeviceAddress, FoundPeer> = [:]
    /// How often a scan has found a peer.
    var findCount = 0
    /// Links to peers of attempts. The controller refused to initiate because of them. The end of one requests a pass.
    var linksToAwait: Set<LinkIdentifier> = []

    private var run = PlanRun()
    private var pending = PendingCommand<Purpose>(of: .connection)
    private(set) var controller = Controller.idle
    /// The addresses on the filter accept list, while it is written for the next initiation. Nil if the list must be
    /// cleared first.
    private(set) var acceptList: [DeviceAddress]?
    /// The number of addresses after which the controller had no room for another one on its accept list; nil if it has
    /// had room for all since its last reset.
    private(set) var listCapacity: Int?
    /// The last initiation that was sent to the controller.
    private(set) var lastInitiation: Initiation?
    /// Whether the controller may have ended initiating without an event. The initiation is then cancelled and started
    /// again.
    private var isInitiationDoubtful = false
    private var endDoubt = EndDoubt.none
    /// Whether the controller refused the cancellation, or its reply was unclear.
    private var isCancellationDoubtful = false
    /// When the plan assumes that a cancelled initiation has ended.
    private(set) var cancellationDeadline: Instant?
    /// When the current turn ends. Nil if no peer or scan waits for a turn.
    var turnDeadline: Instant?
    /// Whether it is the turn of scans, on a controller that cannot scan while it initiates.
    var yieldsToScan = false
    /// Whether the controller has refused to initiate on LE Coded since its last reset.
    var codedRefusal = CodedRefusal.none
    private var scanWait = ScanWait.none

    /// Whether a connection is wanted, the controller may be initiating one, or a peer or scan waits for its turn.
    /// Otherwise a pass has nothing to do.
    var mayInitiate: Bool {
        !attempts.isEmpty || !isResting || turnDeadline != nil || yieldsToScan || scanWait != .none
    }

    /// Whether the controller initiates nothing, and no command for it is in progress.
    var isResting: Bool { controller == .idle && !run.isRunning }

    /// Whether the plan may begin an initiation in the next pass. Then scanning is brought up to date as well.
    var isBeforeInitiation: Bool { controller == .idle && acceptList == nil && !pending.isPending }

    // MARK: Commands

    /// Requests a pass.
    ///
    /// - Returns: whether the caller must schedule it.
    mutating func requestRun() -> Bool { run.request() }

    /// Ends the run: the controller cannot be used now.
    mutating func endRun() { run.end() }

    /// Returns the command to send now. Nil if the controller initiates as requested, or if the plan waits for an
    /// event, for the end of scanning, or for a request.
    mutating func nextCommand(_ context: Context, at now: Instant) -> PlannedCommand? {
        updateTurns(context, at: now)
        guard !pending.isPending, run.maySend, let purpose = nextPurpose(context) else {
            run.end()
            return nil
        }
        run.sent()
        switch purpose {
        case .clearList, .addToList: scanWait = .over
        case .create(let initiation):
            (scanWait, acceptList) = (.none, nil)
            lastInitiation = initiation
            isInitiationDoubtful = false
            setController(.initiating(initiation), at: now)
        case .cancel:
            (isInitiationDoubtful, isCancellationDoubtful) = (false, false)
            setController(.cancelling, at: now)
        }
        return PlannedCommand(command: command(for: purpose, context), step: pending.begin(purpose))
    }

    private mutating func nextPurpose(_ context: Context) -> Purpose? {
        let wanted = wantedInitiation(context)
        switch controller {
        case .cancelling: return nil
        case .unknown: return .cancel
        case .initiating(let initiation): return wanted == initiation && !isInitiationDoubtful ? nil : .cancel
        case .idle:
            guard let wanted else {
                (scanWait, acceptList) = (.none, nil)
                return nil
            }
            if wanted.subevent == nil, context.isScanning, !context.canInitiateWhileScanning, scanWait != .over {
                scanWait = .waiting
                return nil
            }
            guard wanted.addresses.count > 1 else { return .create(wanted) }
            guard let acceptList, wanted.addresses.isSuperset(of: acceptList) else { return .clearList(wanted) }
            let missing = wanted.addresses.inOrder.first { !acceptList.contains($0) }
            return missing.map { .addToList($0) } ?? .create(wanted)
        }
    }

    private func command(for purpose: Purpose, _ context: Context) -> GAPCommand {
        switch purpose {
        case .clearList: GAPCommand(LEClearFilterAcceptList())
        case .addToList(let address): GAPCommand(LEAddDeviceToFilterAcceptList(address: PeerAddress(address)))
        case .create(let initiation): initiation.command(context)
        case .cancel: GAPCommand(LECreateConnectionCancel())
        }
    }

    /// Records what the controller initiates.
    private mutating func setController(_ controller: Controller, at now: Instant) {
        if case .initiating(let initiation) = controller {
            queue.beginInitiating(peers(at: initiation.addresses), at: now)
        } else {
            queue.endInitiating(at: now)
        }
        self.controller = controller
        cancellationDeadline = nil
    }

    // MARK: Replies

    /// Handles a successful reply. A reply to a command of an earlier controller has no effect.
    mutating func finished(_ step: GAPStep, at now: Instant) -> [ConnectionEffect] {
        switch pending.end(step) {
        case nil: break
        case .clearList: acceptList = []
        case .addToList(let address): acceptList?.append(address)
        case .create(let initiation):
            endDoubt = .none
            return codedRefusal.confirm(by: initiation).map { [.codedRefused($0)] } ?? []
        case .cancel: expectEnd(at: now)
        }
        return []
    }

    /// Handles a command that failed. The attempts of the initiation fail, unless the controller is reset or the plan
    /// can continue. An address that the controller does not take on its accept list fails only the attempts that name
    /// it.
    mutating func failed(_ step: GAPStep, _ failure: CommandFailure, at now: Instant) -> [ConnectionEffect] {
        guard let purpose = pending.end(step) else { return [] }
        let listed = acceptList?.count ?? 0
        acceptList = nil
        scanWait = .none
        if failure.meansReset {
            run.refused()
            return []
        }
        // Other refusals do not say whether the controller still initiates.
        if !purpose.isCancellation, case .status(.commandDisallowed, _) = failure {
            if cancelAgain(at: now) { return [] }
            endDoubt = .none
        }
        switch purpose {
        case .clearList(let initiation):
            run.refused()
            return failAttempts(for: initiation.addresses, .command(failure))
        case .addToList(let address):
            if case .status(.memoryCapacityExceeded, _) = failure {
                listCapacity = max(1, listed)
                return []
            }
            run.refused()
            return failAttempts(for: [address], .command(failure))
        case .create(let initiation): return refused(initiation, failure, at: now)
        case .cancel:
            // If nothing can be cancelled, the connection has just been made or has failed. Its event reports which.
            if case .status(.commandDisallowed, _) = failure {} else { isCancellationDoubtful = true }
            expectEnd(at: now)
            return []
        }
    }

    private mutating func refused(
        _ initiation: Initiation,
        _ failure: CommandFailure,
        at now: Instant
    ) -> [ConnectionEffect] {
        if failure.isOutcomeUnknown {
            setController(.unknown, at: now)
        } else {
            setController(.idle, at: now)
            if codedRefusal.suspect(failure, of: initiation) { return [] }
            codedRefusal.clear(by: initiation)
            run.refused()
            if case .status(.connectionAlreadyExists, _) = failure {
                return [.useExistingLink(peers(at: initiation.addresses))]
            }
        }
        // Attempts with other parameters may succeed.
        return failAttempts(for: initiation.addresses, .command(failure)) {
            $0.parameters == initiation.parameters && $0.subevent == initiation.subevent
        }
    }

    /// Whether a cancelled initiation has not ended with its event, so that the controller may still run it.
    var isEndDoubtful: Bool { endDoubt == .doubtful }

    /// Has the initiation cancelled again if its end is doubtful.
    ///
    /// - Returns: whether it was doubtful. Then the caller requests a pass.
    mutating func cancelAgain(at now: Instant) -> Bool {
        guard isEndDoubtful else { return false }
        endDoubt = .cancelledAgain
        setController(.unknown, at: now)
        return true
    }

    /// Limits the time in which the event must arrive that ends a cancelled initiation.
    private mutating func expectEnd(at now: Instant) {
        guard controller == .cancelling else { return }
        cancellationDeadline = now + ConnectionPlan.cancellationTimeout
    }

    // MARK: Events

    /// Handles a new connection that the controller initiated: with it, the initiation has ended.
    mutating func connected(at now: Instant) {
        setController(.idle, at: now)
    }

    /// Handles an initiation that ended without a connection.
    ///
    /// - Parameter peer: the device that did not answer, if the controller reports it.
    mutating func connectionFailed(
        _ status: HCIErrorCode,
        of peer: DeviceAddress? = nil,
        asCentral isCentral: Bool,
        at now: Instant
    ) -> [ConnectionEffect] {
        // Only initiating fails with this event; the end of directed advertising has an event of its own.
        guard isCentral || controller != .idle else { return [] }
        guard case .initiating(let initiation) = controller else {
            setController(.idle, at: now)
            return [.run, .runScan]
        }
        // An earlier initiation has ended late. Whether the controller initiates now is unknown.
        guard status != .unknownConnectionIdentifier else { return restartInitiating() }
        setController(.idle, at: now)
        if status == .connectionFailedToBeEstablished {
            if let subevent = initiation.subevent { return nextSubeventTurn(after: subevent, initiation.addresses) }
            if initiation.addresses.count > 1 {
                // One of the devices on the accept list did not answer. The others are still searched for.
                guard let peer, initiation.addresses.contains(peer) else { return [.run, .runScan] }
                return failAttempts(for: [peer], .disconnected(.controller(status))) + [.runScan]
            }
        }
        return failAttempts(for: initiation.addresses, .disconnected(.controller(status))) + [.runScan]
    }

    /// Has the initiation cancelled and started again, in case the controller ended it without the host's knowledge.
    mutating func restartInitiating() -> [ConnectionEffect] {
        guard case .initiating = controller else { return [] }
        isInitiationDoubtful = true
        return [.run]
    }

    /// Handles a cancelled initiation whose end was not reported in time.
    mutating func cancellationTimedOut(at now: Instant) -> [ConnectionEffect] {
        if isCancellationDoubtful, endDoubt != .cancelledAgain {
            endDoubt = .cancelledAgain
            setController(.unknown, at: now)
            return [.run]
        }
        if endDoubt == .none { endDoubt = .doubtful }
        setController(.idle, at: now)
        return [.run, .runScan]
    }

    /// Handles the end of a run of the plan of scanning: the controller scans as requested, so initiating may begin.
    ///
    /// - Returns: whether initiating waited for this.
    mutating func scanPassEnded() -> Bool {
        guard scanWait == .waiting else { return false }
        scanWait = .over
        return true
    }

    /// Records that the controller may begin to scan, because nothing is to be initiated now. A later initiation waits
    /// again until scanning has stopped.
    mutating func scanMayBegin() {
        scanWait = .none
    }

    /// Ends all attempts, because the host is closed. The caller resets the controller.
    mutating func endAll(at now: Instant) -> [ConnectionAttempt] {
        controllerLost(at: now)
        turnDeadline = nil
        yieldsToScan = false
        return takeAttempts { _ in true }
    }

    /// Records that the controller was reset and initiates nothing.
    mutating func controllerLost(at now: Instant) {
        pending.forget()
        acceptList = nil
        listCapacity = nil
        lastInitiation = nil
        isInitiationDoubtful = false
        endDoubt = .none
        scanWait = .none
        codedRefusal = .none
        setController(.idle, at: now)
    }
}
