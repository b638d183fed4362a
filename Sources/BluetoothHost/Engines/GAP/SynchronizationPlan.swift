import BLEHCI
import BluetoothTypes

/// Brings the controller's synchronizations with periodic advertising trains to what the apps want.
///
/// # Model
/// A synchronization waits, is being created or is established: see ``Entry/State``. A controller creates one at a time
/// (Vol 4, Part E, 7.8.67). It can be one with any train on the periodic advertiser list, so several trains are
/// searched for at the same time: see ``Creation``. Trains that have no place on the list, or need other parameters,
/// take turns of ``turn``. A train that was lost is searched for again.
///
/// # Scanning
/// A controller finds a train by the advertisements that announce it. So it must scan while it creates a
/// synchronization: see ``isSearching``.
///
/// A controller changes its resolving list only while it creates no synchronization (Vol 4, Part E, 7.8.38). So a
/// creation is cancelled for such a change.
///
/// # Subevents
/// The controller receives a train with subevents, but reports none of them before the host has chosen some. So
/// the choice of the request is the first command after the train was found.
///
/// # Transfers
/// Connected devices may transfer their synchronizations: see ``SyncTransferReception``. The controller then receives
/// the train without scanning. If such a train is lost, the synchronization ends, and the host does not scan for it.
///
/// # Refused commands
/// A synchronization that the controller refuses to create ends with the error. If a command to end one fails, the
/// controller has already ended it.
///
/// If the controller refuses to report events, what needs them ends. If some of the events are for subevents, only what
/// needs those ends at first. The plan then requests the other events.
///
/// # Unknown outcomes
/// A creation that is cancelled ends with an event (Vol 4, Part E, 7.8.68). If the event does not arrive within
/// ``cancellationTimeout``, the plan assumes that the creation has ended. If the controller then refuses the next
/// creation or a change of its list, the plan cancels once more. A creation whose reply is unclear is cancelled too.
struct SynchronizationPlan {
    private enum Purpose {
        case enableEvents(LEEventMask)
        case setTransfers(SyncTransferReception.Setting)
        case changeList(PeriodicAdvertiserListState.Change)
        /// Create the first of these, or any of them by the periodic advertiser list.
        case create([SynchronizationIdentifier], usesList: Bool)
        case cancelCreation
        case chooseSubevents(SynchronizationIdentifier, UInt16)
        case terminate(UInt16)

        /// The events that the command enables.
        var events: LEEventMask { if case .enableEvents(let events) = self { events } else { [] } }
    }

    /// Whether the controller may still create a synchronization although the plan assumes that it does not.
    private enum EndDoubt {
        case none
        /// A creation that was cancelled has not ended with its event.
        case doubtful
        /// The plan has cancelled again.
        case cancelledAgain
    }

    /// The time that one synchronization has if others wait.
    static let turn = Duration.seconds(10)
    /// How long the plan waits for the end of a creation that was cancelled.
    static let cancellationTimeout = Duration.seconds(2)
    /// Maximum number of synchronizations.
    static let limit = 64
    /// The events that any synchronization needs.
    static let trainEvents: LEEventMask = [
        .periodicAdvertisingSyncEstablished, .periodicAdvertisingReport, .periodicAdvertisingSyncLost,
    ]
    /// The events that trains with subevents need. The controller then sends no older version of them.
    static let subeventEvents: LEEventMask = [
        .periodicAdvertisingSyncEstablishedV2, .periodicAdvertisingReportV2, .enhancedConnectionCompleteV2,
    ]

    /// The synchronizations: those that wait in the order of their turns.
    var entries: [Entry] = []
    /// The receptions of transferred synchronizations.
    var reception = SyncTransferReception()
    private(set) var run = PlanRun()
    private var pending = PendingCommand<Purpose>(of: .synchronization)
    var creation: Creation?
    private var endDoubt = EndDoubt.none
    var list = PeriodicAdvertiserListState()
    /// The events of the plan that the controller reports. They are enabled when an app first needs them.
    private var events: LEEventMask = []
    /// Whether the controller has refused to report transfers with subevents. Then only receptions with subevents need
    /// these reports.
    private var refusesTransfersOfSubevents = false
    /// Handles that the controller still reports and no app wants.
    var unwantedHandles: [UInt16] = []

