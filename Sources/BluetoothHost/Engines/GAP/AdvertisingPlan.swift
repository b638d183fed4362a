import BLEHCI
import BluetoothTypes

/// Brings the controller's advertising to what the apps' advertisements need.
///
/// # Model
/// The plan has a model of each advertisement in the controller: see ``Entry``. ``nextCommand(_:_:_:)`` compares it
/// with the wanted state and returns one command. When the reply has arrived, the next one is decided in the same way.
/// An advertisement gets all its commands before the next one, unless it has to wait.
///
/// # Refused commands
/// If the controller refuses a command, the advertisement ends with the error if a call waits for its start. Otherwise
/// it is tried again after ``retryInterval``. A controller that cannot advertise in addition to its connections is
/// tried again when a connection ends. An advertisement that the controller refuses to end has ended for the app, and
/// keeps its handle while it may be on: see ``Entry/State/endRefused``.
///
/// # Refreshing
/// From time to time all advertisements are turned off and on again. If the event of a connection was lost, the
/// controller has stopped advertising, and without this nobody could find the host again. Such a controller may refuse
/// to turn it off: see ``Entry/isOffDoubtful``.
struct AdvertisingPlan {
    /// The interval at which an advertisement is started again; nil for never.
    private let refreshInterval: Duration?
    /// The advertisements, oldest first.
    private(set) var entries: [Entry] = []
    private(set) var run = PlanRun()
    private var pending = PendingCommand<Purpose>(of: .advertising)
    /// The advertisement that the last command was for.
    private var current: AdvertisementIdentifier?
    /// Whether the advertisement that is being turned on was ended by the controller before it confirmed the start.
    private var hasEndedEarly = false
    /// Whether the controller may have advertised it before already, because it had refused to turn it off.
    private var wasOn = false
    private var refreshDeadline: Instant?
    private var retryDeadline: Instant?
    /// When blocked advertisements are tried again without the end of a link. An initiation may block them, too.
    private var blockedDeadline: Instant?

    init(refreshInterval: Duration?) {
        self.refreshInterval = refreshInterval
    }

    // MARK: State

    /// Whether the controller does not advertise, and no command for it is in progress.
    var isResting: Bool { !run.isRunning && !entries.contains(where: \.mustPause) }

    private func index(of identifier: AdvertisementIdentifier) -> Int? {
        entries.firstIndex { $0.identifier == identifier }
    }

    // MARK: Advertisements

    /// Adds an advertisement.
    ///
    /// - Parameter call: finished when the advertisement has started.
    /// - Returns: the advertising handle.
    /// - Throws: the errors of `check(against:)`; ``HostError/limitReached(_:)`` if the controller has no further set.
    @discardableResult
    mutating func start(
        _ identifier: AdvertisementIdentifier,
        _ configuration: AdvertisementConfiguration,
        _ information: ControllerInformation,
        for call: CallToken
    ) throws(HostError) -> UInt8 {
        try configuration.check(against: information)
        let limit = information.numberOfAdvertisingSets
        let handle = (0...0xEF).first { handle in !entries.contains { $0.handle == handle } }
        guard entries.count(where: { !$0.isEnding }) < limit, let handle else {
            throw .limitReached("this controller advertises at most \(limit) set(s) at a time; stop another one first")
        }
        // The controller may have no room for another set beside those, and has only one legacy advertisement.
        for index in entries.indices { entries[index].endAgain() }
        var entry = Entry(
            identifier: identifier,
            configuration: configuration,
            handle: handle,
            usesSet: information.usesExtendedCommands,
            periodicData: configuration.periodic?.data ?? AdvertisingData()
        )
        entry.calls.append(call)
        entries.append(entry)
        return handle
    }

    /// Whether an advertisement has not ended, and does not end now.
    func isActive(_ identifier: AdvertisementIdentifier) -> Bool {
        index(of: identifier).map { !entries[$0].isEnding } ?? false
    }

    /// Ends an advertisement.
    ///
    /// - Parameter isOn: whether the controller can be used. Otherwise it has nothing of the advertisement.
    mutating func stop(_ identifier: AdvertisementIdentifier, isOn: Bool) -> [AdvertisingEffect] {
        guard let index = index(of: identifier), !entries[index].isEnding else { return [] }
        guard isOn else { return remove(at: index, nil) }
        entries[index].state = .ending
        let isPending = pending.purpose?.advertisement == identifier
        return isPending ? [] : removeIfEnded(at: index)
    }

