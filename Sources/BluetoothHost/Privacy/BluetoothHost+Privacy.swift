import BluetoothTypes
import HCI

// Addresses in the controller: its random address and its resolving list. Both can be changed only while no activity
// uses them (Vol 4, Part E, 7.8.4 and 7.8.38). So the host pauses these activities during a change.
extension BluetoothHost {
    /// Whether a bonded peer that has a key for private addresses is received only under these (Vol 6, Part B, 4.7).
    package var usesNetworkPrivacy: Bool { configuration.privacyMode == .network }

    /// Sets up addresses in a controller that has just been reset.
    func prepareAddresses(_ information: ControllerInformation) async throws(CommandFailure) {
        privacy.forgetController()
        setResolvingKeys()
        renewPrivateAddress()
        if let address = wantedRandomAddress(information) { try await setRandomAddress(address) }
        // Peers may direct advertising to this host's private addresses only if the controller can resolve them.
        services.setAddressResolution(information.hasResolvingList)
        guard information.hasResolvingList else { return }
        privacy.list = Privacy.ResolvingList(capacity: information.resolvingListSize)
        if configuration.usesPrivateAddresses {
            let seconds = UInt16(clamping: privateAddressTimeout.components.seconds)
            do throws(CommandFailure) {
                try await perform(LESetResolvablePrivateAddressTimeout(rpaTimeout: seconds))
            } catch {
                try goOnUnlessAborted(error)
            }
        }
        try await updateResolvingList(information)
    }

    /// Starts a pass that changes the controller's random address and resolving list to the wanted state.
    func reconcileAddresses() {
        guard power == .on, privacy.reconciliation.request() else { return }
        spawn { await $0.runAddressReconciliation() }
    }

    private func runAddressReconciliation() async {
        while privacy.reconciliation.next() {
            guard power == .on, let information else { continue }
            let changesList = privacy.list.map { Array($0.entries.values) != wantedEntries($0, information) } ?? false
            let changesAddress = wantedRandomAddress(information) != privacy.randomAddress
            guard changesList || changesAddress else { continue }
            await hold(changesList || !information.usesExtendedCommands ? .everything : .scanningAndInitiating)
            if power == .on {
                do throws(CommandFailure) {
                    if let address = wantedRandomAddress(information), address != privacy.randomAddress {
                        try await setRandomAddress(address)
                    }
                    if changesList { try await updateResolvingList(information) }
                } catch {
                    logger.warning("the controller refused a change of addresses: \(error)")
                }
            }
            release()
        }
        // Legacy advertising waits for the end of this pass.
        reconcileAdvertising()
    }

    private func setRandomAddress(_ address: DeviceAddress) async throws(CommandFailure) {
        try await perform(LESetRandomAddress(randomAddress: address))
        privacy.randomAddress = address
    }

    // MARK: Holding

    private func hold(_ hold: Privacy.Hold) async {
        privacy.hold = hold
        reconcileScan()
        reconcileConnections()
        reconcileAdvertising()
        await withCheckedContinuation { continuation in
            privacy.restWaiters.append { continuation.resume() }
            resumeRestWaiters()
        }
    }

    private func release() {
        privacy.hold = .nothing
        reconcileConnections()
        reconcileScan()
        reconcileAdvertising()
    }

    /// Resumes the calls that wait until the paused activities have stopped. They also resume if the controller can no
    /// longer be used.
    func resumeRestWaiters() {
        guard !privacy.restWaiters.isEmpty, power != .on || isResting else { return }
        let waiters = privacy.restWaiters
        privacy.restWaiters = []
        for waiter in waiters { waiter() }
    }

    /// Whether the activities that a change of addresses pauses have stopped.
    var isResting: Bool {
        guard scanner.isResting, connector.isResting else { return false }
        return privacy.hold != .everything || advertiser.isResting
    }

    // MARK: Resolving list

