import BLECryptography
import BLEHCI
import BLESMP
import BluetoothTypes
import OrderedCollections

/// What the caller of an ``AddressPlan`` does after an input.
enum AddressEffect: Equatable {
    /// The controller refused to change its random address: have the advertising plan handle it.
    case addressRefused(CommandFailure)
    /// Log that the host resolves private addresses by itself, because the controller refused a command.
    case resolvedByHost(CommandFailure)
}

/// The activities that are paused for a change of addresses.
enum AddressHold: Comparable {
    case nothing
    case scanningAndInitiating
    case everything
}

/// This host's addresses in the controller, as the other plans see them.
struct OwnAddresses: Equatable {
    /// The activities that must not run now.
    var hold = AddressHold.nothing
    /// Whether the addresses may be about to change.
    var isChanging = false
    /// The type of own address for scanning and initiating, and for advertisements without an address of their own.
    var type = OwnAddressType.public
    /// The random address that the controller has.
    var randomAddress: DeviceAddress?
    /// The random address of advertising sets that have no address of their own; nil for the public address.
    var advertisingAddress: DeviceAddress?
    /// Whether the controller generates this host's private addresses itself, at least for advertising.
    var isMadeByController = false
    /// The controller's resolving list; nil if it has none.
    var list: ResolvingList?
}

/// Brings the controller's random address and its resolving list to what the host needs, and knows whose private
/// address an address is.
///
/// # Model
/// The plan has a model of the controller's addresses and resolving list. ``nextCommand(_:)`` compares the model with
/// the wanted state and returns one command. When the reply has arrived, the next one is decided in the same way.
///
/// # Hold
/// Addresses can be changed only while no activity uses them (Vol 4, Part E, 7.8.4 and 7.8.38). While the plan wants a
/// change, ``hold`` names the activities that must rest. The commands wait until ``Context/rest`` says that they do.
///
/// # Refused commands
/// If the controller refuses a random address, the plan waits for the next request to run. If it refuses a change of
/// its resolving list, the host resolves the addresses by itself. After a refused device privacy mode, it does so for
/// all peers until the next reset of the controller.
struct AddressPlan {
    /// The settings of the host that concern addresses.
    struct Settings {
        /// Whether the host uses resolvable private addresses instead of its identity address.
        let usesPrivateAddresses: Bool
        let privacyMode: PrivacyMode
        /// How long a private address is used, in whole seconds.
        let timeout: Duration

        /// - Parameter timeout: cut to whole seconds, in the range of LE Set Resolvable Private Address Timeout (Vol 4,
        ///   Part E, 7.8.45).
        init(usesPrivateAddresses: Bool, privacyMode: PrivacyMode, timeout: Duration) {
            self.usesPrivateAddresses = usesPrivateAddresses
            self.privacyMode = privacyMode
            self.timeout = min(max(.seconds(timeout.components.seconds), .seconds(1)), .seconds(3600))
        }
    }

    /// What the next command depends on besides the addresses.
    struct Context {
        var information: ControllerInformation
        /// This host's key for its private addresses.
        var ownKey: UInt128 = 0
        /// The address of the advertisement in legacy advertising; nil for the host's own.
        var legacyAdvertisingAddress: DeviceAddress?
        /// The peers that the controller should resolve, the most important one first.
        var peers: [DeviceAddress] = []
        /// The activities that rest.
        var rest = AddressHold.everything
    }

    /// What a command changes.
    enum Purpose: Equatable {
        case setRandomAddress(DeviceAddress)
        case changeList(ResolvingList.Change)
    }

    /// The replacement of discarded addresses that waits for its time.
    private struct PostponedDiscard {
        let due: Instant
        /// The entries of the resolving list to renew.
        var entries: Set<DeviceAddress> = []
    }

    /// Minimum time from one replacement of discarded addresses to the next. Any device can cause a replacement, and
    /// all activities may have to rest for it.
    static let discardInterval = Duration.seconds(10)

