import BluetoothTypes
import HCI
import L2CAP

/// The caller of an attempt to connect.
enum ConnectionCaller {
    /// A suspended task, which is resumed at once.
    case task(CallToken)
    /// A closure of an app.
    case callback(@Sendable (Result<LinkIdentifier, HostError>) -> Void)
}

// Initiation of connections by the controller: how the host drives the plan of it.
extension BluetoothHost {
    /// Has the plan bring the controller's initiation to what the attempts need.
    func reconcileConnections() {
        armConnectionTimer()
        guard power == .on else { return }
        // Scanning may have waited for an initiation that the controller no longer runs.
        guard connector.mayInitiate else { return reconcileScan() }
        if connector.requestRun() { spawn { $0.runConnectionPlan() } }
    }

    /// Sends the plan's next command. If there is none, a change of addresses may begin that waits for initiating.
    private func runConnectionPlan() {
        guard power == .on, let information else {
            connector.endRun()
            return resumeRestWaiters()
        }
        let context = connectionContext(information)
        let isBeforeInitiation = connector.isBeforeInitiation
        let next = connector.nextCommand(context, at: loop.now)
        if isBeforeInitiation { reconcileScan() }
        if let next { send(next.command, as: next.step) } else { resumeRestWaiters() }
        armConnectionTimer()
        endInput()
    }

    func connectionContext(_ information: ControllerInformation) -> ConnectionPlan.Context {
        let isScanWanted = !scan.scans.isEmpty || isSeekingPeers
        return ConnectionPlan.Context(
            usesExtendedCommands: information.usesExtendedCommands,
            ownAddressType: ownAddressType,
            acceptListSize: information.filterAcceptListSize,
            isHeld: privacy.hold != .nothing,
            unresolvedPeers: unresolvedPeers,
            peersWithIdentityTypes: peersWithIdentityTypes(information),
            isScanning: !scan.isResting,
            canInitiateWhileScanning: information.canScanWhileInitiating(actively: scan.mayScanActively),
            isScanKeptWaiting: isScanWanted
                && !information.canScanWhileInitiating(actively: scan.wanted?.isActive ?? false)
        )
    }

    /// Gives the plan the reply to its command, and has it decide the next one.
    func connectionCommandEnded(_ step: GAPStep, _ failure: CommandFailure?) {
        spawn { $0.runConnectionPlan() }
        if let failure {
            logger.debug("\(failure)")
            perform(connector.failed(step, failure, at: loop.now))
        } else {
            connector.finished(step, at: loop.now)
            armConnectionTimer()
        }
    }

    func perform(_ effects: [ConnectionEffect]) {
        var hasFailed = false
        for effect in effects {
            switch effect {
            case .fail(let attempt, let error):
                end(attempt, .failure(error))
                reportAgain(attempt.addresses)
                hasFailed = true
            case .useExistingLink(let addresses): useExistingLink(to: addresses)
            case .run: reconcileConnections()
            case .runScan: reconcileScan()
            }
        }
        if hasFailed, scan.isSeeking { reconcileScan() }
        armConnectionTimer()
    }

    // MARK: Peers

    /// The peers of attempts that must be found by scanning.
    private var unresolvedPeers: Set<DeviceAddress> {
        guard !privacy.resolver.keys.isEmpty else { return [] }
        return connector.attempts.reduce(into: []) { $0.formUnion($1.addresses.filter { mustBeSought($0) }) }
    }

    /// The peers of attempts that are named by identity address types. On controllers without privacy modes, these types
    /// say that the peer uses private addresses (Vol 4, Part E, 7.8.12).
    private func peersWithIdentityTypes(_ information: ControllerInformation) -> Set<DeviceAddress> {
        guard let list = privacy.list, list.isResolving, !information.commands.contains(LESetPrivacyMode.self) else {
            return []
        }
        return connector.attempts.reduce(into: []) { $0.formUnion($1.addresses.filter { list.resolves($0) }) }
    }

    // MARK: Outcomes