    /// Replaces the data of a periodic train. Data that needs several commands ends the train and begins another one.
    ///
    /// - Throws: ``HostError/invalidArgument(_:)`` if the advertisement has no train or the data is too long, and
    ///   ``HostError/closed`` if the advertisement has ended.
    mutating func setPeriodicData(
        _ data: AdvertisingData,
        of identifier: AdvertisementIdentifier,
        _ information: ControllerInformation
    ) throws(HostError) {
        guard let index = index(of: identifier), !entries[index].isEnding else { throw .closed }
        guard var periodic = entries[index].configuration.periodic else {
            throw .invalidArgument("the advertisement has no periodic train")
        }
        guard periodic.subevents == nil else {
            throw .invalidArgument("a train with subevents has the data of its subevents only")
        }
        periodic.data = data
        try periodic.check(in: entries[index].configuration, against: information)
        entries[index].nextPeriodicData = data
    }

    /// Has a call wait for the end of an advertisement.
    ///
    /// - Returns: false if it has ended.
    mutating func awaitEnd(of identifier: AdvertisementIdentifier, _ call: CallToken) -> Bool {
        guard let index = index(of: identifier), !entries[index].isLeftOn else { return false }
        entries[index].calls.append(call)
        return true
    }

    /// Forgets a call that waits for an advertisement.
    mutating func remove(_ call: CallToken, of identifier: AdvertisementIdentifier) {
        guard let index = index(of: identifier) else { return }
        entries[index].calls.removeAll { $0 == call }
    }

    /// Removes all advertisements, because the host is closed.
    mutating func removeAll(_ error: HostError) -> [AdvertisingEffect] {
        defer { entries = [] }
        return entries.flatMap(\.calls).map { .finish($0, error) }
    }

    private mutating func finish(at index: Int) -> [AdvertisingEffect] {
        defer { entries[index].calls = [] }
        return entries[index].calls.map { .finish($0, nil) }
    }

    private mutating func remove(at index: Int, _ error: HostError?) -> [AdvertisingEffect] {
        entries.remove(at: index).calls.map { .finish($0, error) } + [.reconsiderAddresses]
    }

    /// Removes an advertisement that is being ended, if the controller has nothing of it.
    private mutating func removeIfEnded(at index: Int) -> [AdvertisingEffect] {
        entries[index].isEnding && entries[index].isGone ? remove(at: index, nil) : []
    }

    // MARK: Commands

    /// Requests a pass.
    ///
    /// - Returns: whether the caller must schedule it.
    mutating func requestRun() -> Bool { run.request() }

    /// Returns the command to send now; nil if the controller advertises as requested, or the plan waits for input.
    ///
    /// - Parameter resolver: finds the addresses of peers that an advertisement is directed to.
    mutating func nextCommand(
        _ context: Context,
        _ resolver: inout AddressResolver,
        _ random: inout some RandomNumberGenerator
    ) -> PlannedCommand? {
        guard !pending.isPending else { return nil }
        guard let (index, purpose) = nextPurpose(context) else {
            run.end()
            current = nil
            return nil
        }
        run.sent()
        current = purpose.advertisement
        hasEndedEarly = false
        if case .turnOn = purpose {
            wasOn = entries[index].mayBeOn
            entries[index].mayBeOn = true
        }
        let command = entries[index].command(for: purpose, context, &resolver, &random)
        return PlannedCommand(command: command, step: pending.begin(purpose), events: purpose.events)
    }

    private func nextPurpose(_ context: Context) -> (Int, Purpose)? {
        for index in order {
            if let purpose = entries[index].nextPurpose(context) { return (index, purpose) }
        }
        return nil
    }

    /// The order in which advertisements get commands: the current one, then those that end, because they make room for
    /// others, then those after the current one, then those before it.
    private var order: [Int] {
        let first = current.flatMap { index(of: $0) } ?? 0
        let rotated = Array(entries.indices[first...]) + Array(entries.indices[..<first])
        let urgent = rotated.filter { entries[$0].identifier == current || entries[$0].isEnding }
        return urgent + rotated.filter { !urgent.contains($0) }
    }

