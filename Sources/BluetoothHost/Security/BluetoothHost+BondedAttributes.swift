import BLEATT
import BLEGATT
import BluetoothTypes

// The state of server and client that is saved with a bond. It is used only after the peer was verified.
extension BluetoothHost {
    /// Restores the saved state of a bonded peer.
    ///
    /// Called after a link was encrypted with the key of a bond, or a bond was made on it, and the link's security is
    /// published. Later calls for the same link only store the changes of the time in which the peer was not verified.
    /// They also repeat Service Changed if the peer has not confirmed it. If the client's knowledge of the peer's
    /// database has changed in that time, any device may have caused that, so the client learns the database again.
    ///
    /// The server restores the peer's configurations, and sends Service Changed if services have changed since the last
    /// connection. The client validates its cache of the peer's database. If the cache is valid, discovery uses it.
    func useBondedState(of link: Link, _ record: BondRecord) {
        let isFirst = link.att.useBondedState(record.serverState)
        if isFirst { performServerEffects(of: link) }
        keepServerState(of: link)
        if link.att.takeIsStoredCacheOutdated() {
            keepCache(nil, of: link)
            link.client.discardDatabase()
            performClientEffects(of: link)
            pumpClient(of: link)
        }
        // A confirmation does not count while the peer is not verified, and a change is not indicated to such a peer.
        if link.session.isServiceChangedOwed, !isServiceChangedPending(on: link) {
            indicateServiceChanged(.all, to: link)
        }
        // A central is rarely a server too, so its database is read only if there is a cache.
        if isFirst, link.role == .central || record.clientCache != nil {
            link.client.validate(record.clientCache)
            pumpClient(of: link)
        }
    }

    /// Whether the indication of the last change of the services is queued, or its confirmation is awaited.
    private func isServiceChangedPending(on link: Link) -> Bool {
        let revision = link.session.databaseRevision
        let isOfLastChange = { (call: ValueCall) in
            if case .serviceChanged(revision: revision) = call.caller { true } else { false }
        }
        if let call = link.att.indicationInFlight, isOfLastChange(call) { return true }
        return link.att.lanes.server.contains { item in
            if case .indication(let call) = item.work { isOfLastChange(call) } else { false }
        }
    }

    /// Saves the server's state of a verified peer.
    func keepServerState(of link: Link) {
        guard links[link.identifier] != nil else { return }
        perform(bonds.update(link.identity, .serverState(link.session.persistentState)))
    }

    /// Drops the saved cache of a bonded peer's database. If the peer is connected, its database is discovered again.
    ///
    /// - Returns: whether there is such a bond.
    @discardableResult
    package func discardDatabaseCache(of identity: DeviceAddress) -> Bool {
        guard bonds[identity] != nil else { return false }
        perform(bonds.update(identity, .clientCache(nil)))
        for link in links.values where link.identity == identity {
            link.client.discardDatabase()
            pumpClient(of: link)
        }
        endInput()
        return true
    }

    /// Drops the saved cache of the peer's database when a link ends, if the client has confirmed that the database has
    /// changed and the peer was not verified since. Any device may have sent that indication. But a server does not
    /// repeat it, and a cache without a hash would be used until the next one.
    func dropOutdatedCache(of link: Link) {
        guard let cache = record(for: link)?.clientCache, cache.hash == nil,
            link.att.takeIsStoredCacheOutdated() || link.client.hasConfirmedChange(of: cache)
        else { return }
        perform(bonds.update(link.identity, .clientCache(nil)))
    }

    /// Saves the client's cache of a verified peer's database.
    func keepCache(_ cache: DatabaseCache?, of link: Link) {
        guard links[link.identifier] != nil else { return }
        perform(bonds.update(link.identity, .clientCache(cache)))
    }
}
