import BluetoothTypes
import Foundation
import KeyStore

/// The peers that a host has met: the identifier of each, its name, its services, and whether it is connected.
///
/// An identifier is made by chance and tells nothing of the address. That of a device with a public or static address is kept
/// over restarts; that of a private address lasts as long as the process. Both kinds are bounded: those that were not met for
/// longest are forgotten, but none that is connected.
final class PeerDirectory: Sendable {
    private struct Peer {
        let identifier: UUID
        let address: DeviceAddress
        /// The Device Name that was read of it.
        var deviceName: String?
        var advertisedName: String?
        /// Those that it advertises and those that were discovered.
        var services: Set<BluetoothUUID> = []
        var connections = 0
        /// The directory's count when the peer was last met.
        var lastMet: UInt64 = 0

        var isLasting: Bool { address.isLasting }
        var known: KnownPeripheral { KnownPeripheral(identifier: identifier, name: deviceName ?? advertisedName) }
    }

    /// What is kept of a peer.
    private struct Record: Codable {
        let address: String
        let isRandom: Bool
        let identifier: UUID
        var deviceName: String?
    }

    private struct State {
        var peers: [UUID: Peer] = [:]
        var identifiers: [DeviceAddress: UUID] = [:]
        var count: UInt64 = 0
        var lasting = 0
    }

    private static let section = "peripherals"
    private static let servicesLimit = 256

    private let state = Guarded(State())
    private let store: KeyStore
    private let makeIdentifier: @Sendable () -> UUID
    private let limit: Int

    /// - Parameter limit: how many peers of each kind are remembered.
    init(store: KeyStore, limit: Int = 2048, makeIdentifier: @escaping @Sendable () -> UUID) {
        self.store = store
        self.limit = limit
        self.makeIdentifier = makeIdentifier
        let records = store.section(PeerDirectory.section, as: [Record].self) ?? []
        state.withLock { state in
            for record in records.suffix(limit) {
                guard let address = DeviceAddress(record.address, isRandom: record.isRandom), address.isLasting,
                    state.identifiers[address] == nil, state.peers[record.identifier] == nil
                else { continue }
                state.count += 1
                var peer = Peer(identifier: record.identifier, address: address, deviceName: record.deviceName)
                peer.lastMet = state.count
                state.peers[peer.identifier] = peer
                state.identifiers[address] = peer.identifier
                state.lasting += 1
            }
        }
    }

    // MARK: Who is who

    /// The peer at an address, which is made known where it is not.
    func identifier(of address: DeviceAddress) -> UUID {
        meet(address) { $0.identifier }
    }

    /// A peer met under an address has said who it is: it stays the same peer, by its identity address from now on.
    func identify(_ address: DeviceAddress, as identity: DeviceAddress) {
        let isNew = state.withLock { state in
            guard address != identity, state.identifiers[identity] == nil,
                let identifier = state.identifiers[address], let before = state.peers[identifier]
            else { return false }
            var peer = Peer(identifier: identifier, address: identity, deviceName: before.deviceName)
            peer.advertisedName = before.advertisedName
            peer.services = before.services
            peer.connections = before.connections
            peer.lastMet = before.lastMet
            state.peers[identifier] = peer
            state.identifiers[identity] = identifier
            if peer.isLasting, !before.isLasting { state.lasting += 1 }
            return peer.isLasting
        }
        if isNew { keep() }
    }

    func address(of identifier: UUID) -> DeviceAddress? {
        state.withLock { $0.peers[identifier]?.address }
    }

    /// Takes what a scan has heard of a peer.
    func heard(_ address: DeviceAddress, name: String?, services: [BluetoothUUID]) -> KnownPeripheral {
        meet(address) { peer in
            if let name { peer.advertisedName = name }
            PeerDirectory.add(services, to: &peer)
            return peer.known
        }
    }

