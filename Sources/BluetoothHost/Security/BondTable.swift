import BluetoothTypes
import OrderedCollections
import SMP

/// The bonds of a host and its own identity, as they are kept.
///
/// Each change goes to the store at once, except changes that a peer can cause again and again, which the store may gather.
///
/// There are no more bonds than the limit. A new bond takes the place of the least recently used one that is not privileged
/// (``BondRecord/isPrivileged``). So peers that bond without a person's consent can replace each other's bonds only.
struct BondTable {
    /// Who this host is to its peers: made once, unless the store knows.
    private(set) var identity: KeptIdentity
    let limit: Int
    private let store: (any BondStore)?
    /// By identity address; the one that was used last comes last.
    private var byIdentity: OrderedDictionary<DeviceAddress, BondRecord> = [:]
    /// Whether the identity was made anew and is not kept yet.
    private var isIdentityNew = true
    /// Whether changes were given to the store that it may gather, and none since that it writes at once.
    private var hasGathered = false
    /// Whether the store has been read, or there is none.
    private(set) var isLoaded: Bool
    /// Is told, from anywhere, that the store could not keep a change.
    private var onFailure: @Sendable () -> Void = {}

    init(store: (any BondStore)?, limit: Int, random: inout some RandomNumberGenerator) {
        self.store = store
        self.limit = limit
        identity = KeptIdentity(random: &random)
        isLoaded = store == nil
    }

    /// Takes what the store has kept.
    mutating func load(_ kept: KeptSecurity) {
        isLoaded = true
        if let identity = kept.identity {
            self.identity = identity
            isIdentityNew = false
        }
        for record in kept.bonds { byIdentity[record.bond.identity] = record }
    }

    /// The host goes to work: its identity is kept, before anybody learns of it.
    mutating func begin(onFailure: @escaping @Sendable () -> Void) {
        self.onFailure = onFailure
        guard isIdentityNew else { return }
        isIdentityNew = false
        keep()
    }

    // MARK: Looking up

    var count: Int { byIdentity.count }

    /// Whether there is no room for a new bond, and no bond that may be evicted for one.
    var isFull: Bool { byIdentity.count >= limit && !byIdentity.values.contains { !$0.isPrivileged } }

    /// All bonds, the one that was used last at the end.
    var records: some RandomAccessCollection<BondRecord> { byIdentity.values }

    /// The bond with the peer of this identity address.
    subscript(identity: DeviceAddress) -> BondRecord? { byIdentity[identity] }

    /// What the bond with a peer is worth; nil where there is none. One without a key to encrypt with is worth least.
    func strength(of identity: DeviceAddress) -> KeyStrength? {
        byIdentity[identity].map { record in
            record.bond.strength
                ?? KeyStrength(
                    isAuthenticated: record.bond.peerSigningKey?.isAuthenticated ?? false,
                    isSecureConnections: false,
                    keySize: 7
                )
        }
    }

    // MARK: Changing

    /// The outcome of adding a bond.
    enum Insertion: Equatable {
        /// The bond was added, or has replaced an earlier bond with the same peer.
        case added
        /// The bond was added, and the bond with this other peer was evicted.
        case evicted(DeviceAddress)
        /// There are too many bonds, and none of them may be evicted.
        case refused
    }

    /// Adds a bond, or replaces an earlier bond with the same peer.
    ///
    /// - Parameter isInUse: whether a peer is connected, so that its bond is not evicted.
    @discardableResult
    mutating func insert(
        _ record: BondRecord,
        isInUse: (DeviceAddress) -> Bool = { _ in false },
        whenKept: (@Sendable (Bool) -> Void)? = nil
    ) -> Insertion {
        let identity = record.bond.identity
        var evicted: DeviceAddress?
        if byIdentity[identity] == nil, byIdentity.count >= limit {
            evicted = byIdentity.first { !$0.value.isPrivileged && !isInUse($0.key) }?.key
            guard let evicted else { return .refused }
            byIdentity[evicted] = nil
        }
        byIdentity[identity] = nil
        byIdentity[identity] = record
        keep(whenKept)
        return evicted.map { .evicted($0) } ?? .added
    }

    /// Changes what is kept of a peer; its identity address stays.
    ///
    /// - Parameters:
    ///   - isGathered: whether the store may gather the change with others for some seconds.
    ///   - whenKept: is called, from anywhere, once the change will outlive the process, or with false where it cannot be
    ///     kept; not at all where there is no such bond, nothing changes, or the change is gathered.
    /// - Returns: whether there is such a bond and something has changed.
    @discardableResult
    mutating func update(
        _ identity: DeviceAddress,
        isGathered: Bool = false,
        whenKept: (@Sendable (Bool) -> Void)? = nil,
        _ change: (inout BondRecord) -> Void
    ) -> Bool {
        guard let old = byIdentity[identity] else { return false }
        var new = old
        change(&new)
        new.bond.identity = identity
        guard new != old else { return false }
        byIdentity[identity] = new
        if isGathered, let store {
            hasGathered = true
            store.gather(kept)
        } else {
            keep(whenKept)
        }
        return true
    }

    /// Has the store write what it gathers, if anything.
    mutating func flush() {
        if hasGathered { keep() }
    }

    /// Removes a bond.
    ///
    /// - Parameter whenKept: is called, from anywhere, once the bond is gone for good, or with false where that cannot be
    ///   kept; not at all where there is no such bond.
    @discardableResult
    mutating func remove(_ identity: DeviceAddress, whenKept: (@Sendable (Bool) -> Void)? = nil) -> BondRecord? {
        guard let record = byIdentity.removeValue(forKey: identity) else { return nil }
        keep(whenKept)
        return record
    }

    /// Takes note that a bond was used. The store may gather that, and it is not worth a write of its own.
    mutating func touch(_ identity: DeviceAddress) {
        guard byIdentity.keys.last != identity, let record = byIdentity.removeValue(forKey: identity) else { return }
        byIdentity[identity] = record
        store?.gather(kept)
    }

    private var kept: KeptSecurity { KeptSecurity(identity: identity, bonds: Array(byIdentity.values)) }

    private mutating func keep(_ whenKept: (@Sendable (Bool) -> Void)? = nil) {
        hasGathered = false
        guard let store else {
            // What no store keeps outlives nothing, which is as it was asked for.
            whenKept?(true)
            return
        }
        store.keep(kept) { [onFailure] isKept in
            if !isKept { onFailure() }
            whenKept?(isKept)
        }
    }
}

extension KeptIdentity {
    /// Makes a new identity.
    package init(random: inout some RandomNumberGenerator) {
        let address = DeviceAddress.randomStatic(from: random.next())
        var key: UInt128 = 0
        // A key of zero stands for none.
        while key == 0 { key = random.next() }
        self.init(staticAddress: address, resolvingKey: key)
    }
}