    let settings: Settings
    var resolver = AddressResolver()
    /// The activities that must not run, because the plan wants a change.
    private(set) var hold = AddressHold.nothing
    /// The private address that this host generated; nil if it uses none.
    private(set) var privateAddress: DeviceAddress?
    /// The random address that the controller has.
    private(set) var randomAddress: DeviceAddress?
    /// The controller's resolving list; nil if it has none.
    private(set) var list: ResolvingList?
    private(set) var run = PlanRun()
    private var pending = PendingCommand<Purpose>(of: .addresses)
    /// Whether a command waits until the paused activities rest.
    private(set) var awaitsRest = false
    /// The end of the current private address's time; nil if there is none.
    private var lifetimeEnd: Instant?
    /// The time of the last replacement of discarded addresses.
    private var lastDiscard: Instant?
    private var postponedDiscard: PostponedDiscard?

    init(_ settings: Settings) {
        self.settings = settings
    }

    /// When the next private address is generated; nil if none is.
    var deadline: Instant? { earliest(lifetimeEnd, postponedDiscard?.due) }

    // MARK: Own addresses

    /// Whether the controller generates this host's private addresses itself, at least for advertising.
    private func isMadeByController(_ information: ControllerInformation) -> Bool {
        guard let list, list.isResolving else { return false }
        return list.entries[information.identityAddress].map { $0.localKey != 0 } ?? false
    }

    /// This host's addresses as the other plans see them.
    func ownAddresses(_ information: ControllerInformation) -> OwnAddresses {
        let isMadeByController = isMadeByController(information)
        let isRandom = information.identityAddress.isRandom
        return OwnAddresses(
            hold: hold,
            isChanging: run.isRunning,
            type: settings.usesPrivateAddresses
                ? isMadeByController ? .resolvableOrRandom : .random
                : isRandom ? .random : .public,
            randomAddress: randomAddress,
            advertisingAddress: settings.usesPrivateAddresses
                ? privateAddress : isRandom ? information.identityAddress : nil,
            isMadeByController: isMadeByController,
            list: list
        )
    }

    /// This host's address on a new link. The controller itself may have used another private address.
    func addressOfNewLink(_ information: ControllerInformation) -> DeviceAddress {
        let usesRandomAddress = settings.usesPrivateAddresses || information.identityAddress.isRandom
        return usesRandomAddress ? randomAddress ?? information.identityAddress : information.identityAddress
    }

    /// The random address that the controller should have; nil if none is used.
    private func wantedRandomAddress(_ context: Context) -> DeviceAddress? {
        let information = context.information
        if !information.usesExtendedCommands, let address = context.legacyAdvertisingAddress { return address }
        if settings.usesPrivateAddresses { return privateAddress }
        return information.identityAddress.isRandom ? information.identityAddress : nil
    }

    /// Generates the next private address, if the host uses them.
    private mutating func renew(_ key: UInt128, _ random: inout some RandomNumberGenerator) {
        guard settings.usesPrivateAddresses else { return }
        privateAddress = Toolbox(SwiftCryptography()).resolvablePrivateAddress(irk: key, random: &random)
    }

    // MARK: Peers

    /// The identity address of a device that uses `address`, if a bond has its key; otherwise `address` itself.
    mutating func identity(of address: DeviceAddress) -> DeviceAddress { resolver.identity(of: address) ?? address }

    /// Whether packets of a peer are ignored in network privacy mode, because it uses its identity address although it
    /// has a key for private ones (Vol 6, Part B, 4.7). For peers on the resolving list, the controller ignores them.
    ///
    /// - Parameter address: the address as it was received.
    func isSilenced(_ address: DeviceAddress) -> Bool {
        settings.privacyMode == .network && mustBeResolvedByScan(address)
    }

    /// Whether a peer may use private addresses that only this host can resolve. Such a peer must be found by scanning
    /// first, because the controller cannot recognize it.
    func mustBeResolvedByScan(_ identity: DeviceAddress) -> Bool {
        resolver.keys[identity] != nil && list?.resolves(identity) != true
    }

