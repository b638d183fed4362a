import BLEKeyStore
import BluetoothTypes
import Foundation

/// The identifier, the name and the services of each peer of a host, and whether the peer is connected.
///
/// An identifier is random and does not depend on the address. There are two kinds of peers:
///
/// - A *heard* peer is an advertiser, or a central that connects and is not bonded. It keeps its identifier for as long
///   as the process runs, unless it is evicted. It never causes a write to the disk, and never replaces a known peer.
/// - A peer that an app here connects to or retrieves, and a bonded peer, is *known*. A known peer with a public or
///   static address is saved in the ``KeyStore``; one with a private address is known for as long as the process runs.
///
/// A device may get a second identifier, for example if its bond was removed and it appears under a new private address.
/// When it distributes its identity again, both peers become one. One identifier names the peer in all reports. The other
/// is an *alias*: apps that have saved it still find the peer, and an object that has it keeps it.
///
/// Each kind is bounded. The directory evicts the peers that it has not heard of for longest. It keeps connected and
/// bonded peers, and those that an object of the app represents (``PeerHold``). These do not count against the bound.
final class PeerDirectory: Sendable {
    private enum Kind: CaseIterable {
        case heard
        /// Known, with an address that the peer changes.
        case transient
        /// Known, with an address that the peer keeps.
        case lasting
    }

    /// Another identifier of a peer.
    private struct Alias {
        let identifier: UUID
        /// The directory's reference to the token of the objects with this identifier.
        var token: PeerHold.Token
    }

    private struct Peer {
        let identifier: UUID
        var address: DeviceAddress
        /// The addresses of the peer before it distributed its identity, the oldest first.
        var formerAddresses: [DeviceAddress] = []
        /// The other identifiers of the peer, the oldest first.
        var aliases: [Alias] = []
        /// The Device Name that was read from the peer.
        var deviceName: String?
        var advertisedName: String?
        /// The services that it advertises, and those that were discovered.
        var services: Set<BluetoothUUID> = []
        var connections = 0
        /// The directory's `count` when the peer was last used or heard.
        var lastMet: UInt64 = 0
        var isKnown = false
        /// The directory's reference to the token. There is another one while a hold of the peer lives.
        var token = PeerHold.Token()

        var kind: Kind { isKnown ? (address.isLasting ? .lasting : .transient) : .heard }
        var name: String? { deviceName ?? advertisedName }
        /// The description of the peer for apps, which holds the peer.
        var known: KnownPeripheral { KnownPeripheral(identifier: identifier, name: name, hold: PeerHold(token)) }
    }

    /// A known peer in the store.
    private struct Record: Codable {
        let address: String
        let isRandom: Bool
        let identifier: UUID
        var deviceName: String?
        var aliases: [UUID]?
    }

    private struct State {
        var peers: [UUID: Peer] = [:]
        var identifiers: [DeviceAddress: UUID] = [:]
        /// The identifiers of the peers that have aliases, by the aliases.
        var aliases: [UUID: UUID] = [:]
        var bonded: Set<DeviceAddress> = []
        var count: UInt64 = 0
        var counts: [Kind: Int] = [:]
        /// The number of peers of a kind above which some are evicted, if it is not the limit.
        var thresholds: [Kind: Int] = [:]

        /// Stores a peer, and counts it as one of its kind.
        mutating func set(_ peer: Peer) {
            if let before = peers.updateValue(peer, forKey: peer.identifier) {
                guard before.kind != peer.kind else { return }
                counts[before.kind, default: 0] -= 1
            }
            counts[peer.kind, default: 0] += 1
        }

        @discardableResult
        mutating func remove(_ identifier: UUID) -> Peer? {
            guard let peer = peers.removeValue(forKey: identifier) else { return nil }
            for address in peer.formerAddresses + [peer.address] where identifiers[address] == peer.identifier {
                identifiers[address] = nil
            }
            for alias in peer.aliases { aliases[alias.identifier] = nil }
            counts[peer.kind, default: 0] -= 1
            return peer
        }

        /// Returns the identifier of the peer with an identifier or an alias.
        func resolve(_ identifier: UUID) -> UUID { aliases[identifier] ?? identifier }

        /// Returns the peer with an identifier or an alias.
        func peer(_ identifier: UUID) -> Peer? { peers[resolve(identifier)] }

        /// Returns whether a hold of a peer lives.
        mutating func isHeld(_ identifier: UUID) -> Bool {
            guard let index = peers.index(forKey: identifier) else { return false }
            if !isKnownUniquelyReferenced(&peers.values[index].token) { return true }
            for position in peers.values[index].aliases.indices {
                if !isKnownUniquelyReferenced(&peers.values[index].aliases[position].token) { return true }
            }
            return false
        }

