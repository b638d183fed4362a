import BLEGATT
import BLESMP
import BluetoothTypes
import OrderedCollections

/// The bonds of a host, its identity and its sign counters.
///
/// ## Overview
///
/// The database decides which bonds there are and when they are saved. It saves nothing itself, and knows neither links
/// nor the store. Each change returns its effects, and the caller performs them in their order.
///
/// ## Saving
///
/// Most changes are saved at once. The store may defer those that a peer can cause again and again. A save that
/// something waits for has a number. The caller passes the number to ``saved(_:_:)`` when the save has ended, and the
/// database returns ``BondEffect/finish(_:isSaved:)``.
///
/// Without a store, no effect asks for a save, and each change finishes at once.
///
/// ## Counters of signed writes
///
/// The counter of a peer's signing key belongs to the key, not to a bond: all bonds with the same key have the same
/// counter. If the last bond with the key ends, the counter stays in ``HostSecurityState/retiredSigningKeys``.
///
/// ## Bounds
///
/// There are no more bonds than ``limit``. A new bond takes the place of the least recently used one that is not
/// privileged (``BondRecord/isPrivileged``). So peers that bond without a person's consent can replace each other's
/// bonds only.
struct BondDatabase {
    private struct PendingSave {
        let waiter: SaveWaiter
        /// Sign counters that may be used once the save has ended.
        let reservation: SignCounters.Reservation?
    }

    /// The identity of this host. It is made once, unless the store has one.
    private(set) var identity: HostIdentity
    /// Maximum number of bonds.
    let limit: Int
    /// Whether there is a store.
    let isPersistent: Bool
    /// Whether a host without its saved state must not start.
    private let isRequired: Bool
    /// Whether the store has been read, or there is none.
    private(set) var isLoaded: Bool
    /// Why the store could not use the saved state, or cannot save changes; nil if there is no such problem.
    private var storeProblem: String?
    /// The controller that the bonds belong to.
    var controller = BondedController()
    /// By identity address, the most recently used bond last.
    private var byIdentity: OrderedDictionary<DeviceAddress, BondRecord> = [:]
    private(set) var signCounters = SignCounters()
    /// The signing keys of peers that no bond has any more.
    private var retired = RetiredSigningKeys()
    /// Whether the identity is new and not saved yet.
    private var isIdentityNew = true
    /// Whether the store has changes that it may save later, and was given none since that it saves at once.
    private var hasDeferredChanges = false
    /// The saves that something waits for, by their numbers.
    private var pendingSaves: [UInt64: PendingSave] = [:]
    private var lastSaveNumber: UInt64 = 0

    /// - Parameters:
    ///   - identity: the identity of this host, unless the store has one.
    ///   - limit: maximum number of bonds.
    ///   - isPersistent: whether there is a store.
    ///   - isRequired: whether a host without its saved state must not start.
    init(identity: HostIdentity, limit: Int, isPersistent: Bool, isRequired: Bool = false) {
        self.identity = identity
        self.limit = limit
        self.isPersistent = isPersistent
        self.isRequired = isRequired
        isLoaded = !isPersistent
    }

    // MARK: Lookup

    /// The number of bonds.
    var count: Int { byIdentity.count }

    /// Whether there is no room for a new bond, and no bond that may be evicted for one.
    var isFull: Bool { byIdentity.count >= limit && !byIdentity.values.contains { !$0.isPrivileged } }

    /// All bonds, the most recently used one last.
    var records: OrderedDictionary<DeviceAddress, BondRecord>.Values { byIdentity.values }

    /// The bond with the peer of this identity address.
    subscript(identity: DeviceAddress) -> BondRecord? { byIdentity[identity] }

    /// The strength of the bond with a peer, which a pairing that replaces it must have; nil if there is none. A bond
    /// without a key for encryption is the weakest.
    func strength(of identity: DeviceAddress) -> KeyStrength? {
        byIdentity[identity].map { record in
            record.bond.replacementStrength
                ?? KeyStrength(
                    isAuthenticated: record.bond.peerSigningKey?.isAuthenticated ?? false,
                    isSecureConnections: false,
                    keySize: 7
                )
        }
    }

    /// The number of saves that something waits for.
    var pendingSaveCount: Int { pendingSaves.count }

    // MARK: Beginning

    /// Why the saved state could not be used, or changes cannot be saved; nil if there is no such problem.
    var problem: String? { storeProblem ?? (isPersistent ? controller.problem : nil) }