    /// Whether the controller's resolving list may have peers. Without LE Set Privacy Mode, the controller ignores them
    /// under their identity addresses (Vol 4, Part E, 7.8.77), which device privacy mode does not allow.
    func canListPeers(_ information: ControllerInformation) -> Bool {
        guard information.hasResolvingList else { return false }
        if settings.privacyMode == .network { return true }
        return information.commands.contains(LESetPrivacyMode.self) && list?.refusesPrivacyMode != true
    }

    // MARK: Controller

    /// Begins to set up addresses in a controller that has just been reset. Nothing runs in it.
    mutating func controllerWasReset(_ context: Context, _ random: inout some RandomNumberGenerator) {
        controllerLost()
        renew(context.ownKey, &random)
        if context.information.hasResolvingList {
            let timeout = settings.usesPrivateAddresses ? settings.timeout : nil
            list = ResolvingList(capacity: context.information.resolvingListSize, timeout: timeout)
        }
        hold = .everything
        _ = requestRun()
    }

    /// Starts the lifetime of the current private address (Vol 3, Part C, 10.7.1).
    mutating func startLifetime(at now: Instant) {
        lifetimeEnd = settings.usesPrivateAddresses ? now + settings.timeout : nil
    }

    /// Records that the controller was reset and has no addresses.
    mutating func controllerLost() {
        pending.forget()
        endRun()
        randomAddress = nil
        list = nil
        lifetimeEnd = nil
        postponedDiscard = nil
    }

    /// Replaces the private address after its time, or discarded addresses whose replacement was postponed.
    ///
    /// - Returns: whether there is a new address, for which the caller requests a pass.
    mutating func advance(to now: Instant, _ key: UInt128, _ random: inout some RandomNumberGenerator) -> Bool {
        guard let deadline, deadline <= now else { return false }
        if let postponedDiscard, postponedDiscard.due <= now {
            replace(entries: postponedDiscard.entries, at: now, key, &random)
        } else {
            renew(key, &random)
            startLifetime(at: now)
        }
        return true
    }

    /// Replaces the private addresses before their time (Vol 3, Part C, 10.6). The controller makes new addresses for
    /// the entries of its resolving list that are removed and added again. If the last such replacement was less than
    /// ``discardInterval`` ago, this one is postponed.
    ///
    /// - Parameter identities: the identity addresses of these entries.
    /// - Returns: whether there is a new address, for which the caller requests a pass.
    mutating func discard(
        entriesOf identities: [DeviceAddress],
        at now: Instant,
        _ key: UInt128,
        _ random: inout some RandomNumberGenerator
    ) -> Bool {
        guard settings.usesPrivateAddresses else { return false }
        // Others need no renewal. Peers can have any number of addresses.
        let listed = identities.filter { list?.entries[$0] != nil }
        let due = lastDiscard.map { $0 + Self.discardInterval } ?? now
        var discard = postponedDiscard ?? PostponedDiscard(due: due)
        discard.entries.formUnion(listed)
        if discard.due > now {
            postponedDiscard = discard
            return false
        }
        replace(entries: discard.entries, at: now, key, &random)
        return true
    }

    private mutating func replace(
        entries: Set<DeviceAddress>,
        at now: Instant,
        _ key: UInt128,
        _ random: inout some RandomNumberGenerator
    ) {
        postponedDiscard = nil
        lastDiscard = now
        renew(key, &random)
        startLifetime(at: now)
        for identity in entries { list?.renew(identity) }
    }

    // MARK: Commands

    /// Requests a pass.
    ///
    /// - Returns: whether the caller must schedule it.
    mutating func requestRun() -> Bool { run.request() }

    /// Ends the run: the controller cannot be used now.
    mutating func endRun() {
        run.end()
        hold = .nothing
        awaitsRest = false
    }

    /// Records that the activities rest for which a command waits. The caller then schedules a pass.
    mutating func rested() {
        awaitsRest = false
    }

