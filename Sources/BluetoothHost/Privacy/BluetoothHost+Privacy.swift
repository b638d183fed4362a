import BluetoothTypes
import HCI

// Addresses in the controller: its random address and its resolving list. `AddressPlan` decides.
extension BluetoothHost {
    /// Whether a bonded peer that has a key for private addresses is received only under these (Vol 6, Part B, 4.7).
    package var usesNetworkPrivacy: Bool { configuration.privacyMode == .network }

    /// Sets up addresses in a controller that has just been reset.
    func prepareAddresses(_ information: ControllerInformation) async throws(CommandFailure) {
        setResolvingKeys()
        privacy.controllerWasReset(addressContext(information), &random)
        // Peers may direct advertising to this host's private addresses only if the controller can resolve them.
        services.setAddressResolution(information.hasResolvingList)
        while let next = privacy.nextCommand(addressContext(information)) {
            do throws(CommandFailure) {
                try await perform(next.command)
                privacy.finished(next.step, information)
            } catch {
                let effects = privacy.failed(next.step, error)
                guard error != .aborted, !effects.contains(.addressRefused(error)) else { throw error }
                perform(effects)
            }
        }
    }

    // MARK: Passes

    /// Has the address plan decide its next command.
    func reconcileAddresses() {
        guard power == .on, privacy.requestRun() else { return }
        spawn { $0.addressPass() }
    }

    private func addressPass() {
        guard power == .on, let information else { return }
        let hold = privacy.hold
        let next = privacy.nextCommand(addressContext(information))
        if privacy.hold > hold { activitiesArePaused() }
        if privacy.hold < hold { activitiesMayContinue() }
        if let next { return send(next.command, as: next.step) }
        // Legacy advertising waits for the end of the run.
        if !privacy.run.isRunning { reconcileAdvertising() }
        endInput()
    }

    /// Gives the address plan the reply to its command. What follows from the reply, and the next command, come after the
    /// jobs that wait on the loop already.
    func addressCommandEnded(_ step: GAPStep, _ failure: CommandFailure?) {
        var effects: [AddressEffect] = []
        if let failure {
            effects = privacy.failed(step, failure)
        } else if let information {
            privacy.finished(step, information)
        }
        loop.execute { [effects] in
            self.assumeIsolated { host in
                host.perform(effects)
                host.addressPass()
            }
        }
    }

    private func perform(_ effects: [AddressEffect]) {
        for effect in effects {
            switch effect {
            case .addressRefused(let failure):
                guard power == .on, let information else { continue }
                logger.warning("the controller refused a change of addresses: \(failure)")
                let addresses = privacy.ownAddresses(information)
                perform(advertiser.addressRefused(failure, addresses, at: loop.now))
            case .resolvedByHost(let failure):
                logger.info("the host resolves private addresses without the controller: \(failure)")
            }
        }
    }

    // MARK: Context

    private func addressContext(_ information: ControllerInformation) -> AddressPlan.Context {
        AddressPlan.Context(
            information: information,
            ownKey: bonds.identity.resolvingKey,
            legacyAdvertisingAddress: advertiser.legacyAddress,
            peers: wantedPeers,
            rest: power == .on ? restingActivities : .everything
        )
    }

    /// The peers that the controller should resolve: those to connect to or to advertise to come first, then the most
    /// recently used.
    private var wantedPeers: [DeviceAddress] {
        var peers: [DeviceAddress] = []
        for attempt in connector.attempts { peers += attempt.addresses.inOrder }
        peers += advertiser.peers
        var known = Set(peers)
        for record in bonds.records.reversed() where known.insert(record.bond.identity).inserted {
            peers.append(record.bond.identity)
        }
        return peers
    }

    // MARK: Paused activities

    private func activitiesArePaused() {
        reconcileScan()
        reconcileConnections()
        reconcileAdvertising()
        resumeRestWaiters()
    }

    private func activitiesMayContinue() {
        reconcileConnections()
        reconcileScan()
        reconcileAdvertising()
    }

    /// Lets the address plan continue if the paused activities rest.
    func resumeRestWaiters() {
        guard privacy.awaitsRest, power == .on, isResting else { return }
        privacy.rested()
        loop.execute { self.assumeIsolated { $0.addressPass() } }
    }

    /// Whether the activities that a change of addresses pauses have stopped.
    var isResting: Bool { restingActivities >= privacy.hold }

    private var restingActivities: AddressHold {
        guard scan.isResting, connector.isResting else { return .nothing }
        return advertiser.isResting ? .everything : .scanningAndInitiating
    }
}