    // MARK: State

    /// Whether the controller must scan, because a train is to be found.
    var isSearching: Bool { entries.contains { $0.state == .waiting || $0.state == .creating } }

    /// Whether one of these trains may be announced on the LE Coded PHY.
    var searchesOnCodedPHY: Bool {
        entries.contains { $0.usesCodedPHY && ($0.state == .waiting || $0.state == .creating) }
    }

    var reportsTrains: Bool { events.isSuperset(of: Self.trainEvents) }

    /// The events that the synchronizations and receptions need.
    private var neededEvents: LEEventMask {
        var needed = Self.trainEvents
        let wantsSubevents = entries.contains { !$0.request.subevents.isEmpty } || reception.wantsSubevents
        if wantsSubevents { needed.formUnion(Self.subeventEvents) }
        guard reception.isInUse else { return needed }
        needed.insert(.periodicAdvertisingSyncTransferReceived)
        if reception.wantsSubevents || wantsSubevents && !refusesTransfersOfSubevents {
            needed.insert(.periodicAdvertisingSyncTransferReceivedV2)
        }
        return needed
    }

    /// Whether the controller creates no synchronization.
    var isResting: Bool { creation == nil }

    func index(of identifier: SynchronizationIdentifier?) -> Int? {
        identifier.flatMap { identifier in entries.firstIndex { $0.identifier == identifier } }
    }

    // MARK: Synchronizations

    /// Adds a synchronization.
    ///
    /// - Parameter usesCodedPHY: whether the advertiser was received on the LE Coded PHY.
    /// - Throws: ``HostError/limitReached(_:)`` if there are too many, and ``HostError/invalidArgument(_:)`` if the
    ///   train is received already.
    mutating func start(
        _ identifier: SynchronizationIdentifier,
        _ request: PeriodicTrainRequest,
        usesCodedPHY: Bool = false
    ) throws(HostError) {
        guard entries.count < Self.limit else {
            throw .limitReached("there are \(Self.limit) synchronizations, the maximum; stop another one first")
        }
        guard !entries.contains(where: { $0.request.train == request.train }) else {
            throw .invalidArgument("the train of \(request.address) with SID \(request.sid) is received already")
        }
        entries.append(Entry(identifier: identifier, request: request, usesCodedPHY: usesCodedPHY))
    }

    /// Ends a synchronization. Does nothing if it has ended.
    mutating func stop(_ identifier: SynchronizationIdentifier) {
        guard let index = index(of: identifier) else { return }
        let entry = entries.remove(at: index)
        switch entry.state {
        case .waiting: break
        case .creating: abandonCreation(of: identifier)
        case .established(let handle): unwantedHandles.append(handle)
        }
    }

    /// Ends all synchronizations.
    ///
    /// - Returns: the ended ones, oldest first.
    mutating func removeAll() -> [SynchronizationIdentifier] {
        defer { entries = [] }
        return entries.map(\.identifier)
    }

    // MARK: Commands

    /// Requests a pass.
    ///
    /// - Returns: whether the caller must schedule it.
    mutating func requestRun() -> Bool { run.request() }

    /// Returns the command to send now; nil if the plan waits for an input.
    ///
    /// - Parameter isHeld: whether the controller must not create a synchronization now.
    mutating func nextCommand(
        _ controller: ControllerInformation,
        isHeld: Bool = false,
        at now: Instant
    ) -> PlannedCommand? {
        guard !pending.isPending, let purpose = nextPurpose(controller, isHeld: isHeld) else {
            run.end()
            return nil
        }
        run.sent()
        switch purpose {
        case .create(let identifiers, let usesList):
            for index in entries.indices where identifiers.contains(entries[index].identifier) {
                entries[index].state = .creating
            }
            creation = Creation(identifiers: identifiers, usesList: usesList, deadline: now + Self.turn)
        case .cancelCreation:
            creation?.isEnding = true
            creation?.endDeadline = now + Self.cancellationTimeout
        case .setTransfers(let setting): reception.begin(setting)
        case .enableEvents, .changeList, .chooseSubevents, .terminate: break
        }
        return PlannedCommand(
            command: command(for: purpose, controller),
            step: pending.begin(purpose),
            events: purpose.events
        )
    }