    // MARK: Replies

    /// Handles a successful reply. A reply to a command of an earlier controller has no effect.
    mutating func finished(_ step: GAPStep, at now: Instant) -> [AdvertisingEffect] {
        guard let purpose = pending.end(step) else { return [] }
        // The controller accepts the parameters of legacy advertising only while it is off (Vol 4, Part E, 7.8.5).
        if case .setUp(_, .parameters) = purpose { entries.removeAll { $0.isLeftOn && !$0.usesSet } }
        guard let index = index(of: purpose.advertisement) else { return [] }
        switch purpose {
        case .turnOff:
            entries[index].mayBeOn = false
            if !entries[index].isEnding { entries[index].turnedOff(.off) }
        case .remove: return remove(at: index, nil)
        case .setUp(_, let part):
            if part == .parameters {
                entries[index].mayBeOn = false  // Otherwise the controller would refuse them.
                entries[index].address = nil
                entries[index].hasSet = entries[index].usesSet
            }
            if part == .startPeriodic { entries[index].periodicStarted() }
            entries[index].setupCount += 1
        case .updatePeriodicData(_, let data): entries[index].periodicDataSent(data, isAccepted: true)
        case .stopPeriodic: entries[index].periodicStopped()
        case .setAddress(_, let address): entries[index].address = address
        case .turnOn:
            // One that starts again does not postpone the refresh of the others.
            if !entries.contains(where: \.isOn) { refreshDeadline = nil }
            refreshDeadline = refreshDeadline ?? refreshInterval.map { now + $0 }
            guard !entries[index].isEnding else { return [] }
            // The connection's event may arrive before the command's completion.
            entries[index].state = .on
            if hasEndedEarly { ended(at: index) }
            return finish(at: index)
        }
        return removeIfEnded(at: index)
    }

    /// Handles a command that failed.
    ///
    /// - Parameter hasLinks: whether the controller has connections, which may leave it no room for an advertisement.
    mutating func failed(
        _ step: GAPStep,
        _ failure: CommandFailure,
        at now: Instant,
        hasLinks: Bool
    ) -> [AdvertisingEffect] {
        guard let purpose = pending.end(step), let index = index(of: purpose.advertisement) else { return [] }
        // The controller is being reset: `controllerLost` follows, and advertisements are set up again afterwards.
        guard !failure.meansReset else { return [] }
        if case .turnOff(_, let reason) = purpose, reason != .end, entries[index].isUnknownSet(by: failure) {
            entries[index].forgetController()
            return [.ignore(failure)] + removeIfEnded(at: index)
        }
        switch purpose {
        case .turnOff(_, .end), .remove:
            guard entries[index].mayStayOn(after: failure, of: purpose) else {
                return [.ignore(failure)] + remove(at: index, nil)
            }
            if entries[index].refusalCount < Entry.refusalLimit {
                blockedDeadline = blockedDeadline ?? now + AdvertisingPlan.blockedInterval
            }
            return [.ignore(failure)] + finish(at: index) + [.reconsiderAddresses]
        case .stopPeriodic:
            let fails = entries[index].periodicStopRefused(failure)
            return fails ? fail(at: index, failure, at: now) : [.ignore(failure)]
        case .updatePeriodicData(_, let data):
            if failure.isOutcomeUnknown {
                entries[index].periodicDataMayBeSent(data)
            } else {
                entries[index].periodicDataSent(data, isAccepted: false)
            }
            return [.ignore(failure)]
        case .turnOff(_, .pause):
            if !entries[index].isEnding { entries[index].turnedOff(.off) }
            return [.ignore(failure)]
        case .turnOff(_, .restart), .setUp, .setAddress, .turnOn:
            if case .turnOn = purpose, !failure.isOutcomeUnknown { entries[index].mayBeOn = wasOn && !hasEndedEarly }
            if case .setUp(_, .parameters) = purpose, failure.isOutcomeUnknown {
                entries[index].hasSet = entries[index].usesSet
            }
            if case .setUp(_, .startPeriodic) = purpose, failure.isOutcomeUnknown { entries[index].isPeriodicOn = true }
            guard !entries[index].isEnding else { return removeIfEnded(at: index) }
            if entries[index].restartRefused(purpose) { return fail(at: index, failure, at: now) }
            if case .setUp(_, let part) = purpose, part.dependsOnPeriodicData, entries[index].restorePeriodicData() {
                return [.ignore(failure)]
            }
            if hasLinks, purpose.canBeBlocked, failure.mayBeCausedByConnections {
                entries[index].turnedOff(.blocked)
                blockedDeadline = blockedDeadline ?? now + AdvertisingPlan.blockedInterval
                return finish(at: index)
            }
            return fail(at: index, failure, at: now)
        }
    }

