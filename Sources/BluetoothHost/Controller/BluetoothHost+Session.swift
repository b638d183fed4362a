import BLEHCI
import BLEHCITransport
import BluetoothTypes

// The connection between the host and its controller session: inputs of the session, and their effects.
extension BluetoothHost {
    /// Whether the controller can be used.
    var power: ControllerSession.Power { session.power }

    /// The properties of the controller, from when it was last up.
    var information: ControllerInformation? { session.information }

    /// Returns the properties of a controller that is on.
    ///
    /// - Throws: ``HostError/closed`` after ``close()``, otherwise ``HostError/notReady`` unless the controller is on.
    func usableInformation() throws(HostError) -> ControllerInformation {
        guard let information, power == .on else { throw power == .closed ? .closed : .notReady }
        return information
    }

    /// Returns the properties of the controller, also during a recovery.
    ///
    /// - Throws: ``HostError/closed`` after ``close()``, otherwise ``HostError/notReady`` if the controller is off or
    ///   was never up.
    func latestInformation() throws(HostError) -> ControllerInformation {
        guard power != .closed else { throw .closed }
        guard power != .off, let information else { throw .notReady }
        return information
    }

    // MARK: Inputs

    /// Handles a failure of the controller. One that is on is brought up again.
    func controllerFailed(_ reason: String) {
        perform(session.failed(reason, at: loop.now))
    }

    /// Counts an ACL packet for an unknown link, and finds out once whether the controller has the link.
    func receivedStray(_ packet: RawSpan, of handle: ConnectionHandle) {
        metrics.strayPackets.increment()
        if session.strayData(handle, packet, at: loop.now) { setTimer(of: .session, to: session.deadline) }
    }

    /// Counts the end of an unknown link, and starts again what that link may have stopped.
    func endedUnknown(_ handle: ConnectionHandle) {
        metrics.strayPackets.increment()
        perform(session.unknownLinkEnded(handle, at: loop.now))
    }

    func transportEnded(_ error: TransportError, generation: UInt64) {
        checkTransportCallback()
        guard port.accepts(generation) else { return }
        let transport = port.remove()
        withExtendedLifetime(transport) {}
        if session.awaitsTransport(generation) {
            // It has ended before its start has returned.
            transportNotOpened(error)
        } else {
            perform(session.transportEnded("the connection to it was lost: \(error)", at: loop.now))
        }
        endInput()
    }

    private func transportNotOpened(_ error: TransportError) {
        port.setFailure(error)
        perform(session.transportNotOpened("\(error)", at: loop.now))
        guard power == .recovering else { return }
        for observer in observers.reopenings.keys {
            deliver(.action { [weak self] in self?.assumeIsolated { $0.observers.reopenings[observer]?(error) } })
        }
    }

    /// The error of the last attempt to open a transport; nil during an attempt, and after a successful one.
    package var openingFailure: TransportError? { port.failure }

    /// Calls `observer` on the loop with the error each time no transport to a lost controller can be opened, until
    /// ``removeObserver(_:)``. The host keeps trying.
    package func observeReopening(_ observer: @escaping @Sendable (TransportError) -> Void) -> UInt64 {
        let identifier = observers.makeIdentifier()
        if !calls.hasEnded { observers.add(identifier, observer) }
        return identifier
    }

    /// Tries at once to bring the controller up again, because it is there again. Does nothing unless it was lost.
    package func retryRecovery() {
        perform(session.retry(at: loop.now))
        endInput()
    }

    func sessionDeadlineReached() {
        perform(session.advance(to: loop.now))
    }

    // MARK: Effects

    /// Performs the effects of an input of the session.
    func perform(_ effects: [SessionEffect]) {
        for effect in effects { perform(effect) }
        setTimer(of: .session, to: session.deadline)
    }