    private func nextPurpose(_ controller: ControllerInformation, isHeld: Bool) -> Purpose? {
        if let handle = unwantedHandles.first { return .terminate(handle) }
        for entry in entries where entry.needsSubevents {
            if case .established(let handle) = entry.state { return .chooseSubevents(entry.identifier, handle) }
        }
        if let setting = reception.nextSetting {
            return events.isSuperset(of: neededEvents) ? .setTransfers(setting) : .enableEvents(neededEvents)
        }
        if let creation {
            return (creation.isEnding || isHeld) && creation.endDeadline == nil ? .cancelCreation : nil
        }
        let group = isHeld ? [] : nextGroup(controller)
        guard !group.isEmpty else { return nil }
        guard events.isSuperset(of: neededEvents) else { return .enableEvents(neededEvents) }
        guard group.count > 1 else { return .create(group.map(\.identifier), usesList: false) }
        if let change = list.change(to: group.map(\.request.train)) { return .changeList(change) }
        return .create(group.map(\.identifier), usesList: true)
    }

    private func command(for purpose: Purpose, _ controller: ControllerInformation) -> GAPCommand {
        switch purpose {
        case .enableEvents(let events):
            GAPCommand(LESetEventMask(leEventMask: controller.leEvents.union(events)))
        case .setTransfers(let setting): GAPCommand(setting)
        case .changeList(let change): GAPCommand(change)
        case .create(let identifiers, let usesList):
            createCommand(entries[index(of: identifiers.first) ?? 0].request, usesList: usesList)
        case .cancelCreation: GAPCommand(LEPeriodicAdvertisingCreateSyncCancel())
        case .chooseSubevents(let identifier, let handle):
            GAPCommand(chooseSubevents: entries[index(of: identifier) ?? 0].request, handle)
        case .terminate(let handle): GAPCommand(LEPeriodicAdvertisingTerminateSync(syncHandle: handle))
        }
    }

    private func createCommand(_ request: PeriodicTrainRequest, usesList: Bool) -> GAPCommand {
        GAPCommand(
            LEPeriodicAdvertisingCreateSync(
                options: usesList ? .usePeriodicAdvertiserList : [],
                advertisingSID: request.sid,
                advertiserAddress: request.address,
                skip: request.skip,
                syncTimeout: request.timeout.inUnits(of: .milliseconds(10))
            )
        )
    }

    // MARK: Replies

    /// Handles a successful reply. A reply to a command of an earlier controller has no effect.
    @discardableResult
    mutating func finished(_ step: GAPStep) -> [SynchronizationEffect] {
        switch pending.end(step) {
        case .enableEvents(let enabled): events.formUnion(enabled)
        case .setTransfers(let setting): reception.finished(setting)
        case .changeList(let change): list.changed(change)
        // If the controller has lost the train and used the handle again, the command has ended the new train.
        case .terminate(let handle): return lost(handle)
        case .chooseSubevents(let identifier, let handle): subeventsChosen(identifier, handle)
        case .create: endDoubt = .none
        case .cancelCreation, nil: break
        }
        return []
    }