    /// Returns the command to send now. Nil if the controller has the wanted addresses and list. Also nil while the
    /// plan waits for a request, or until the activities in ``hold`` rest.
    mutating func nextCommand(_ context: Context) -> PlannedCommand? {
        guard !pending.isPending else { return nil }
        awaitsRest = false
        guard run.maySend, let purpose = nextPurpose(context) else {
            endRun()
            return nil
        }
        let needed = neededHold(for: purpose, context)
        guard needed <= hold, context.rest >= hold else {
            // Even if the activities rest, they must know first that they are paused.
            hold = max(hold, needed)
            awaitsRest = true
            return nil
        }
        run.sent()
        return PlannedCommand(command: command(for: purpose), step: pending.begin(purpose))
    }

    private func nextPurpose(_ context: Context) -> Purpose? {
        if let address = wantedRandomAddress(context), address != randomAddress { return .setRandomAddress(address) }
        return nextChange(context).map { .changeList($0) }
    }

    private func nextChange(_ context: Context) -> ResolvingList.Change? {
        guard let list else { return nil }
        return list.nextChange(wanted: wantedEntries(list, context))
    }

    /// The activities that must rest for a change. If the resolving list is to be changed too, everything is held from
    /// the beginning, so that activities are paused once.
    private func neededHold(for purpose: Purpose, _ context: Context) -> AddressHold {
        guard case .setRandomAddress = purpose, context.information.usesExtendedCommands else { return .everything }
        return nextChange(context) == nil ? .scanningAndInitiating : .everything
    }

    /// The wanted entries of the resolving list: this host itself, for the private addresses of its advertisements, and
    /// the peers with keys, unless the controller cannot keep the privacy mode.
    private func wantedEntries(_ list: ResolvingList, _ context: Context) -> [ResolvingList.Entry] {
        let localKey = settings.usesPrivateAddresses ? context.ownKey : 0
        let identity = context.information.identityAddress
        var entries: [ResolvingList.Entry] = []
        if localKey != 0 { entries.append(.init(identity: identity, peerKey: 0, localKey: localKey)) }
        guard canListPeers(context.information) else { return entries }
        var keys: Set<UInt128> = []
        for peer in context.peers {
            guard let key = resolver.keys[peer], peer != identity, keys.insert(key).inserted else { continue }
            entries.append(.init(identity: peer, peerKey: key, localKey: localKey))
        }
        return entries
    }

    private func command(for purpose: Purpose) -> GAPCommand {
        switch purpose {
        case .setRandomAddress(let address): GAPCommand(LESetRandomAddress(randomAddress: address))
        case .changeList(let change): change.command(settings.privacyMode)
        }
    }

    // MARK: Replies

    /// Whether the plan waits for the reply to this command.
    func isWaiting(for step: GAPStep) -> Bool { pending.isWaiting(for: step) }

    /// Handles a successful reply. A reply to a command of an earlier controller has no effect.
    mutating func finished(_ step: GAPStep, _ information: ControllerInformation) {
        switch pending.end(step) {
        case nil: break
        case .setRandomAddress(let address): randomAddress = address
        case .changeList(let change):
            list?.finish(change, hasPrivacyModes: information.commands.contains(LESetPrivacyMode.self))
        }
    }

    /// Handles a command that failed.
    mutating func failed(_ step: GAPStep, _ failure: CommandFailure) -> [AddressEffect] {
        switch pending.end(step) {
        case nil: return []
        case .setRandomAddress:
            run.refused()
            return [.addressRefused(failure)]
        case .changeList(let change):
            list?.refuse(change, in: settings.privacyMode)
            return [.resolvedByHost(failure)]
        }
    }
}

extension ControllerInformation {
    /// Whether the controller resolves private addresses, within the size of its list.
    var hasResolvingList: Bool {
        features.contains(.llPrivacy) && resolvingListSize > 0 && commands.contains(LEAddDeviceToResolvingList.self)
            && commands.contains(LERemoveDeviceFromResolvingList.self)
            && commands.contains(LESetAddressResolutionEnable.self)
    }
}