    /// Why the host must not start; nil if it may.
    var obstacle: String? { isRequired ? problem : nil }

    /// Takes over the state that the store has loaded.
    ///
    /// - Parameter problem: why the saved state could not be used, or changes cannot be saved.
    mutating func load(_ state: HostSecurityState, problem: String? = nil) {
        isLoaded = true
        storeProblem = problem
        if let identity = state.identity {
            self.identity = identity
            isIdentityNew = false
        }
        for record in state.bonds { byIdentity[record.bond.identity] = record }
        retired = state.retiredSigningKeys
        for record in state.bonds {
            guard let key = record.bond.peerSigningKey else { continue }
            raisePeerCounters(to: key)
            raisePeerCounters(to: retired[key.value])
        }
    }

    /// Saves a new identity before the first peer learns it. It does not replace an earlier one that is required and
    /// could not be read.
    mutating func begin() -> [BondEffect] {
        guard isIdentityNew, obstacle == nil else { return [] }
        isIdentityNew = false
        return save()
    }

    // MARK: Bonds

    /// Decides what happens to the keys of a pairing, and adds a bond.
    ///
    /// - Parameters:
    ///   - peer: the identity of the peer before it paired.
    ///   - serverState: what the server remembers of the peer, if the peer's identity is verified on the link. It stays
    ///     with the new bond, and so does the cache of the peer's database.
    ///   - isForApp: whether the app has asked for the pairing.
    ///   - isConfirmed: whether the app has allowed the bond to replace that of another peer.
    ///   - inUse: the identities of the connected peers, whose bonds are not evicted.
    mutating func admit(
        _ outcome: PairingOutcome,
        from peer: DeviceAddress,
        keeping serverState: ServerSession.PersistentState?,
        isForApp: Bool,
        isConfirmed: Bool,
        inUse: Set<DeviceAddress>
    ) -> (BondDecision, [BondEffect]) {
        let identity = outcome.bond.identity
        if let existing = strength(of: identity) {
            if outcome.strength.isWeaker(than: existing) { return (.refused(.weakerThanBond(outcome.strength)), []) }
            // The peer's identity is not verified on this link.
            if outcome.isBonded, peer != identity, !isConfirmed { return (.replacesOther(existing), []) }
        }
        // The host could not recognize a peer that has given neither a lasting address nor the key to its private ones.
        guard outcome.isBonded, identity.isLasting else { return (.keptForLink, []) }
        var record = BondRecord(bond: outcome.bond)
        let isVerified = serverState != nil
        let ownsKey = isVerified && byIdentity[peer]?.bond.identityResolvingKey == record.bond.identityResolvingKey
        if !ownsKey, let owner = owner(ofResolvingKeyIn: record.bond) {
            // With this key, the private addresses of that peer would be resolved to the new one.
            guard peer == identity else {
                let reason = "it has the identity resolving key of \(owner); remove that bond first if it is the same"
                return (.refused(.refused(reason)), [])
            }
            record.bond.identityResolvingKey = nil
        }
        for existing in [byIdentity[identity], byIdentity[peer]] {
            if let existing { record.bond.raiseCounters(to: existing.bond) }
        }
        // A peer can cause a pairing on demand: it advertises, and refuses the requests of an app that connects to it.
        record.isPrivileged =
            outcome.strength.isAuthenticated || isForApp || (isVerified && byIdentity[peer]?.isPrivileged == true)
        if let serverState {
            record.serverState = serverState
            record.clientCache = byIdentity[peer]?.clientCache
            record.advertisingKey = byIdentity[peer]?.advertisingKey
        }
        do throws(SecurityError) {
            let effects = try add(record, inUse: inUse)
            guard isVerified, peer != identity else { return (.bonded, effects) }
            return (.bonded, effects + demoteEarlierBond(of: peer, losesKey: ownsKey))
        } catch {
            return (.refused(error), [])
        }
    }

    /// Updates the earlier bond of a verified peer that has a bond under another identity address now. The earlier bond
    /// is no longer privileged, so a peer cannot make further privileged bonds by itself.
    ///
    /// - Parameter losesKey: whether the new bond has the identity resolving key of the earlier one, which then loses
    ///   it.
    private mutating func demoteEarlierBond(of identity: DeviceAddress, losesKey: Bool) -> [BondEffect] {
        guard var record = byIdentity[identity] else { return [] }
        let losesKey = losesKey && record.bond.identityResolvingKey != nil
        guard losesKey || record.isPrivileged else { return [] }
        record.isPrivileged = false
        if losesKey { record.bond.identityResolvingKey = nil }
        byIdentity[identity] = record
        return save() + (losesKey ? [.bondChanged(identity)] : [])
    }

