import BluetoothTypes
import OrderedCollections
import SMP

/// The bonds of a host and its own identity, as they are kept.
///
/// Each change goes to the store at once. There are no more bonds than the limit: a new one has to wait until an old one is
/// removed, so that nobody can push another's bond out.
struct BondTable {
    /// Who this host is to its peers: made once, unless the store knows.
    private(set) var identity: KeptIdentity
    let limit: Int
    private let store: (any BondStore)?
    /// By identity address; the one that was used last comes last.
    private var byIdentity: OrderedDictionary<DeviceAddress, BondRecord> = [:]
    /// Whether the identity was made anew and is not kept yet.
    private var isIdentityNew = true
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

    var isFull: Bool { byIdentity.count >= limit }

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

    /// Adds a bond, or puts it into the place of the one with the same peer.
    ///
    /// - Returns: false where there are too many already.
    @discardableResult
    mutating func insert(_ record: BondRecord, whenKept: (@Sendable (Bool) -> Void)? = nil) -> Bool {
        guard !isFull || byIdentity[record.bond.identity] != nil else { return false }
        byIdentity[record.bond.identity] = nil
        byIdentity[record.bond.identity] = record
        keep(whenKept)
        return true
    }

    /// Changes what is kept of a peer; its identity address stays.
    ///
    /// - Parameter whenKept: is called, from anywhere, once the change will outlive the process, or with false where it
    ///   cannot be kept; not at all where there is no such bond or nothing changes.
    /// - Returns: whether there is such a bond and something has changed.
    @discardableResult
    mutating func update(
        _ identity: DeviceAddress,
        whenKept: (@Sendable (Bool) -> Void)? = nil,
        _ change: (inout BondRecord) -> Void
    ) -> Bool {
        guard let old = byIdentity[identity] else { return false }
        var new = old
        change(&new)
        new.bond.identity = identity
        guard new != old else { return false }
        byIdentity[identity] = new
        keep(whenKept)
        return true
    }

    @discardableResult
    mutating func remove(_ identity: DeviceAddress) -> BondRecord? {
        guard let record = byIdentity.removeValue(forKey: identity) else { return nil }
        keep()
        return record
    }

    /// Takes note that a bond was used.
    mutating func touch(_ identity: DeviceAddress) {
        guard byIdentity.keys.last != identity, let record = byIdentity.removeValue(forKey: identity) else { return }
        byIdentity[identity] = record
    }

    private func keep(_ whenKept: (@Sendable (Bool) -> Void)? = nil) {
        guard let store else {
            // What no store keeps outlives nothing, which is as it was asked for.
            whenKept?(true)
            return
        }
        store.keep(KeptSecurity(identity: identity, bonds: Array(byIdentity.values))) { [onFailure] isKept in
            if !isKept { onFailure() }
            whenKept?(isKept)
        }
    }
}

extension KeptIdentity {
    init(random: inout some RandomNumberGenerator) {
        let address = DeviceAddress.randomStatic(from: random.next())
        var key: UInt128 = 0
        // A key of zero stands for none.
        while key == 0 { key = random.next() }
        self.init(staticAddress: address, resolvingKey: key)
    }
}
