import BluetoothTypes
import SMP

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

    /// Adds a bond that was made elsewhere, or replaces one with the same peer. It is privileged, because the app wants it.
    ///
    /// Sign counters of the same keys never decrease: the higher ones stay.
    package func importBond(_ record: BondRecord) throws(HostError) {
        let effects: [BondEffect]
        do throws(SecurityError) {
            effects = try bonds.insert(record, inUse: connectedIdentities)
        } catch {
            throw .security(error)
        }
        perform(effects)
        endInput()
    }

    /// The identities of the peers, whose bonds are not evicted.
    var connectedIdentities: Set<DeviceAddress> { Set(links.values.map(\.identity)) }

    /// Marks a bond, so that it stays when there are too many; or removes the mark.
    ///
    /// - Returns: whether there is such a bond.
    @discardableResult
    package func setBondPrivileged(_ isPrivileged: Bool, _ identity: DeviceAddress) -> Bool {
        guard bonds[identity] != nil else { return false }
        perform(bonds.update(identity, .privileged(isPrivileged)))
        return true
    }

    /// Removes the bond with a peer and disconnects the peer, because the key of its links is no longer known. Operations
    /// that wait for the peer's identity end: they are not sent to a peer that is not verified.
    ///
    /// The call returns once the removal is on the disk. If it could not be saved, ``SecurityEvent/bondsNotKept`` was
    /// emitted.
    ///
    /// - Returns: whether there was such a bond.
    @discardableResult
    package func removeBond(_ identity: DeviceAddress) async -> Bool {
        guard bonds[identity] != nil else { return false }
        let saving = calls.reserve(.other)
        let peers = links.values.filter { $0.identity == identity }
        for link in peers {
            beginDisconnection(of: link, .remoteUserTerminatedConnection)
            let error = HostError.disconnected(.controller(.connectionTerminatedByLocalHost))
            inform(link) { security, context in security.linkWillEnd(error, &context) }
        }
        perform(bonds.remove(identity, notifying: .call(saving)))
        endInput()
        for link in peers { try? await waitForEnd(of: link.identifier) }
        // If the removal is saved by now, the call has ended, and the continuation is resumed at once.
        _ = await withUnsafeContinuation { (continuation: UnsafeContinuation<CallOutcome, Never>) in
            _ = calls.begin(saving, continuation)
        }
        return true
    }

    // MARK: Effects

    /// Does what a change of the bonds requires.
    func perform(_ effects: [BondEffect]) {
        for effect in effects { perform(effect) }
    }

    private func perform(_ effect: BondEffect) {
        switch effect {
        case .save(let security, let number): save(security, number)
        case .gather(let security): configuration.bondStore?.gather(security)
        case .bondChanged(let identity):
            bondsChanged()
            for link in links.values where link.identity == identity { keysChanged(of: link) }
        case .evicted(let identity):
            logger.notice("the bond with \(identity) was evicted: there are \(bonds.limit) bonds")
            emit(.bondRemoved(identity: identity))
        case .finish(let waiter, let isSaved): finish(waiter, isSaved)
        case .report(let event): emit(event)
        }
    }

    private func save(_ security: KeptSecurity, _ number: UInt64?) {
        configuration.bondStore?.keep(security) { [weak self] isSaved in
            guard number != nil || !isSaved else { return }
            self?.spawn { host in
                host.perform(host.bonds.saved(number, isSaved))
                host.endInput()
            }
        }
    }

    private func finish(_ waiter: SaveWaiter, _ isSaved: Bool) {
        switch waiter {
        case .call(let call):
            let result: Result<Void, HostError> =
                isSaved ? .success(()) : .failure(.stateUnavailable("the change could not be saved"))
            end(call, result)
        case .signedWrite(let number, let link):
            // Without a store, the PDU is still being received.
            if turn.phase == .idle {
                counterWasStored(isSaved, of: number, on: link)
            } else {
                spawn { $0.counterWasStored(isSaved, of: number, on: link) }
            }
        }
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