    /// The other bonded peer that has given the same identity resolving key; nil if there is none.
    private func owner(ofResolvingKeyIn bond: Bond) -> DeviceAddress? {
        guard let key = bond.identityResolvingKey, key != 0 else { return nil }
        return byIdentity.first { $0.key != bond.identity && $0.value.bond.identityResolvingKey == key }?.key
    }

    /// Adds a bond that was made elsewhere, or replaces one with the same peer. It is privileged, because the app wants
    /// it.
    ///
    /// Sign counters of the same keys never decrease: the higher ones stay.
    ///
    /// - Parameter inUse: the identities of the connected peers, whose bonds are not evicted.
    /// - Throws: ``SecurityError/tooManyBonds(_:)`` if there are as many bonds as may be, and none may be evicted.
    mutating func insert(_ record: BondRecord, inUse: Set<DeviceAddress>) throws(SecurityError) -> [BondEffect] {
        var record = record
        record.isPrivileged = true
        if let existing = byIdentity[record.bond.identity] { record.bond.raiseCounters(to: existing.bond) }
        return try add(record, inUse: inUse)
    }

    private mutating func add(_ record: BondRecord, inUse: Set<DeviceAddress>) throws(SecurityError) -> [BondEffect] {
        var record = record
        let identity = record.bond.identity
        var evicted: DeviceAddress?
        if byIdentity[identity] == nil, byIdentity.count >= limit {
            evicted = byIdentity.first { !$0.value.isPrivileged && !inUse.contains($0.key) }?.key
            guard let evicted else { throw .tooManyBonds(limit) }
            retire(byIdentity.removeValue(forKey: evicted))
            forgetSignCounters(of: evicted)
        }
        for other in byIdentity.values { record.bond.raisePeerCounter(to: other.bond.peerSigningKey) }
        if let key = record.bond.peerSigningKey { record.bond.raisePeerCounter(to: retired[key.value]) }
        let replaced = byIdentity.removeValue(forKey: identity)
        byIdentity[identity] = record
        retire(replaced)
        raisePeerCounters(to: record.bond.peerSigningKey)
        forgetSignCounters(of: identity)
        var effects = save()
        if let evicted { effects.append(.evicted(evicted)) }
        return effects + [.bondChanged(identity), .report(.bondAdded(BondInformation(record)))]
    }

    /// Removes a bond. Has no effect if there is none.
    ///
    /// - Parameter waiter: finished when the removal is saved, or cannot be saved.
    mutating func remove(_ identity: DeviceAddress, notifying waiter: SaveWaiter) -> [BondEffect] {
        guard let record = byIdentity.removeValue(forKey: identity) else { return [.finish(waiter, isSaved: true)] }
        retire(record)
        forgetSignCounters(of: identity)
        return save(for: waiter) + [.bondChanged(identity), .report(.bondRemoved(identity: identity))]
    }

    /// Changes the record of a bonded peer. Does nothing if there is no bond or nothing changes.
    mutating func update(_ identity: DeviceAddress, _ change: BondChange) -> [BondEffect] {
        guard var record = byIdentity[identity] else {
            return change.waiter.map { [.finish($0, isSaved: false)] } ?? []
        }
        switch change {
        case .used: return use(identity)
        case .privileged(let isPrivileged): record.isPrivileged = isPrivileged
        case .serverState(let state): record.serverState = state
        case .clientCache(let cache): record.clientCache = cache.flatMap(BondDatabase.limited)
        case .advertisingKey(let key): record.advertisingKey = key
        case .counterUsed(let next, _): record.bond.peerSigningKey?.nextCounter = next
        }
        guard record != byIdentity[identity] else { return change.waiter.map { [.finish($0, isSaved: false)] } ?? [] }
        byIdentity[identity] = record
        if case .counterUsed = change { raisePeerCounters(to: record.bond.peerSigningKey) }
        return change.isDeferrable ? saveSoon() : save(for: change.waiter)
    }

    /// A cache that can be loaded again; nil if it has too many attributes.
    private static func limited(_ cache: DatabaseCache) -> DatabaseCache? {
        cache.attributeCount <= DiscoveryLimits.attributes ? cache : nil
    }

