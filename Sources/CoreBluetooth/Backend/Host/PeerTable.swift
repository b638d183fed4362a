import BluetoothTypes
import Foundation

/// The peers of a ``PeerDirectory``, found by their identifiers, aliases and addresses.
///
/// The table counts the peers of each kind. Which peers are evicted is up to the directory.
struct PeerTable {
    enum Kind: CaseIterable {
        case heard
        /// Known, with an address that the peer changes.
        case transient
        /// Known, with an address that the peer keeps.
        case lasting
    }

    /// Another identifier of a peer.
    struct Alias {
        let identifier: UUID
        /// The directory's reference to the token of the objects with this identifier.
        var token: PeerHold.Token
    }

    struct Peer {
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
        var lastSeen: UInt64 = 0
        var isKnown = false
        /// The directory's reference to the token. There is another one while a hold of the peer lives.
        var token = PeerHold.Token()

        var kind: Kind { isKnown ? (address.isLasting ? .lasting : .transient) : .heard }
        var name: String? { deviceName ?? advertisedName }
        /// The description of the peer for apps, which holds the peer.
        var known: KnownPeripheral { KnownPeripheral(identifier: identifier, name: name, hold: PeerHold(token)) }

        mutating func add(_ services: some Sequence<BluetoothUUID>) {
            for service in services {
                guard self.services.count < PeerTable.servicesLimit else { return }
                self.services.insert(service)
            }
        }

        /// Adds the addresses, identifiers and properties of another peer, which is the same device.
        mutating func join(_ other: Peer) {
            formerAddresses += other.formerAddresses
            aliases += other.aliases + [Alias(identifier: other.identifier, token: other.token)]
            let (newer, older) = other.lastSeen > lastSeen ? (other, self) : (self, other)
            deviceName = newer.deviceName ?? older.deviceName
            advertisedName = newer.advertisedName ?? older.advertisedName
            add(other.services)
            connections += other.connections
            lastSeen = max(lastSeen, other.lastSeen)
            isKnown = isKnown || other.isKnown
        }
    }

    /// Maximum number of services of a peer.
    private static let servicesLimit = 256
    /// Maximum number of former addresses of a peer, and of its aliases.
    private static let nameCountLimit = 8

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
        while peer.formerAddresses.count > PeerTable.nameCountLimit {
            let address = peer.formerAddresses.removeFirst()
            if identifiers[address] == peer.identifier { identifiers[address] = nil }
        }
        while peer.aliases.count > PeerTable.nameCountLimit {
            aliases[peer.aliases.removeFirst().identifier] = nil
        }
        for address in peer.formerAddresses + [peer.address] { identifiers[address] = peer.identifier }
        for alias in peer.aliases { aliases[alias.identifier] = peer.identifier }
        set(peer)
    }
}