    /// Handles a command that failed.
    mutating func failed(_ step: GAPStep, _ failure: CommandFailure) -> [SynchronizationEffect] {
        let purpose = pending.end(step)
        // The controller is being reset: `controllerLost` follows.
        guard !failure.meansReset else { return [] }
        switch purpose {
        case nil: return []
        case .enableEvents(let refused):
            let missing = refused.subtracting(events)
            if missing.contains(.periodicAdvertisingSyncTransferReceivedV2) { refusesTransfersOfSubevents = true }
            return endUsers(of: missing, failure)
        case .setTransfers(let setting):
            let ended = reception.refused(setting).map { SynchronizationEffect.endReception($0, failure) }
            return ended.isEmpty ? [.ignore(failure)] : ended
        case .terminate(let handle):
            unwantedHandles.removeAll { $0 == handle }
            return [.ignore(failure)]
        case .chooseSubevents(let identifier, let handle): return subeventsRefused(identifier, handle, failure)
        // The synchronization was established at the same time, which the controller reports, or there is none.
        case .cancelCreation: return [.ignore(failure)]
        case .changeList(let change):
            if mustCancelAgain(after: failure) {
                creation = Creation(identifiers: [], usesList: true, isEnding: true)
            } else {
                list.refused(change, failure)
            }
            return [.ignore(failure)]
        case .create(let identifiers, let usesList): return refused(identifiers, usesList: usesList, failure)
        }
    }

    private mutating func refused(
        _ identifiers: [SynchronizationIdentifier],
        usesList: Bool,
        _ failure: CommandFailure
    ) -> [SynchronizationEffect] {
        // Others were stopped, or have got their trains by transfers.
        let indices = entries.indices.filter {
            entries[$0].state == .creating && identifiers.contains(entries[$0].identifier)
        }
        if mustCancelAgain(after: failure) {
            cancelCreation()
            for index in indices { entries[index].state = .waiting }
            return []
        }
        if failure.isOutcomeUnknown { cancelCreation() } else { creation = nil }
        guard !usesList else {
            // They are created one after the other.
            list.isRefused = true
            for index in indices { entries[index].state = .waiting }
            return [.ignore(failure)]
        }
        let ended = indices.map { entries[$0].identifier }
        entries.removeAll { ended.contains($0.identifier) }
        return ended.map { .end($0, failure) }
    }

    /// Handles a refusal that may mean that the controller still creates an earlier synchronization. Only Command
    /// Disallowed can mean this.
    ///
    /// - Returns: whether the caller must have the earlier creation cancelled again.
    private mutating func mustCancelAgain(after failure: CommandFailure) -> Bool {
        guard case .status(.commandDisallowed, _) = failure else { return false }
        let wasDoubtful = endDoubt == .doubtful
        endDoubt = wasDoubtful ? .cancelledAgain : .none
        return wasDoubtful
    }

    /// Has the controller end the creation, which no app wants.
    private mutating func cancelCreation() {
        creation?.identifiers = []
        creation?.isEnding = true
    }

    // MARK: The controller

    /// Records that the controller was reset and receives no train.
    mutating func controllerLost() -> [SynchronizationEffect] {
        pending.forget()
        run.end()
        creation = nil
        endDoubt = .none
        list = PeriodicAdvertiserListState()
        events = []
        refusesTransfersOfSubevents = false
        reception.controllerLost()
        unwantedHandles = []
        var effects: [SynchronizationEffect] = []
        for index in entries.indices {
            if entries[index].isTransferred {
                effects.append(.endTransferred(entries[index].identifier))
            } else if case .established = entries[index].state {
                effects.append(.lost(entries[index].identifier))
            }
            entries[index].wait()
        }
        entries.removeAll(where: \.isTransferred)
        return effects
    }

    // MARK: Time

    /// When another synchronization has its turn, or when a creation that was cancelled must have ended; nil if the
    /// plan waits for neither.
    var deadline: Instant? {
        guard let creation else { return nil }
        if let end = creation.endDeadline { return end }
        guard !creation.isEnding, entries.contains(where: { $0.state == .waiting }) else { return nil }
        return creation.deadline
    }

    /// Handles the passing of time.
    ///
    /// - Returns: whether the plan has something to do.
    mutating func advance(to now: Instant) -> Bool {
        guard let deadline, deadline <= now else { return false }
        guard creation?.endDeadline != nil else {
            creation?.isEnding = true
            return true
        }
        if endDoubt == .none { endDoubt = .doubtful }
        endCreation()
        return true
    }
}