        /// Returns whether a peer is connected, or a hold of it lives.
        mutating func isInUse(_ identifier: UUID) -> Bool {
            if let peer = peers[identifier], peer.connections > 0 { return true }
            return isHeld(identifier)
        }

        /// Returns the descriptions of the peers with some identifiers or aliases.
        mutating func known(_ identifiers: [UUID]) -> [KnownPeripheral] {
            var known: [KnownPeripheral] = []
            for identifier in identifiers {
                let own = resolve(identifier)
                if own != identifier, let alias = heldAlias(identifier, of: own) {
                    known.append(alias)
                } else if let peer = peers[own] {
                    known.append(peer.known)
                }
            }
            return known
        }

        /// Returns the description of a peer by its alias; nil if no object has the alias.
        private mutating func heldAlias(_ alias: UUID, of identifier: UUID) -> KnownPeripheral? {
            guard let index = peers.index(forKey: identifier),
                let position = peers.values[index].aliases.firstIndex(where: { $0.identifier == alias })
            else { return nil }
            if isKnownUniquelyReferenced(&peers.values[index].aliases[position].token) { return nil }
            let peer = peers.values[index]
            return KnownPeripheral(identifier: alias, name: peer.name, hold: PeerHold(peer.aliases[position].token))
        }

        /// Stores a peer with its addresses and its aliases. Beyond the limits, the oldest are removed.
        mutating func setNames(of peer: inout Peer) {
            while peer.formerAddresses.count > PeerDirectory.nameCountLimit {
                let address = peer.formerAddresses.removeFirst()
                if identifiers[address] == peer.identifier { identifiers[address] = nil }
            }
            while peer.aliases.count > PeerDirectory.nameCountLimit {
                aliases[peer.aliases.removeFirst().identifier] = nil
            }
            for address in peer.formerAddresses + [peer.address] { identifiers[address] = peer.identifier }
            for alias in peer.aliases { aliases[alias.identifier] = peer.identifier }
            set(peer)
        }
    }

    private static let section = "peripherals"
    private static let servicesLimit = 256
    /// Maximum number of former addresses of a peer, and of its aliases.
    private static let nameCountLimit = 8
    /// Maximum length of a saved Device Name, in bytes (Vol 3, Part C, 12.1).
    private static let nameLimit = 248

    private let state = Guarded(State())
    private let store: KeyStore
    private let makeIdentifier: @Sendable () -> UUID
    private let limit: Int

    /// - Parameter limit: maximum number of peers of each kind, without those that are not evicted. Also the maximum
    ///   number of saved peers that are not bonded.
    init(store: KeyStore, limit: Int = 2048, makeIdentifier: @escaping @Sendable () -> UUID) {
        self.store = store
        self.limit = limit
        self.makeIdentifier = makeIdentifier
        let records = store.section(PeerDirectory.section, as: [Record].self) ?? []
        state.withLock { state in
            for record in records {
                guard let address = DeviceAddress(record.address, isRandom: record.isRandom), address.isLasting,
                    state.identifiers[address] == nil, state.peer(record.identifier) == nil
                else { continue }
                state.count += 1
                var peer = Peer(identifier: record.identifier, address: address, deviceName: record.deviceName)
                peer.lastMet = state.count
                peer.isKnown = true
                for alias in record.aliases ?? [] where alias != record.identifier && state.peer(alias) == nil {
                    peer.aliases.append(Alias(identifier: alias, token: PeerHold.Token()))
                }
                state.setNames(of: &peer)
            }
        }
    }

    // MARK: Identity

    /// Returns the identifier of the peer with an address; a new one if the directory does not have the peer.
    func identifier(of address: DeviceAddress) -> UUID {
        meet(address) { $0.identifier }
    }

    /// Returns the identifier of the peer with an address, likewise, and a hold of the peer. One operation returns both,
    /// so the peer cannot be evicted before it is held.
    func heldPeer(at address: DeviceAddress) -> HeldPeer {
        meet(address) { HeldPeer(identifier: $0.identifier, hold: PeerHold($0.token)) }
    }

