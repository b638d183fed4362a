import BluetoothTypes
import SMP
import Synchronization

extension BluetoothHost {
    /// The bonds, the one that was used last at the end.
    package func bondRecords() -> [BondRecord] {
        Array(bonds.records)
    }

    package func bondInformation() -> [BondInformation] {
        bonds.records.map { BondInformation($0) }
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

    /// Puts a bond that was made elsewhere into the table, in the place of one with the same peer. It is privileged, since
    /// the app wants it.
    ///
    /// Sign counters of the same keys never go back: the higher ones stay.
    package func importBond(_ record: BondRecord) throws(HostError) {
        var record = record
        record.isPrivileged = true
        if let existing = bonds[record.bond.identity] { record.bond.raiseCounters(to: existing.bond) }
        guard addBond(record) else { throw .security(.tooManyBonds(bonds.limit)) }
        bondWasAdded(record.bond)
        endInput()
    }

    /// Marks a bond, so that it stays when there are too many; or takes the mark away.
    ///
    /// - Returns: whether there is such a bond.
    @discardableResult
    package func setBondPrivileged(_ isPrivileged: Bool, _ identity: DeviceAddress) -> Bool {
        guard bonds[identity] != nil else { return false }
        updateRecord(of: identity) { $0.isPrivileged = isPrivileged }
        return true
    }

    /// Adds a bond to the table, in the place of another one where there are too many.
    ///
    /// - Returns: false where there are too many bonds, and none of them may be evicted.
    func addBond(_ record: BondRecord) -> Bool {
        let connected = Set(links.values.map(\.identity))
        switch bonds.insert(record, isInUse: { connected.contains($0) }) {
        case .refused: return false
        case .added: return true
        case .evicted(let identity):
            logger.notice("the bond with \(identity) was evicted: there are \(bonds.limit) bonds")
            emit(.bondRemoved(identity: identity))
            return true
        }
    }

    /// Removes the bond with a peer, and disconnects the peer: what its links are encrypted with is no longer known.
    ///
    /// The call returns once the removal is on the disk. Where it could not be saved, ``SecurityEvent/bondsNotKept`` was
    /// emitted.
    ///
    /// - Returns: whether there was such a bond.
    @discardableResult
    package func removeBond(_ identity: DeviceAddress) async -> Bool {
        let saving = OneTimeEvent()
        guard bonds.remove(identity, whenKept: { _ in saving.fire() }) != nil else { return false }
        bondsChanged()
        let affected = links.values.filter { $0.identity == identity }
        for link in affected { keysChanged(of: link) }
        emit(.bondRemoved(identity: identity))
        endInput()
        for link in affected { await disconnect(link.identifier, reason: .remoteUserTerminatedConnection) }
        await saving.wait()
        return true
    }

    /// There is a new bond, or another in the place of an old one.
    func bondWasAdded(_ bond: Bond) {
        bondsChanged()
        for link in links.values where link.identity == bond.identity { keysChanged(of: link) }
        if let record = bonds[bond.identity] { emit(.bondAdded(BondInformation(record))) }
    }

    // MARK: Observers

    /// Calls `observer` on the loop with each event of links' security and of bonds, until ``removeObserver(_:)``.
    package func observeSecurity(_ observer: @escaping @Sendable (SecurityEvent) -> Void) -> UInt64 {
        let identifier = makeIdentifier()
        if !hasEnded { securityObservers[identifier] = observer }
        return identifier
    }

    func emit(_ event: SecurityEvent) {
        for observer in securityObservers.keys { deliver(.securityEvent(observer, event)) }
    }
}

/// An event that happens once, on any thread, and that one task may wait for before or after.
private final class OneTimeEvent: Sendable {
    private enum State {
        case pending
        case awaited(CheckedContinuation<Void, Never>)
        case fired
    }

    private let state = Mutex(State.pending)

    func fire() {
        let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
            defer { state = .fired }
            if case .awaited(let waiter) = state { return waiter }
            return nil
        }
        waiter?.resume()
    }

    nonisolated(nonsending) func wait() async {
        await withCheckedContinuation { continuation in
            let hasFired = state.withLock { state in
                if case .fired = state { return true }
                state = .awaited(continuation)
                return false
            }
            if hasFired { continuation.resume() }
        }
    }
}