    /// Handles a refusal to change the controller's random address, which a legacy advertisement waits for.
    mutating func addressRefused(
        _ failure: CommandFailure,
        _ addresses: OwnAddresses,
        at now: Instant
    ) -> [AdvertisingEffect] {
        let isWaiting: (Entry) -> Bool = { $0.state == .off && $0.lacksAddress(addresses) }
        guard let index = entries.firstIndex(where: isWaiting) else { return [] }
        return fail(at: index, failure, at: now)
    }

    private mutating func fail(at index: Int, _ failure: CommandFailure, at now: Instant) -> [AdvertisingEffect] {
        let entry = entries[index]
        guard entry.calls.isEmpty else {
            guard !entry.isGone else { return remove(at: index, .command(failure)) }
            // The set keeps its data. The controller would check the parameters of the next advertisement with this
            // handle against that data.
            entries[index].calls = []
            entries[index].state = .ending
            return entry.calls.map { .finish($0, .command(failure)) }
        }
        entries[index].startOver(.failed)
        retryDeadline = retryDeadline ?? now + AdvertisingPlan.retryInterval
        return [.retryLater(failure)]
    }

    // MARK: Events

    /// Handles the end of legacy advertising by the connection that it caused (Vol 4, Part E, 7.8.9).
    mutating func endedByConnection() {
        for index in entries.indices where entries[index].configuration.isConnectable { ended(at: index) }
    }

    /// Handles the end of an advertising set by the controller.
    ///
    /// - Parameter connection: the connection that ended the set; nil if none did.
    mutating func terminated(_ handle: UInt8, by connection: ConnectionHandle?) -> [AdvertisingEffect] {
        guard let index = entries.firstIndex(where: { $0.handle == handle }) else { return [] }
        ended(at: index)
        return connection.map { [.ownAddressKnown($0, entries[index].address)] } ?? []
    }

    private mutating func ended(at index: Int) {
        if case .turnOn(entries[index].identifier)? = pending.purpose {
            hasEndedEarly = true
            return
        }
        guard !entries[index].isEnding else { return }
        entries[index].mayBeOn = false
        if entries[index].isOn { entries[index].turnedOff(.off) }
    }

    /// Tries blocked advertisements and refused ends again after the end of a link, which makes room in the controller.
    mutating func linkEnded() {
        blockedDeadline = nil
        for index in entries.indices { entries[index].unblock() }
    }

    /// Records that the controller was reset and no longer advertises.
    mutating func controllerLost() -> [AdvertisingEffect] {
        pending.forget()
        run.end()
        refreshDeadline = nil
        retryDeadline = nil
        blockedDeadline = nil
        let ended = entries.filter(\.isEnding).flatMap(\.calls)
        entries.removeAll(where: \.isEnding)
        for index in entries.indices { entries[index].forgetController() }
        return ended.map { .finish($0, nil) }
    }

    // MARK: Time

    /// When the plan has something to do; nil if it waits for no time.
    var deadline: Instant? {
        guard !entries.isEmpty else { return nil }
        return earliest(blockedDeadline, earliest(refreshDeadline, retryDeadline))
    }

    /// Handles the passing of time. The caller then requests a pass.
    mutating func advance(to now: Instant) -> [AdvertisingEffect] {
        if let refreshDeadline, refreshDeadline <= now { refresh() }
        if let blockedDeadline, blockedDeadline <= now { linkEnded() }
        guard let retryDeadline, retryDeadline <= now else { return [] }
        self.retryDeadline = nil
        for index in entries.indices where entries[index].state == .failed { entries[index].state = .off }
        return [.reconsiderAddresses]
    }

    /// Has all advertisements turned off and on again.
    mutating func refresh() {
        refreshDeadline = nil
        for index in entries.indices where entries[index].state == .on { entries[index].state = .stale }
    }
}