    /// Takes a Device Name that was read; tells whether the peer's name is another one now.
    func read(deviceName: String, of identifier: UUID) -> Bool {
        let (isNew, isOther) = state.withLock { state -> (Bool, Bool) in
            guard let before = state.peers[identifier] else { return (false, false) }
            state.peers[identifier]?.deviceName = deviceName
            return (before.deviceName != deviceName && before.isLasting, before.known.name != deviceName)
        }
        if isNew { keep() }
        return isOther
    }

    func discovered(_ services: [BluetoothUUID], of identifier: UUID) {
        state.withLock { state in
            guard var peer = state.peers[identifier] else { return }
            PeerDirectory.add(services, to: &peer)
            state.peers[identifier] = peer
        }
    }

    /// Takes note that there is one link more, or one less, to a peer.
    func setConnected(_ isConnected: Bool, _ identifier: UUID) {
        state.withLock { $0.peers[identifier]?.connections += isConnected ? 1 : -1 }
    }

    // MARK: Answers

    func known(_ identifiers: [UUID]) -> [KnownPeripheral] {
        state.withLock { state in identifiers.compactMap { state.peers[$0]?.known } }
    }

    /// Whether a peer is known to have one of the services.
    func has(_ identifier: UUID, anyOf services: [BluetoothUUID]) -> Bool {
        state.withLock { state in
            guard let peer = state.peers[identifier] else { return false }
            return services.contains { peer.services.contains($0) }
        }
    }

    /// The peers that are connected and have one of the services, in the order in which they were met last.
    func connected(withServices services: [BluetoothUUID]) -> [KnownPeripheral] {
        state.withLock { state in
            state.peers.values
                .filter { peer in peer.connections > 0 && services.contains { peer.services.contains($0) } }
                .sorted { $0.lastMet < $1.lastMet }
                .map(\.known)
        }
    }

    // MARK: Memory

    private static func add(_ services: [BluetoothUUID], to peer: inout Peer) {
        for service in services where peer.services.count < servicesLimit { peer.services.insert(service) }
    }

    private func meet<Value>(_ address: DeviceAddress, _ body: (inout Peer) -> Value) -> Value {
        let (value, isNew) = state.withLock { state -> (Value, Bool) in
            state.count += 1
            let known = state.identifiers[address].flatMap { state.peers[$0] }
            var peer = known ?? Peer(identifier: makeIdentifier(), address: address)
            peer.lastMet = state.count
            let value = body(&peer)
            state.peers[peer.identifier] = peer
            guard known == nil else { return (value, false) }
            state.identifiers[address] = peer.identifier
            if peer.isLasting { state.lasting += 1 }
            forgetSome(like: peer, &state)
            return (value, peer.isLasting)
        }
        if isNew { keep() }
        return value
    }

    /// Forgets an eighth of the peers of a kind where there are too many: one at a time would cost a search each time.
    private func forgetSome(like peer: Peer, _ state: inout State) {
        let count = peer.isLasting ? state.lasting : state.peers.count - state.lasting
        guard count > limit else { return }
        let oldest = state.peers.values
            .filter { $0.isLasting == peer.isLasting && $0.connections == 0 && $0.identifier != peer.identifier }
            .sorted { $0.lastMet < $1.lastMet }
        for peer in oldest.prefix(max(1, limit / 8)) {
            state.peers[peer.identifier] = nil
            state.identifiers[peer.address] = nil
            if peer.isLasting { state.lasting -= 1 }
        }
    }

    private func keep() {
        store.change(PeerDirectory.section) { [state] in
            state.withLock { state in
                state.peers.values.filter(\.isLasting).sorted { $0.lastMet < $1.lastMet }.map { peer in
                    Record(
                        address: "\(peer.address)",
                        isRandom: peer.address.isRandom,
                        identifier: peer.identifier,
                        deviceName: peer.deviceName
                    )
                }
            }
        }
    }
}

extension DeviceAddress {
    /// Whether a device keeps the address: a public or a static random one (Vol 6, Part B, 1.3).
    fileprivate var isLasting: Bool { kind == .public || kind == .randomStatic }
}