    /// Sets the identity address that the peer with an address has distributed. The peer keeps its identifier.
    ///
    /// If another peer has the identity, both are the same device and become one peer. It has the identifier of the other
    /// peer if that is connected or an object has it.
    func identify(_ address: DeviceAddress, as identity: DeviceAddress) {
        let mustSave = state.withLock { state in
            guard address != identity, let identifier = state.identifiers[address] else { return false }
            let other = state.identifiers[identity]
            guard other != identifier else { return false }
            var kept = identifier
            var joining = other
            if let other, state.isInUse(other) {
                kept = other
                joining = identifier
            }
            let joined: Peer? = if let joining { state.remove(joining) } else { nil }
            guard var peer = state.peers[kept] else { return false }
            if let joined { PeerDirectory.join(joined, to: &peer) }
            for former in [joined?.address, peer.address] {
                if let former, former != identity { peer.formerAddresses.append(former) }
            }
            peer.address = identity
            peer.isKnown = peer.isKnown || state.bonded.contains(identity)
            state.setNames(of: &peer)
            forgetSome(like: peer, &state)
            return peer.kind == .lasting
        }
        if mustSave { save() }
    }

    /// Adds the addresses, identifiers and properties of another peer, which is the same device.
    private static func join(_ other: Peer, to peer: inout Peer) {
        peer.formerAddresses += other.formerAddresses
        peer.aliases += other.aliases + [Alias(identifier: other.identifier, token: other.token)]
        let (newer, older) = other.lastMet > peer.lastMet ? (other, peer) : (peer, other)
        peer.deviceName = newer.deviceName ?? older.deviceName
        peer.advertisedName = newer.advertisedName ?? older.advertisedName
        add(other.services, to: &peer)
        peer.connections += other.connections
        peer.lastMet = max(peer.lastMet, other.lastMet)
        peer.isKnown = peer.isKnown || other.isKnown
    }

    /// Sets the identity addresses of all bonded peers. These are known, and never evicted.
    func setBonded(_ identities: [DeviceAddress]) {
        let mustSave = state.withLock { state in
            state.bonded = Set(identities)
            let peers = identities.compactMap { state.identifiers[$0] }
            return makeKnown(peers, &state)
        }
        if mustSave { save() }
    }

    /// Makes a peer known, because an app connects to it.
    ///
    /// - Returns: whether the directory has the peer.
    func use(_ identifier: UUID) -> Bool { !retrieve([identifier]).isEmpty }

    func address(of identifier: UUID) -> DeviceAddress? {
        state.withLock { $0.peer(identifier)?.address }
    }

    /// Updates a peer that a scan has heard.
    func heard(
        _ address: DeviceAddress,
        name: String?,
        services: some Sequence<BluetoothUUID>
    ) -> KnownPeripheral {
        meet(address) { peer in
            if let name { peer.advertisedName = name }
            PeerDirectory.add(services, to: &peer)
            return peer.known
        }
    }

    /// Stores a Device Name that was read.
    func read(deviceName: String, of identifier: UUID) {
        let name = PeerDirectory.clipped(deviceName)
        let mustSave = state.withLock { state in
            guard let before = state.peer(identifier) else { return false }
            state.peers[before.identifier]?.deviceName = name
            return before.deviceName != name && before.kind == .lasting
        }
        if mustSave { save() }
    }

    /// The Device Name, if it was read once, else the advertised name.
    func name(of identifier: UUID) -> String? {
        state.withLock { $0.peer(identifier)?.name }
    }

    private static func clipped(_ name: String) -> String {
        name.utf8.count > nameLimit ? String(decoding: name.utf8.prefix(nameLimit), as: UTF8.self) : name
    }

    func discovered(_ services: [BluetoothUUID], of identifier: UUID) {
        state.withLock { state in
            guard var peer = state.peer(identifier) else { return }
            PeerDirectory.add(services, to: &peer)
            state.peers[peer.identifier] = peer
        }
    }

    /// Adds or removes one link of a peer. A peer that an app is connected to is known.
    func setConnected(_ isConnected: Bool, _ identifier: UUID) {
        let mustSave = state.withLock { state in
            state.peers[state.resolve(identifier)]?.connections += isConnected ? 1 : -1
            return isConnected && makeKnown([identifier], &state)
        }
        if mustSave { save() }
    }

    // MARK: Answers

    /// Returns the peers with these identifiers that the directory has, for an app that retrieves them. They are known
    /// from then on.
    func retrieve(_ identifiers: [UUID]) -> [KnownPeripheral] {
        let (peers, mustSave) = state.withLock { state in
            let mustSave = makeKnown(identifiers, &state)
            return (state.known(identifiers), mustSave)
        }
        if mustSave { save() }
        return peers
    }

    /// Returns the peers with these identifiers that the directory has.
    func known(_ identifiers: [UUID]) -> [KnownPeripheral] {
        state.withLock { $0.known(identifiers) }
    }