    /// Handles the controller's answer that a link to one of `addresses` exists. The link is used, or has to end first.
    private func useExistingLink(to addresses: Set<DeviceAddress>) {
        guard let link = links.values.first(where: { $0.isWith(anyOf: addresses) }) else {
            return controllerFailed("it has a connection that it did not report")
        }
        guard link.isEnding || !link.countsAsConnection else {
            fulfilAttempts(with: link)
            return reconcileConnections()
        }
        // A peer that claims to be bonded verifies its identity, or its link is ended after a timeout.
        if !link.isEnding, link.security.state.waiting.isEmpty { verifyIdentity(of: link) }
        guard connector.block(by: link.identifier) else { return }
        let identifier = link.identifier
        link.endObservers[makeIdentifier()] = .host { [weak self] _ in
            self?.assumeIsolated { host in
                host.connector.unblock(identifier)
                host.reconcileConnections()
            }
        }
    }

    /// Gives a link to the callers that wait for a connection to its peer.
    ///
    /// - Returns: whether there were any.
    @discardableResult
    private func fulfilAttempts(with link: Link) -> Bool {
        let attempts = connector.takeAttempts(forAnyOf: link.addresses)
        for attempt in attempts { end(attempt, .success(link.identifier)) }
        return !attempts.isEmpty
    }

    /// Gives a link to the callers that wait for a connection to its peer, if it counts as one from now on.
    func linkMayFulfilAttempts(_ link: Link) {
        guard !connector.attempts.isEmpty, !link.isEnding, link.countsAsConnection, fulfilAttempts(with: link) else {
            return
        }
        reconcileConnections()
        reconcileScan()
    }

    /// Ends all attempts.
    func endAttempts(_ error: HostError) {
        for attempt in connector.takeAllAttempts() { end(attempt, .failure(error)) }
        armConnectionTimer()
    }

    /// Delivers the outcome of an attempt to connect.
    private func end(_ attempt: ConnectionAttempt, _ result: Result<LinkIdentifier, HostError>) {
        switch connectionCallers.removeValue(forKey: attempt.identifier) {
        case .task(let call):
            switch result {
            case .success(let identifier):
                // Counted here, so that another caller's release cannot end the link before this caller receives it.
                links[identifier]?.control.hold()
                end(call, .connected(identifier))
            case .failure(let error): end(call, .failure(error))
            }
        case .callback(let completion): deliver(.connection(completion, result))
        case nil: break
        }
    }

    // MARK: Events

    func connectionCompleted(_ connection: NewConnection) {
        // If the host has given up the controller, pending events end with the reset.
        guard power == .on else { return }
        guard connection.status == .success else {
            let isCentral = connection.role == .central
            return perform(connector.connectionFailed(connection.status, asCentral: isCentral, at: loop.now))
        }
        if links[connection.handle] != nil {
            endLink(connection.handle, .controllerReset("it used connection handle \(connection.handle) twice"))
        }
        let link = addLink(connection)
        if connection.peerPrivateAddress == nil, isSilencedByPrivacy(connection.peerAddress) {
            // The link exists already and can only be ended.
            giveUp(link, .controller(.authenticationFailure), telling: .authenticationFailure)
        }
        let isWanted = !link.isEnding && link.countsAsConnection && fulfilAttempts(with: link)
        switch link.role {
        case .central:
            connector.connected(at: loop.now)
            if !isWanted { giveUp(link, .controller(.connectionTerminatedByLocalHost)) }
        case .peripheral:
            advertisingEndedByConnection()
        }
        reconcileConnections()
        reconcileScan()
    }

    /// Cancels the controller's initiation and starts it again, in case the controller ended it without the host's
    /// knowledge.
    func restartInitiating() {
        perform(connector.restartInitiating())
    }

    /// Records that the controller was reset and initiates nothing.
    func forgetInitiation() {
        connector.controllerLost(at: loop.now)
        armConnectionTimer()
    }

    // MARK: Scanning and time

    /// Handles the end of a run of the plan of scanning: the controller scans as requested, so initiating may begin.
    func scanPassEnded() {
        if connector.scanPassEnded() { reconcileConnections() }
    }

    /// Sets the timer to the plan's deadline.
    func armConnectionTimer() {
        setTimer(of: .connecting, to: connector.deadline)
    }

    func connectionDeadlineReached() {
        let context = power == .on ? information.map { connectionContext($0) } : nil
        perform(connector.advance(to: loop.now, context))
    }
}
