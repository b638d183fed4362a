import ATT
import BluetoothTypes
import GATT

// What server and client remember of a peer comes with its bond, and with nothing less than the proof of its key.
extension BluetoothHost {
    /// To be called when a link has become encrypted with the key of a bond, or a bond was made on it, after its security is
    /// set. Called again for the same link, it does nothing.
    ///
    /// As a server, the host takes up what the peer had configured, and tells it of services that have changed meanwhile.
    /// As a client, it makes sure of the peer's database, and answers discovery from then on by what it knows.
    func linkBecameTrusted(_ link: Link, _ record: BondRecord) {
        guard link.att.becomeTrusted(restoring: record.serverState) else { return }
        performServerEffects(of: link)
        keepServerState(of: link)
        if link.session.isServiceChangedOwed { indicateServiceChanged(.all, to: link) }
        // The devices that connect to this one are hardly ever servers to it.
        if link.role == .central || record.clientCache != nil {
            link.client.trust(record.clientCache)
            pumpClient(of: link)
        }
    }

    /// Stores what the server remembers of a trusted peer.
    func keepServerState(of link: Link) {
        guard links[link.identifier] != nil else { return }
        perform(bonds.update(link.identity, .serverState(link.session.persistentState)))
    }

    /// Stores what the client remembers of a trusted peer.
    func keepCache(_ cache: DatabaseCache?, of link: Link) {
        guard links[link.identifier] != nil else { return }
        perform(bonds.update(link.identity, .clientCache(cache)))
    }
}
