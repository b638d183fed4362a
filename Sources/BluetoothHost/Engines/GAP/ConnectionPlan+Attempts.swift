import BluetoothTypes

// The attempts of apps, and the peers that must be found by scanning.
extension ConnectionPlan {
    mutating func add(_ attempt: ConnectionAttempt) {
        attempts.append(attempt)
        guard attempt.subevent == nil else { return }
        for address in attempt.addresses.inOrder { queue.append(address) }
    }

    /// Removes and returns the attempts that a connection to a device with any of `addresses` fulfils.
    mutating func takeAttempts(forAnyOf addresses: Set<DeviceAddress>) -> [ConnectionAttempt] {
        takeAttempts { !$0.addresses.isDisjoint(with: addresses) }
    }

    /// Removes and returns an attempt that ends without a connection. Its addresses keep their places in the queue.
    mutating func takeAttempt(_ identifier: UInt64, at now: Instant) -> ConnectionAttempt? {
        takeAttempts(keepingPlacesAt: now) { $0.identifier == identifier }.first
    }

    mutating func takeAttempts(
        keepingPlacesAt now: Instant? = nil,
        where isTaken: (ConnectionAttempt) -> Bool
    ) -> [ConnectionAttempt] {
        let taken = attempts.filter(isTaken)
        guard !taken.isEmpty else { return [] }
        attempts.removeAll(where: isTaken)
        let wanted = attempts.reduce(into: Set()) { if $1.subevent == nil { $0.formUnion($1.addresses) } }
        queue.removeAll(except: wanted, keepingPlacesAt: now)
        foundPeers.removeAll { !wanted.contains($0.key) }
        return taken
    }

    /// Ends an attempt that has not led to a connection.
    mutating func endAttempt(_ identifier: UInt64, _ error: HostError, at now: Instant) -> [ConnectionEffect] {
        takeAttempt(identifier, at: now).map { [.fail($0, error), .run] } ?? []
    }

    /// Removes the attempts for an initiation that has failed.
    ///
    /// - Parameter applies: whether the failure applies to an attempt.
    mutating func failAttempts(
        for addresses: Set<DeviceAddress>,
        _ error: HostError,
        where applies: (ConnectionAttempt) -> Bool = { _ in true }
    ) -> [ConnectionEffect] {
        let peers = peers(at: addresses)
        return takeAttempts { !$0.addresses.isDisjoint(with: peers) && applies($0) }.map { .fail($0, error) } + [
            .run
        ]
    }

    /// Ends the turn of an attempt in a subevent, whose device has not answered. The others are next.
    mutating func nextSubeventTurn(
        after subevent: SubeventTarget,
        _ addresses: Set<DeviceAddress>
    ) -> [ConnectionEffect] {
        if let index = attempts.firstIndex(where: { $0.subevent == subevent && $0.addresses == addresses }) {
            attempts.append(attempts.remove(at: index))
        }
        return [.run]
    }

    /// Ends the attempts in the train of an advertisement, because it is stopped.
    mutating func advertisementEnded(_ advertisement: AdvertisementIdentifier) -> [ConnectionEffect] {
        let ended = takeAttempts { $0.subevent?.advertisement == advertisement }
        return ended.isEmpty ? [] : ended.map { .fail($0, .closed) } + [.run]
    }

    /// Whether attempts in subevents may wait for their trains.
    var hasSubeventAttempts: Bool { attempts.contains { $0.subevent != nil } }

    // MARK: Search

    /// The peers of an initiation to `addresses`: these addresses, and the identities of peers that were found at them.
    func peers(at addresses: Set<DeviceAddress>) -> Set<DeviceAddress> {
        foundPeers.isEmpty
            ? addresses : addresses.union(foundPeers.filter { addresses.contains($0.value.address) }.keys)
    }

    /// Whether an attempt for a peer waits until a scan finds it, provided that the peer must be found by scanning.
    func awaitsResolution(of peer: DeviceAddress) -> Bool {
        foundPeers[peer] == nil && attempts.contains { $0.subevent == nil && $0.addresses.contains(peer) }
    }

    /// Handles the private address at which a scan has found a peer. The controller connects to that address. It may
    /// change at any time, so the search starts again if no link results within a few seconds.
    mutating func found(_ peer: DeviceAddress, at address: DeviceAddress, _ now: Instant) {
        let lifetime = ConnectionPlan.foundPeerLifetimes[findCount % ConnectionPlan.foundPeerLifetimes.count]
        findCount += 1
        foundPeers[peer] = FoundPeer(address: address, deadline: now + lifetime)
        guard yieldsToScan else { return }
        // The turn of peers begins.
        yieldsToScan = false
        turnDeadline = nil
    }

    // MARK: Existing links

    /// Has the plan try again when this link has ended.
    mutating func retry(afterEndOf link: LinkIdentifier) {
        linksToAwait.insert(link)
    }

    /// Handles the end of a link.
    ///
    /// - Returns: whether an initiation waited for it.
    mutating func linkEnded(_ link: LinkIdentifier) -> Bool { linksToAwait.remove(link) != nil }
}
