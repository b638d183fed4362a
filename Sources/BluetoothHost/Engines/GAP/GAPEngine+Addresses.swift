import BLEHCI
import BluetoothTypes

extension GAPEngine {
    /// Maximum number of ``addressesOfComingLinks``.
    static let comingLinkLimit = 16

    // MARK: Own addresses

    /// This host's address on a new link. The controller itself may have used another private address.
    ///
    /// It changes nothing; see ``deadline(isOn:)`` for why it is `mutating`.
    mutating func addressOfNewLink(
        _ handle: ConnectionHandle,
        isFromAdvertisement: Bool,
        _ controller: ControllerInformation
    ) -> DeviceAddress {
        let address = addresses.addressOfNewLink(controller)
        guard isFromAdvertisement else { return address }
        return addressesOfComingLinks[handle]
            ?? advertising.addressOfNewLink(own: address, usesExtendedCommands: controller.usesExtendedCommands)
    }

    /// Records this host's address on a link that the controller has not reported yet. Some controllers report the end
    /// of the advertising set before the link.
    mutating func setAddress(_ address: DeviceAddress, ofComingLink handle: ConnectionHandle) {
        addressesOfComingLinks[handle] = address
        if addressesOfComingLinks.count > GAPEngine.comingLinkLimit { addressesOfComingLinks.removeFirst() }
    }

    /// Replaces this host's private addresses before their time, because the encryption of a link has failed.
    ///
    /// - Parameter peer: the identity address of the link's peer.
    mutating func discardAddresses(
        towards peer: DeviceAddress,
        _ context: GAPContext,
        _ random: inout some RandomNumberGenerator
    ) -> [GAPEffect] {
        if let controller = context.controller {
            let identities = [controller.identityAddress, peer]
            if addresses.discard(entriesOf: identities, at: context.now, context.ownKey, &random) {
                requestAddressPass(context)
                requestAdvertisingPass(context)
            }
        }
        return takeEffects()
    }

    // MARK: Peers

    /// The identity address of a device that uses `address`, if a bond has its key; otherwise `address` itself.
    mutating func identity(of address: DeviceAddress) -> DeviceAddress {
        addresses.identity(of: address)
    }

    /// Whether packets of a peer are ignored in network privacy mode: see ``AddressPlan/isSilenced(_:)``.
    ///
    /// - Parameter address: the address as it was received.
    func isSilenced(_ address: DeviceAddress) -> Bool { addresses.isSilenced(address) }

    /// Handles a change of the bonds: private addresses are resolved with their keys from now on.
    mutating func bondsChanged(_ context: GAPContext) -> [GAPEffect] {
        setResolvingKeys(context)
        requestAddressPass(context)
        requestScanPass(context)
        requestConnectionPass(context)
        return takeEffects()
    }

    private mutating func setResolvingKeys(_ context: GAPContext) {
        // The most recently used peer is the most likely to appear again.
        addresses.resolver.setKeys(
            context.bonds.reversed().compactMap { record in
                record.bond.identityResolvingKey.map { AddressResolver.Key(identity: record.bond.identity, value: $0) }
            }
        )
    }

    // MARK: Set-up

    /// Begins to set up addresses in a controller that has just been reset. The end is reported by
    /// ``GAPEffect/addressesPrepared(_:)``.
    mutating func prepareAddresses(
        _ controller: ControllerInformation,
        _ context: GAPContext,
        _ random: inout some RandomNumberGenerator
    ) -> [GAPEffect] {
        // The keys are set first: the wanted entries of the list depend on them.
        setResolvingKeys(context)
        addresses.controllerWasReset(addressContext(controller, context), &random)
        // Peers may direct advertising to this host's private addresses only if the controller can resolve them.
        add(.setAddressResolution(isSupported: addresses.canListPeers(controller)))
        // Recorded before the pass, which would otherwise do nothing while the controller is off.
        preparation = Preparation(controller: controller)
        addressPass(context)
        return takeEffects()
    }

    private mutating func prepare(_ preparation: Preparation, _ context: GAPContext) {
        if preparation.failure == nil {
            if let next = addresses.nextCommand(addressContext(preparation.controller, context)) {
                return add(.send(next))
            }
            // The controller has not answered.
            if addresses.run.isRunning { return }
        }
        self.preparation = nil
        add(.addressesPrepared(preparation.failure))
    }

