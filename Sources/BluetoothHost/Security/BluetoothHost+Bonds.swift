import BLESMP
import BluetoothTypes

extension BluetoothHost {
    /// Returns all bonds, the least recently used first.
    package func bondRecords() -> [BondRecord] {
        Array(bonds.records)
    }

    package func bondInformation() -> [BondInformation] {
        bonds.records.map { BondInformation($0) }
    }

    /// Returns the bond with the link's peer; nil if the devices are not bonded.
    func record(for link: Link) -> BondRecord? {
        bonds[link.identity]
    }

    /// The identity addresses of the connected peers. Their bonds are not evicted.
    var connectedIdentities: Set<DeviceAddress> { Set(links.values.map(\.identity)) }

    /// Marks a bond as privileged, or removes the mark. A privileged bond stays when there are too many bonds.
    ///
    /// - Returns: whether there is such a bond.
    @discardableResult
    package func setBondPrivileged(_ isPrivileged: Bool, _ identity: DeviceAddress) -> Bool {
        guard bonds[identity] != nil else { return false }
        perform(bonds.update(identity, .privileged(isPrivileged)))
        return true
    }

    /// Saves the key of a bonded peer's encrypted advertising data.
    ///
    /// - Returns: whether the link's peer is bonded, and has verified its identity on this link.
    @discardableResult
    package func setAdvertisingKey(_ key: EncryptedDataKeyMaterial, of link: LinkIdentifier) -> Bool {
        guard let link = try? self.link(link), link.security.isIdentityVerified, bonds[link.identity] != nil else {
            return false
        }
        perform(bonds.update(link.identity, .advertisingKey(key)))
        return true
    }

    /// The keys of encrypted advertising data, by the identity addresses of the bonded peers.
    package func advertisingKeys() -> [DeviceAddress: EncryptedDataKeyMaterial] {
        var keys: [DeviceAddress: EncryptedDataKeyMaterial] = [:]
        for record in bonds.records { keys[record.bond.identity] = record.advertisingKey }
        return keys
    }

    /// Removes the bond with a peer and disconnects the peer, because this host no longer has the key of its links.
    ///
    /// Operations that wait for the peer's identity end, and are not sent.
    ///
    /// The call returns once the removal is on the disk. If it could not be saved, ``SecurityEvent/bondsNotSaved`` was
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
            inform(link) { security, context in security.disconnectionBegan(error, &context) }
        }
        perform(bonds.remove(identity, notifying: .call(saving)))
        endInput()
        for link in peers { try? await waitForEnd(of: link.identifier) }
        // If the removal is saved by now, the continuation is resumed at once.
        _ = await CallContinuation.wait { continuation in
            _ = calls.begin(saving, continuation)
        }
        return true
    }

    // MARK: Effects

    /// Performs the effects of a change of the bonds.
    func perform(_ effects: [BondEffect]) {
        for effect in effects { perform(effect) }
    }

    private func perform(_ effect: BondEffect) {
        switch effect {
        case .save(let security, let number): save(security, number)
        case .saveSoon(let security): configuration.bondStore?.saveSoon(security)
        case .bondChanged(let identity):
            perform(gap.bondsChanged(gapContext))
            for link in links.values where link.identity == identity { keysChanged(of: link) }
        case .evicted(let identity):
            logger.notice("the bond with \(identity) was evicted: there are \(bonds.limit) bonds")
            emit(.bondRemoved(identity: identity))
        case .finish(let waiter, let isSaved): finish(waiter, isSaved)
        case .report(let event): emit(event)
        }
    }

    private func save(_ security: HostSecurityState, _ number: UInt64?) {
        configuration.bondStore?.save(security) { [weak self] isSaved in
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
        let identifier = observers.makeIdentifier()
        if !calls.hasEnded { observers.add(identifier, observer) }
        return identifier
    }

    func emit(_ event: SecurityEvent) {
        for observer in observers.security.keys { deliver(.securityEvent(observer, event)) }
    }
}