    /// The wanted entries of the resolving list: this host itself, for the private addresses of its advertisements, and
    /// the bonded peers with keys. If not all peers fit, those to connect to or to advertise to come first, then the
    /// most recently used.
    private func wantedEntries(
        _ list: Privacy.ResolvingList,
        _ information: ControllerInformation
    ) -> [Privacy.Entry] {
        let localKey = configuration.usesPrivateAddresses ? bonds.identity.resolvingKey : 0
        var entries: [Privacy.Entry] = []
        if localKey != 0 {
            entries.append(Privacy.Entry(identity: information.identityAddress, peerKey: 0, localKey: localKey))
        }
        var keys: Set<UInt128> = []
        for identity in wantedPeers {
            guard let key = privacy.resolver.keys[identity], identity != information.identityAddress,
                keys.insert(key).inserted
            else { continue }
            entries.append(Privacy.Entry(identity: identity, peerKey: key, localKey: localKey))
        }
        let taken = entries.lazy.filter { !list.refused.contains($0) }.prefix(list.capacity)
        // The order is irrelevant to the controller, so existing entries keep their places.
        let isTaken = Set(taken)
        let present = list.entries.values.filter { isTaken.contains($0) }
        let isPresent = Set(present)
        return present + taken.filter { !isPresent.contains($0) }
    }

    private var wantedPeers: [DeviceAddress] {
        var peers: [DeviceAddress] = []
        for attempt in connector.attempts { peers += attempt.addresses.inOrder }
        for entry in advertiser.entries { if let peer = entry.configuration.peer { peers.append(peer) } }
        var known = Set(peers)
        for record in bonds.records.reversed() where known.insert(record.bond.identity).inserted {
            peers.append(record.bond.identity)
        }
        return peers
    }

    private func updateResolvingList(_ information: ControllerInformation) async throws(CommandFailure) {
        guard let list = privacy.list else { return }
        let wanted = wantedEntries(list, information)
        let kept = Set(wanted)
        for entry in list.entries.values where !kept.contains(entry) {
            do throws(CommandFailure) {
                try await perform(LERemoveDeviceFromResolvingList(peerIdentityAddress: entry.identity))
            } catch {
                try goOnUnlessAborted(error)
            }
            privacy.list?.entries[entry.identity] = nil
        }
        for entry in wanted where list.entries[entry.identity] != entry { try await add(entry, information) }
        try await setResolving(privacy.list?.entries.isEmpty == false)
        privacy.isMadeByController =
            privacy.list?.isResolving == true && privacy.list?.entries[information.identityAddress]?.localKey ?? 0 != 0
    }

    private func add(_ entry: Privacy.Entry, _ information: ControllerInformation) async throws(CommandFailure) {
        do throws(CommandFailure) {
            try await perform(
                LEAddDeviceToResolvingList(
                    peerIdentityAddress: entry.identity,
                    peerIRK: entry.peerKey,
                    localIRK: entry.localKey
                )
            )
            privacy.list?.entries[entry.identity] = entry
            guard information.commands.contains(LESetPrivacyMode.self) else { return }
            try await perform(
                LESetPrivacyMode(peerIdentityAddress: entry.identity, privacyMode: configuration.privacyMode)
            )
        } catch {
            try goOnUnlessAborted(error)
            if privacy.list?.entries[entry.identity] == nil { privacy.list?.refused.insert(entry) }
        }
    }

    private func setResolving(_ isResolving: Bool) async throws(CommandFailure) {
        guard privacy.list?.isResolving != isResolving else { return }
        do throws(CommandFailure) {
            try await perform(LESetAddressResolutionEnable(addressResolutionEnable: isResolving))
            privacy.list?.isResolving = isResolving
        } catch {
            try goOnUnlessAborted(error)
        }
    }

    /// Ignores a refusal by the controller: the host then resolves the addresses by itself.
    ///
    /// - Throws: the failure if the controller was reset or removed.
    private func goOnUnlessAborted(_ failure: CommandFailure) throws(CommandFailure) {
        if case .aborted = failure { throw failure }
        logger.info("the host resolves private addresses without the controller: \(failure)")
    }
}

extension ControllerInformation {
    /// Whether the controller resolves private addresses, within the size of its list.
    fileprivate var hasResolvingList: Bool {
        features.contains(.llPrivacy) && resolvingListSize > 0 && commands.contains(LEAddDeviceToResolvingList.self)
            && commands.contains(LERemoveDeviceFromResolvingList.self)
            && commands.contains(LESetAddressResolutionEnable.self)
    }
}
