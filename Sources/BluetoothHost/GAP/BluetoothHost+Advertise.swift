import BluetoothTypes
import HCI

// The calls and events of advertising. `AdvertisingPlan` decides.
extension BluetoothHost {
    /// Starts an advertisement, which continues after connections and recoveries of the controller until it is stopped.
    ///
    /// - Throws: ``HostError/cancelled`` at once if the task is cancelled. The advertisement is then stopped, or never starts.
    package func startAdvertising(
        _ configuration: AdvertisementConfiguration
    ) async throws(HostError) -> AdvertisementIdentifier {
        let identifier = AdvertisementIdentifier(value: makeIdentifier())
        try await wait(for: .startOfAdvertisement(identifier)) { host, call in
            do throws(HostError) {
                try host.begin(identifier, configuration, for: call)
            } catch {
                host.end(call, .failure(error))
            }
        }
        return identifier
    }

    private func begin(
        _ identifier: AdvertisementIdentifier,
        _ configuration: AdvertisementConfiguration,
        for call: CallToken
    ) throws(HostError) {
        guard power != .closed else { throw .closed }
        guard power != .off, let information else { throw .notReady }
        try advertiser.start(identifier, configuration, information, for: call)
        // The controller has one random address for all legacy advertising.
        if configuration.address != nil, !information.usesExtendedCommands { reconcileAddresses() }
        reconcileAdvertising()
    }

    /// Stops an advertisement; connections made through it stay. Cancelling the task ends the wait; the advertisement is
    /// stopped nevertheless.
    package func stopAdvertising(_ identifier: AdvertisementIdentifier) async {
        endAdvertisement(identifier)
        _ = try? await wait(for: .endOfAdvertisement(identifier)) { host, call in
            if !host.advertiser.awaitEnd(of: identifier, call) { host.end(call, .success(())) }
        }
    }

    func endAdvertisement(_ identifier: AdvertisementIdentifier) {
        perform(advertiser.stop(identifier, isOn: power == .on))
        reconcileAdvertising()
    }

    // MARK: Passes

    /// Has the advertising plan decide its next command.
    func reconcileAdvertising() {
        guard power == .on, advertiser.requestRun() else { return }
        spawn { $0.advertisingPass() }
    }

    private func advertisingPass() {
        guard power == .on, let information else { return }
        let context = AdvertisingPlan.Context(
            information: information,
            addresses: privacy.ownAddresses(information)
        )
        if let next = advertiser.nextCommand(context, &privacy.resolver, &random) {
            send(next.command, as: next.step)
        } else {
            resumeRestWaiters()
            endInput()
        }
    }

    /// Gives the advertising plan the reply to its command. What follows from the reply, and the next command, come after
    /// the jobs that wait on the loop already.
    func advertisingCommandEnded(_ step: GAPStep, _ failure: CommandFailure?) {
        let effects =
            if let failure {
                advertiser.failed(step, failure, at: loop.now, hasLinks: !links.isEmpty)
            } else {
                advertiser.finished(step, at: loop.now)
            }
        loop.execute {
            self.assumeIsolated { host in
                host.perform(effects)
                host.advertisingPass()
            }
        }
    }

    func advertisingDeadlineReached() {
        perform(advertiser.advance(to: loop.now))
        reconcileAdvertising()
    }

    // MARK: Effects

    /// Performs the effects of an input of the advertising plan, and sets the timer for its deadline.
    func perform(_ effects: [AdvertisingEffect]) {
        setTimer(of: .advertising, to: advertiser.deadline)
        for effect in effects { perform(effect) }
    }

    private func perform(_ effect: AdvertisingEffect) {
        switch effect {
        case .finish(let call, let error): end(call, error.map { .failure($0) } ?? .success)
        case .reconsiderAddresses: reconcileAddresses()
        case .ownAddressKnown(let handle, let address):
            guard let link = links[handle], link.role == .peripheral, !link.facts.hasAddressOfController,
                let address = address ?? information?.identityAddress
            else { return }
            inform(link) { security, context in security.contextChanged(ownAddress: address, &context) }
        case .retryLater(let failure): logger.warning("an advertisement is off: \(failure); trying again")
        case .ignore(let failure): logger.debug("\(failure)")
        }
    }

    // MARK: Events

    /// Handles the end of legacy advertising by the connection that it caused (Vol 4, Part E, 7.8.9).
    func advertisingEndedByConnection() {
        guard information?.usesExtendedCommands == false else { return }
        advertiser.endedByConnection()
        reconcileAdvertising()
    }

    func advertisingSetTerminated(_ event: LEAdvertisingSetTerminated) {
        let connection = event.status == .success ? event.connectionHandle : nil
        perform(advertiser.terminated(event.advertisingHandle, by: connection))
        reconcileAdvertising()
    }

    /// Starts advertisements again, in case the controller ended them unnoticed.
    func refreshAdvertising() {
        guard power == .on else { return }
        advertiser.refresh()
        reconcileAdvertising()
    }

    /// Tries blocked advertisements again after a link has ended: the controller may be able to advertise now.
    func retryBlockedAdvertising() {
        advertiser.linkEnded()
        reconcileAdvertising()
    }
}
