import BLEKeyStore
import BluetoothTypes
import Foundation

/// The identifier, the name and the services of each peer of a host, and whether the peer is connected.
///
/// An identifier is random and does not depend on the address. There are two kinds of peers:
///
/// - A *heard* peer is an advertiser, or a central that connects and is not bonded. It keeps its identifier as long as
///   the directory lives, unless it is evicted. It never causes a write to the disk, and never replaces a known peer.
/// - A peer that an app here connects to or retrieves, and a bonded peer, is *known*. A known peer with a public or
///   static address is saved in the ``KeyStore``; one with a private address is known as long as the directory lives.
///
/// The directory belongs to an ``OpenHost``. It ends after the last manager on the adapter, and the next manager has
/// another directory.
///
/// A device may get a second identifier, for example if its bond was removed and it appears under a new private
/// address. When it distributes its identity again, both peers become one. One identifier names the peer in all
/// reports. The other is an *alias*: apps that have saved it still find the peer, and an object that has it keeps it.
///
/// Each kind is bounded. The directory evicts the peers that it has not heard of for longest. It keeps connected and
/// bonded peers, and those that an object of the app represents (``PeerHold``). These do not count against the bound.
final class PeerDirectory: Sendable {
    /// A known peer in the store.
    private struct Record: Codable {
        let address: String
        let isRandom: Bool
        let identifier: UUID
        var deviceName: String?
        var aliases: [UUID]?
    }

    private static let section = "peripherals"
    /// Maximum length of a saved Device Name, in bytes (Vol 3, Part C, 12.1).
    private static let nameLimit = 248

    private let state = Guarded(PeerTable())
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
                var peer = PeerTable.Peer(identifier: record.identifier, address: address)
                peer.deviceName = record.deviceName
                peer.lastSeen = state.count
                peer.isKnown = true
                for alias in record.aliases ?? [] where alias != record.identifier && state.peer(alias) == nil {
                    peer.aliases.append(PeerTable.Alias(identifier: alias, token: PeerHold.Token()))
                }
                state.setNames(of: &peer)
            }
        }
    }

    // MARK: Identity

    /// Returns the identifier of the peer with an address; a new one if the directory does not have the peer.
    func identifier(of address: DeviceAddress) -> UUID {
        updatePeer(at: address) { $0.identifier }
    }

    /// Returns the identifier of the peer with an address, likewise, and a hold of the peer. One operation returns
    /// both, so the peer cannot be evicted before it is held.
    func heldPeer(at address: DeviceAddress) -> HeldPeer {
        updatePeer(at: address) { HeldPeer(identifier: $0.identifier, hold: PeerHold($0.token)) }
    }

    /// Sets the identity address that the peer with an address has distributed. The peer keeps its identifier.
    ///
    /// If another peer has the identity, both are the same device and become one peer. It has the identifier of the
    /// other peer if that is connected or an object has it.
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
            let joined: PeerTable.Peer? = if let joining { state.remove(joining) } else { nil }
            guard var peer = state.peers[kept] else { return false }
            if let joined { peer.join(joined) }
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
        updatePeer(at: address) { peer in
            if let name { peer.advertisedName = name }
            peer.add(services)
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
            peer.add(services)
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
                .sorted { $0.lastSeen < $1.lastSeen }
                .map(\.known)
        }
    }

    // MARK: Memory

    /// Updates the peer with an address, as the one seen last. Adds a peer if the directory does not have it.
    ///
    /// - Returns: the result of `body`.
    private func updatePeer<Value>(at address: DeviceAddress, _ body: (inout PeerTable.Peer) -> Value) -> Value {
        let (value, mustSave) = state.withLock { state -> (Value, Bool) in
            state.count += 1
            let before = state.identifiers[address].flatMap { state.peers[$0] }
            var peer = before ?? PeerTable.Peer(identifier: makeIdentifier(), address: address)
            peer.lastSeen = state.count
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
    private func makeKnown(_ identifiers: [UUID], _ state: inout PeerTable) -> Bool {
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
    private func forgetSome(like peer: PeerTable.Peer, _ state: inout PeerTable) {
        let count = state.counts[peer.kind, default: 0]
        guard count > state.thresholds[peer.kind, default: limit] else { return }
        var evictable = state.peers.values.filter {
            $0.kind == peer.kind && $0.connections == 0 && $0.identifier != peer.identifier
                && !state.bonded.contains($0.address)
        }.map { (identifier: $0.identifier, lastSeen: $0.lastSeen) }
        evictable.removeAll { state.isHeld($0.identifier) }
        evictable.sort { $0.lastSeen < $1.lastSeen }
        let room = limit - max(1, limit / 8)
        for peer in evictable.prefix(max(0, evictable.count - room)) { state.remove(peer.identifier) }
        // The number of peers that may be added before the next search does not depend on how many are in use.
        state.thresholds[peer.kind] = state.counts[peer.kind, default: 0] + limit - room - 1
    }

    /// Saves the bonded peers, and the most recent of the others up to the limit.
    private func save() {
        store.change(PeerDirectory.section) { [state, limit] in
            state.withLock { state in
                let peers = state.peers.values.filter { $0.kind == .lasting }.sorted { $0.lastSeen < $1.lastSeen }
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