    private func perform(_ effect: SessionEffect) {
        switch effect {
        case .openTransport(let generation):
            port.setFailure(nil)
            spawn { await $0.connectTransport(generation) }
        case .closeTransport: port.remove()?.close()
        case .send(let packet):
            metrics.packetsSent.increment()
            port.transport?.send(packet.rawSpan)
        case .commandFailed(let tag, let failure): commandFailed(tag, failure)
        case .loadBonds(let publicAddress): spawn { await $0.loadBonds(of: publicAddress) }
        case .prepareAddresses(let controller):
            loop.execute { self.assumeIsolated { $0.prepareAddresses(controller) } }
        case .ready(let information): controllerIsReady(information)
        case .finish(let call, let error): end(.task(call), error.map { .failure($0) } ?? .success(()))
        case .lost(let reason): controllerWasLost(reason)
        case .restartRoles: perform(gap.restartRoles(gapContext))
        case .report(let report): log(report)
        }
    }

    private func log(_ report: SessionReport) {
        switch report {
        case .optionalCommandFailed: logger.info("\(report)")
        case .unknownLinkEnded: logger.debug("\(report)")
        case .unanswered, .acceptsNoCommands, .failedDuringBringUp, .willRetry, .endingUnknownLink:
            logger.warning("\(report)")
        }
    }

    private func controllerIsReady(_ information: ControllerInformation) {
        sender.configure(packetLength: information.aclDataLength, packetCount: information.aclPacketCount)
        isochronous.sender.configure(packetLength: information.isoDataLength, packetCount: information.isoPacketCount)
        // The reset has turned off what an app had enabled.
        if isochronous.acceptsRequests { enableEvents(information.streamEvents.union(.cisRequest)) }
        emit(HostEvent.poweredOn(information))
        repeatLinkDefaults()
        perform(gap.controllerIsReady(gapContext))
    }

    private func controllerWasLost(_ reason: String) {
        logger.warning("controller failed: \(reason); bringing it up again")
        metrics.recoveries.increment()
        endAllStreams(.notReady, .controllerReset(reason))
        endAllLinks(.controllerReset(reason))
        endLinkDefaults(.notReady)
        perform(gap.controllerWasLost(gapContext))
        emit(HostEvent.resetting(reason: reason))
    }

    // MARK: Asynchronous steps

    private func connectTransport(_ generation: UInt64) async {
        guard session.awaitsTransport(generation), let open = port.open else { return }
        let transport: any Transport
        do throws(TransportError) {
            transport = try await open()
        } catch {
            guard session.awaitsTransport(generation) else { return }
            transportNotOpened(error)
            return endInput()
        }
        guard session.awaitsTransport(generation) else { return transport.close() }
        port.set(transport, generation)
        let receive = LoopFunction<RawSpan> { $0.receive($1, generation: generation) }
        transport.start(
            receiver: PacketReceiver(for: self) { receive($0, $1) },
            onEnd: { [weak self] error in
                self?.assumeIsolated { $0.transportEnded(error, generation: generation) }
            }
        )
        perform(session.transportOpened(at: loop.now))
        endInput()
    }

    /// Reads the stored state of the host on this controller, at the first bring-up. Later ones check that the state
    /// belongs to the controller.
    private func loadBonds(of publicAddress: DeviceAddress?) async {
        let (earlierProblem, earlierRefusal) = (bonds.problem, bonds.controller.refusal)
        let isFirst = !bonds.isLoaded
        if isFirst, let store = configuration.bondStore {
            let saved = await store.load(for: publicAddress)
            // If the host was closed during the load, it must not save: another host may use the store.
            guard session.awaitsBonds else { return }
            bonds.load(saved, problem: store.problem)
        }
        // Peers know a host with an address of its own by that address, whatever its controller is.
        let hasOwnAddress = configuration.identityAddress != nil
        let refusal = hasOwnAddress ? nil : bonds.controller.assign(publicAddress, hasBonds: bonds.count > 0)
        if let refusal, refusal != earlierRefusal { logger.error("\(refusal)") }
        if let problem = bonds.problem, problem != earlierProblem || bonds.controller.problem != nil {
            // The store reports what it finds itself.
            if !isFirst, problem != earlierProblem { logger.warning("\(problem)") }
            emit(HostEvent.stateUnavailable(reason: problem))
        }
        perform(bonds.begin())
        perform(
            session.bondsLoaded(
                identity: configuration.identityAddress ?? bonds.controller.publicAddress
                    ?? bonds.identity.staticAddress,
                obstacle: refusal ?? bonds.obstacle,
                at: loop.now
            )
        )
        endInput()
    }
}