    // MARK: Passes

    /// Requests a pass of the address plan.
    mutating func requestAddressPass(_ context: GAPContext) {
        if context.isOn, addresses.requestRun() { add(.schedulePass(.addresses)) }
    }

    mutating func addressPass(_ context: GAPContext) {
        if let preparation { return prepare(preparation, context) }
        guard let controller = context.controller else { return }
        let holdBefore = addresses.hold
        let next = addresses.nextCommand(addressContext(controller, context))
        if addresses.hold > holdBefore { pauseActivities(context) }
        if addresses.hold < holdBefore { resumeActivities(context) }
        if let next { return add(.send(next)) }
        // Legacy advertising waits for the end of the run.
        if !addresses.run.isRunning { requestAdvertisingPass(context) }
    }

    mutating func addressCommandEnded(_ step: GAPStep, _ failure: CommandFailure?, _ context: GAPContext) {
        // Without either, the controller was lost: `controllerWasLost` or the next set-up forgets the command.
        guard let controller = preparation?.controller ?? context.controller else { return }
        guard let failure else { return addresses.finished(step, controller) }
        if preparation != nil, failure == .aborted, addresses.isWaiting(for: step) { preparation?.failure = failure }
        for effect in addresses.failed(step, failure) { perform(effect, context) }
    }

    private mutating func perform(_ effect: AddressEffect, _ context: GAPContext) {
        switch effect {
        case .addressRefused(let failure):
            if preparation != nil {
                preparation?.failure = failure
            } else if let controller = context.controller {
                add(.report(.addressRefused(failure)))
                let addresses = addresses.ownAddresses(controller)
                perform(advertising.addressRefused(failure, addresses, at: context.now), context)
            }
        case .resolvedByHost(let failure):
            // After a reset, the next set-up publishes it again.
            guard failure != .aborted else { return }
            if let controller = preparation?.controller ?? context.controller {
                add(.setAddressResolution(isSupported: addresses.canListPeers(controller)))
            }
            add(.report(.resolvedByHost(failure)))
        }
    }

    private func addressContext(_ controller: ControllerInformation, _ context: GAPContext) -> AddressPlan.Context {
        AddressPlan.Context(
            information: controller,
            ownKey: context.ownKey,
            legacyAdvertisingAddress: advertising.legacyAddress,
            peers: peersToResolve(context),
            rest: preparation == nil ? restingActivities : .everything
        )
    }

    /// The peers that the controller should resolve: those to connect to or to advertise to come first, then the most
    /// recently used.
    private func peersToResolve(_ context: GAPContext) -> [DeviceAddress] {
        var peers: [DeviceAddress] = []
        for attempt in connecting.attempts { peers += attempt.addresses.inOrder }
        peers += advertising.peers
        var known = Set(peers)
        for record in context.bonds.reversed() where known.insert(record.bond.identity).inserted {
            peers.append(record.bond.identity)
        }
        return peers
    }

    // MARK: Paused activities

    /// Has the plans stop the activities that the address plan holds.
    private mutating func pauseActivities(_ context: GAPContext) {
        requestScanPass(context)
        requestConnectionPass(context)
        requestAdvertisingPass(context)
        requestSynchronizationPass(context)
        continueWithAddressesIfAtRest(context)
    }

    /// Has the plans start again the activities that the address plan no longer holds.
    private mutating func resumeActivities(_ context: GAPContext) {
        requestConnectionPass(context)
        requestScanPass(context)
        requestAdvertisingPass(context)
        requestSynchronizationPass(context)
    }

    /// Schedules an address pass if the address plan waits for rest and the held activities rest. Called when an
    /// activity may have come to rest.
    mutating func continueWithAddressesIfAtRest(_ context: GAPContext) {
        guard canContinueWithAddresses, context.isOn else { return }
        addresses.rested()
        add(.schedulePass(.addresses))
    }

    /// Whether the address plan waits for rest, and the held activities rest.
    var canContinueWithAddresses: Bool { addresses.awaitsRest && restingActivities >= addresses.hold }

    private var restingActivities: AddressHold {
        guard scanning.isResting, connecting.isResting else { return .nothing }
        return advertising.isResting && synchronizing.isResting ? .everything : .scanningAndInitiating
    }
}
