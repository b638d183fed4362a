import BluetoothTypes
import SMP

extension BluetoothHost {
    /// The bonds, the one that was used last at the end.
    package func bondRecords() -> [BondRecord] {
        Array(bonds.records)
    }

    package func bondInformation() -> [BondInformation] {
        bonds.records.map { BondInformation($0.bond) }
    }

    /// What the link's peer and this host know of each other; nil where they are not bonded.
    func record(for link: Link) -> BondRecord? {
        bonds[link.identity]
    }

    /// Changes what is kept of a bonded peer, whether it is connected or not.
    ///
    /// - Parameter whenKept: is called, from anywhere, once the change will outlive the process, or with false where it
    ///   cannot be kept; not where nothing changes.
    @discardableResult
    func updateRecord(
        of identity: DeviceAddress,
        whenKept: (@Sendable (Bool) -> Void)? = nil,
        _ change: (inout BondRecord) -> Void
    ) -> Bool {
        bonds.update(identity, whenKept: whenKept, change)
    }

    /// Puts a bond that was made elsewhere into the table, in the place of one with the same peer.
    package func importBond(_ record: BondRecord) throws(HostError) {
        guard bonds.insert(record) else { throw .security(.tooManyBonds(bonds.limit)) }
        bondWasAdded(record.bond)
    }

    /// Forgets a bonded peer. Links to it end: what they are encrypted with is no longer known.
    ///
    /// - Returns: whether there was such a bond.
    @discardableResult
    package func removeBond(_ identity: DeviceAddress) async -> Bool {
        guard bonds.remove(identity) != nil else { return false }
        bondsChanged()
        let affected = links.values.filter { $0.identity == identity }
        for link in affected { keysChanged(of: link) }
        emit(.bondRemoved(identity: identity))
        for link in affected { await disconnect(link.identifier, reason: .remoteUserTerminatedConnection) }
        return true
    }

    /// There is a new bond, or another in the place of an old one.
    func bondWasAdded(_ bond: Bond) {
        bondsChanged()
        for link in links.values where link.identity == bond.identity { keysChanged(of: link) }
        emit(.bondAdded(BondInformation(bond)))
    }

    // MARK: Observers

    /// Calls `observer` on the loop with each event of links' security and of bonds, until ``removeObserver(_:)``.
    package func observeSecurity(_ observer: @escaping @Sendable (SecurityEvent) -> Void) -> UInt64 {
        let identifier = makeIdentifier()
        securityObservers[identifier] = observer
        return identifier
    }

    func emit(_ event: SecurityEvent) {
        for observer in securityObservers.values { observer(event) }
    }
}