    /// Reports a use to the store, which may save it later with other changes. A flush does not save a use, because it
    /// needs no save of its own.
    private mutating func use(_ identity: DeviceAddress) -> [BondEffect] {
        guard byIdentity.keys.last != identity, let record = byIdentity.removeValue(forKey: identity) else { return [] }
        byIdentity[identity] = record
        return isPersistent && !controller.hasForeignStore ? [.saveSoon(securityState)] : []
    }

    // MARK: Sign counters

    /// Returns a counter that was never used for a signature and will not be used again, also after a restart.
    mutating func takeSignCounter(for identity: DeviceAddress) -> SignCounter {
        guard let key = byIdentity[identity]?.bond.ownSigningKey else { return .noKey }
        if let counter = signCounters.take(for: key, of: identity) { return .available(key, counter) }
        return key.nextCounter < .max ? .noneReserved : .usedUp
    }

    /// Reserves sign counters. They can be taken once the reservation is saved.
    mutating func reserveSignCounters(for identity: DeviceAddress, notifying waiter: SaveWaiter) -> [BondEffect] {
        guard var key = byIdentity[identity]?.bond.ownSigningKey, let counters = key.takeCounters() else {
            return [.finish(waiter, isSaved: false)]
        }
        byIdentity[identity]?.bond.ownSigningKey = key
        return save(for: waiter, .init(identity: identity, key: key, counters: counters))
    }

    /// Raises the counters of all bonds with this signing key of a peer. A peer can be bonded under several identities.
    private mutating func raisePeerCounters(to key: SigningKey?) {
        guard let key else { return }
        for index in byIdentity.values.indices where byIdentity.values[index].bond.peerSigningKey?.value == key.value {
            byIdentity.values[index].bond.raisePeerCounter(to: key)
        }
    }

    /// Keeps the counter of the peer's signing key after its bond was removed or replaced, unless another bond has the
    /// key.
    private mutating func retire(_ record: BondRecord?) {
        guard let key = record?.bond.peerSigningKey,
            !byIdentity.values.contains(where: { $0.bond.peerSigningKey?.value == key.value })
        else { return }
        retired.add(key)
    }

    /// Forgets the counters of a peer that has no bond any more, or has another key now.
    private mutating func forgetSignCounters(of identity: DeviceAddress) {
        signCounters.forget(identity, unlessOf: byIdentity[identity]?.bond.ownSigningKey)
    }

    /// Adds counters whose reservation is saved, unless their key has ended since.
    private mutating func add(_ reservation: SignCounters.Reservation) {
        signCounters.add(reservation)
        forgetSignCounters(of: reservation.identity)
    }

    // MARK: Saving

    /// Records the end of a save.
    ///
    /// - Parameters:
    ///   - number: the number of the save; nil if nothing waits for it.
    ///   - isSaved: whether the change will outlive the process.
    mutating func saved(_ number: UInt64?, _ isSaved: Bool) -> [BondEffect] {
        var effects: [BondEffect] = isSaved ? [] : [.report(.bondsNotSaved)]
        guard let number, let save = pendingSaves.removeValue(forKey: number) else { return effects }
        if isSaved, let reservation = save.reservation { add(reservation) }
        effects.append(.finish(save.waiter, isSaved: isSaved))
        return effects
    }

    /// Saves the changes that the store has deferred, if any.
    mutating func flush() -> [BondEffect] { hasDeferredChanges ? save() : [] }

    private var securityState: HostSecurityState {
        HostSecurityState(identity: identity, bonds: Array(byIdentity.values), retiredSigningKeys: retired)
    }

    private mutating func saveSoon() -> [BondEffect] {
        guard isPersistent, !controller.hasForeignStore else { return [] }
        hasDeferredChanges = true
        return [.saveSoon(securityState)]
    }

    private mutating func save(
        for waiter: SaveWaiter? = nil,
        _ reservation: SignCounters.Reservation? = nil
    ) -> [BondEffect] {
        hasDeferredChanges = false
        guard isPersistent else {
            if let reservation { add(reservation) }
            return waiter.map { [.finish($0, isSaved: true)] } ?? []
        }
        if controller.hasForeignStore {
            return [.report(.bondsNotSaved)] + (waiter.map { [.finish($0, isSaved: false)] } ?? [])
        }
        guard let waiter else { return [.save(securityState, number: nil)] }
        lastSaveNumber += 1
        pendingSaves[lastSaveNumber] = PendingSave(waiter: waiter, reservation: reservation)
        return [.save(securityState, number: lastSaveNumber)]
    }
}