    /// Returns whether an identifier names the same peer as one of others.
    func isSame(_ identifier: UUID, asAnyOf others: some Sequence<UUID>) -> Bool {
        state.withLock { state in
            let own = state.resolve(identifier)
            return others.contains { state.resolve($0) == own }
        }
    }

    /// Returns whether a peer is known to have one of the services.
    func has(_ identifier: UUID, anyOf services: [BluetoothUUID]) -> Bool {
        state.withLock { state in
            guard let peer = state.peer(identifier) else { return false }
            return services.contains { peer.services.contains($0) }
        }
    }

    /// Returns the connected peers that have one of the services, the least recently used first.
    func connected(withServices services: [BluetoothUUID]) -> [KnownPeripheral] {
        state.withLock { state in
            state.peers.values
                .filter { peer in peer.connections > 0 && services.contains { peer.services.contains($0) } }
                .sorted { $0.lastMet < $1.lastMet }
                .map(\.known)
        }
    }

    // MARK: Memory

    private static func add(_ services: some Sequence<BluetoothUUID>, to peer: inout Peer) {
        for service in services where peer.services.count < servicesLimit { peer.services.insert(service) }
    }

    private func meet<Value>(_ address: DeviceAddress, _ body: (inout Peer) -> Value) -> Value {
        let (value, mustSave) = state.withLock { state -> (Value, Bool) in
            state.count += 1
            let before = state.identifiers[address].flatMap { state.peers[$0] }
            var peer = before ?? Peer(identifier: makeIdentifier(), address: address)
            peer.lastMet = state.count
            peer.isKnown = peer.isKnown || state.bonded.contains(address)
            let value = body(&peer)
            state.set(peer)
            guard before?.kind != peer.kind else { return (value, false) }
            state.identifiers[address] = peer.identifier
            forgetSome(like: peer, &state)
            return (value, peer.kind == .lasting)
        }
        if mustSave { save() }
        return value
    }

    /// - Returns: whether more peers must be saved than before.
    private func makeKnown(_ identifiers: [UUID], _ state: inout State) -> Bool {
        var mustSave = false
        for identifier in identifiers {
            guard var peer = state.peer(identifier), !peer.isKnown else { continue }
            peer.isKnown = true
            state.set(peer)
            forgetSome(like: peer, &state)
            mustSave = mustSave || peer.kind == .lasting
        }
        return mustSave
    }

    /// Evicts an eighth of the peers of a kind if there are too many. Evicting one at a time would require a search
    /// each time.
    private func forgetSome(like peer: Peer, _ state: inout State) {
        let count = state.counts[peer.kind, default: 0]
        guard count > state.thresholds[peer.kind, default: limit] else { return }
        var evictable = state.peers.values.filter {
            $0.kind == peer.kind && $0.connections == 0 && $0.identifier != peer.identifier
                && !state.bonded.contains($0.address)
        }.map { (identifier: $0.identifier, lastMet: $0.lastMet) }
        evictable.removeAll { state.isHeld($0.identifier) }
        evictable.sort { $0.lastMet < $1.lastMet }
        let room = limit - max(1, limit / 8)
        for peer in evictable.prefix(max(0, evictable.count - room)) { state.remove(peer.identifier) }
        // The number of peers that may be added before the next search does not depend on how many are in use.
        state.thresholds[peer.kind] = state.counts[peer.kind, default: 0] + limit - room - 1
    }

    /// Saves the bonded peers, and the most recent of the others up to the limit.
    private func save() {
        store.change(PeerDirectory.section) { [state, limit] in
            state.withLock { state in
                let peers = state.peers.values.filter { $0.kind == .lasting }.sorted { $0.lastMet < $1.lastMet }
                var excess = peers.count { !state.bonded.contains($0.address) } - limit
                return peers.compactMap { peer -> Record? in
                    if excess > 0, !state.bonded.contains(peer.address) {
                        excess -= 1
                        return nil
                    }
                    return Record(
                        address: "\(peer.address)",
                        isRandom: peer.address.isRandom,
                        identifier: peer.identifier,
                        deviceName: peer.deviceName,
                        aliases: peer.aliases.isEmpty ? nil : peer.aliases.map(\.identifier)
                    )
                }
            }
        }
    }
}

extension DeviceAddress {
    /// Whether a device keeps the address: a public or a static random address (Vol 6, Part B, 1.3).
    fileprivate var isLasting: Bool { kind == .public || kind == .randomStatic }
}
