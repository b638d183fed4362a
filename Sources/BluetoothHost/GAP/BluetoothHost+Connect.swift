import BluetoothTypes
import HCI
import L2CAP

extension BluetoothHost {
    /// Connects to the first of `addresses` that is found. Without a timeout, waits indefinitely.
    ///
    /// If an address is already connected, returns that link, whichever side initiated it: two devices have one link,
    /// and attributes are accessible in both directions. If a peer connected with a bonded device's address, that link
    /// is returned only once the peer has verified its identity by encryption. Cancelling the task ends the attempt.
    /// Attempts continue after a recovery of the controller.
    package func connect(
        toAnyOf addresses: Set<DeviceAddress>,
        parameters: ConnectionParameters,
        timeout: Duration?
    ) async throws(HostError) -> LinkIdentifier {
        guard !addresses.isEmpty else { throw .invalidArgument("no address to connect to") }
        guard parameters.isValid else { throw .invalidArgument("connection parameters out of range") }
        let identifier = makeIdentifier()
        let outcome = try await wait(for: .connection(attempt: identifier)) { host, call in
            guard host.power != .closed else { return host.end(call, .failure(.closed)) }
            guard host.power != .off else { return host.end(call, .failure(.notReady)) }
            // The private address of a bonded peer is replaced by its identity, because the private address may change
            // soon.
            let addresses = Set(addresses.map { host.identity(of: $0) })
            let link = host.links.values.first {
                !$0.isEnding && $0.countsAsConnection && $0.isWith(anyOf: addresses)
            }
            if let link {
                link.control.hold()
                return host.end(call, .connected(link.identifier))
            }
            host.begin(identifier, addresses, parameters, timeout, for: .task(call))
        }
        guard case .connected(let link) = outcome else { throw .closed }
        return link
    }

    func begin(
        _ identifier: UInt64,
        _ addresses: Set<DeviceAddress>,
        _ parameters: ConnectionParameters,
        _ timeout: Duration?,
        for caller: ConnectionAttempt.Caller
    ) {
        var attempt = ConnectionAttempt(
            identifier: identifier,
            addresses: addresses,
            parameters: parameters,
            caller: caller
        )
        attempt.timer = timeout.map { schedule(.connectionAttempt(identifier), after: $0) }
        connector.add(attempt)
        reconcileAddresses()
        reconcileConnections()
        if !soughtPeers.isEmpty { reconcileScan() }
    }

    func giveUp(_ identifier: UInt64, _ error: HostError) {
        guard let attempt = connector.takeAttempt(identifier, at: loop.now) else { return }
        end(attempt, .failure(error))
        reportAgain(attempt.addresses)
        forgetMeetings()
        reconcileConnections()
        if scanner.isSeeking { reconcileScan() }
    }

    /// Starts a pass that changes what the controller initiates to what the attempts need.
    func reconcileConnections() {
        guard power == .on else { return }
        // Scanning may have waited for an initiation that the controller no longer runs.
        guard connector.mayInitiate else { return reconcileScan() }
        guard connector.reconciliation.request() else { return }
        spawn { await $0.runConnectionReconciliation() }
    }

    /// Cancels the controller's initiation and starts it again, in case the controller ended it without the host's
    /// knowledge.
    func restartInitiating() {
        guard case .initiating = connector.state else { return }
        connector.isInitiationDoubtful = true
        reconcileConnections()
    }

    private func runConnectionReconciliation() async {
        defer { resumeRestWaiters() }
        while connector.reconciliation.next() {
            guard power == .on, let information else { continue }
            let window = connectorWindow(information)
            superviseConnectionTurns(window, information)
            let wanted = wantedInitiation(for: window)
            switch connector.state {
            case .cancelling:
                continue
            case .initiating(let initiation):
                guard wanted != initiation || connector.isInitiationDoubtful else { continue }
                connector.isInitiationDoubtful = false
                setInitiation(.cancelling)
                do throws(CommandFailure) {
                    try await perform(LECreateConnectionCancel())
                } catch {
                    // The connection has just been made or has failed; its event reports which.
                    logger.debug("\(error)")
                }
                expectEndOfInitiating()
            case .idle:
                guard isReadyToInitiate(wanted, information), let wanted else { continue }
                connector.isInitiationDoubtful = false
                setInitiation(.initiating(wanted))
                do throws(CommandFailure) {
                    try await initiate(wanted)
                } catch {
                    guard power == .on else { continue }
                    setInitiation(.idle)
                    if case .status(.connectionAlreadyExists, _) = error {
                        resolveExistingConnection(to: wanted.addresses)
                        endInput()
                        continue
                    }
                    failAttempts(for: wanted.addresses, .command(error))
                    endInput()
                }
            }
        }
    }

    // MARK: Outcomes

    /// Handles the controller's answer that a link to one of `addresses` exists. Two devices have at most one link
    /// (Vol 6, Part B, 4.5): it is used, or has to end first.
    private func resolveExistingConnection(to addresses: Set<DeviceAddress>) {
        guard let link = links.values.first(where: { $0.isWith(anyOf: addresses) }) else {
            return controllerFailed("it has a connection that it did not report")
        }
        if link.isEnding || !link.countsAsConnection {
            // A peer that claims to be bonded verifies its identity, or its link is ended after a timeout.
            if !link.isEnding, link.security.state.waiting.isEmpty { verifyIdentity(of: link) }
            endInput()
            guard connector.blockers.insert(link.identifier).inserted else { return }
            let identifier = link.identifier
            link.endObservers[makeIdentifier()] = .host { [weak self] _ in
                self?.assumeIsolated { host in
                    host.connector.blockers.remove(identifier)
                    host.reconcileConnections()
                }
            }
        } else {
            fulfilAttempts(with: link)
            reconcileConnections()
        }
    }

    private func fulfilAttempts(with link: Link) {
        for attempt in connector.takeAttempts(forAnyOf: link.addresses) {
            end(attempt, .success(link.identifier))
        }
        forgetMeetings()
    }

    /// Gives a link to the callers that wait for a connection to its peer, if it counts as one from now on.
    func linkMayFulfilAttempts(_ link: Link) {
        guard !connector.attempts.isEmpty, !link.isEnding, link.countsAsConnection else { return }
        let count = connector.attempts.count
        fulfilAttempts(with: link)
        guard connector.attempts.count < count else { return }
        reconcileConnections()
        reconcileScan()
    }

    private func failAttempts(for addresses: Set<DeviceAddress>, _ error: HostError) {
        for attempt in connector.takeAttempts(forAnyOf: connector.peers(at: addresses)) {
            end(attempt, .failure(error))
            reportAgain(attempt.addresses)
        }
        forgetMeetings()
        reconcileConnections()
    }

    // MARK: Events

    func connectionCompleted(_ connection: NewConnection) {
        // If the host has given up the controller, pending events end with the reset.
        guard power == .on else { return }
        guard connection.status == .success else {
            // Only initiating fails with this event; the end of directed advertising has an event of its own.
            guard connection.role == .central || connector.state != .idle else { return }
            if case .initiating(let initiation) = connector.state {
                // An earlier initiation has ended late. Whether the controller initiates now is unknown.
                guard connection.status != .unknownConnectionIdentifier else { return restartInitiating() }
                setInitiation(.idle)
                failAttempts(for: initiation.addresses, .disconnected(.controller(connection.status)))
            }
            setInitiation(.idle)
            reconcileConnections()
            reconcileScan()
            return
        }
        if links[connection.handle] != nil {
            endLink(connection.handle, .controllerReset("it used connection handle \(connection.handle) twice"))
        }
        let link = addLink(connection)
        if connection.peerPrivateAddress == nil, isSilencedByPrivacy(connection.peerAddress) {
            // The link exists already and can only be ended.
            giveUp(link, .controller(.authenticationFailure), telling: .authenticationFailure)
        }
        let attempts =
            link.isEnding || !link.countsAsConnection ? [] : connector.takeAttempts(forAnyOf: link.addresses)
        for attempt in attempts {
            end(attempt, .success(link.identifier))
        }
        forgetMeetings()
        switch link.role {
        case .central:
            setInitiation(.idle)
            if attempts.isEmpty { giveUp(link, .controller(.connectionTerminatedByLocalHost)) }
        case .peripheral:
            advertisingEndedByConnection()
        }
        reconcileConnections()
        reconcileScan()
    }

    /// Waits until a link has ended.
    ///
    /// - Returns: why the link has ended.
    /// - Throws: ``HostError/cancelled`` at once if the task is cancelled.
    package func disconnection(of identifier: LinkIdentifier) async throws(HostError) -> DisconnectionReason {
        try await waitForEnd(of: identifier)
        return endedLinks[identifier] ?? .adapterClosed
    }

    /// Waits until a link has ended. Cancelling the task ends the wait.
    func waitForEnd(of identifier: LinkIdentifier) async throws(HostError) {
        try await wait(for: .endOfLink(identifier)) { host, call in
            guard let link = host.links[identifier] else { return host.end(call, .success(())) }
            link.endObservers[host.makeIdentifier()] = .call(call)
        }
    }

    /// Releases one hold on a link (see ``hold(_:)``). Releasing the last hold ends the link and waits for its end.
    package func release(_ identifier: LinkIdentifier) async {
        guard let link = links[identifier] else { return }
        if link.control.releaseHold() { await disconnect(identifier) }
    }

    /// Adds a hold to a link, as a successful ``connect(toAnyOf:parameters:timeout:)`` does.
    package func hold(_ identifier: LinkIdentifier) {
        links[identifier]?.control.hold()
    }

    /// Whether a link has more than one hold.
    package func isShared(_ identifier: LinkIdentifier) -> Bool {
        (links[identifier]?.control.holdCount ?? 0) > 1
    }

    /// Releases one hold on a link without ending it, even if it was the last.
    package func discardHold(on identifier: LinkIdentifier) {
        links[identifier]?.control.releaseHold()
    }

    /// Ends a link once all packets written to it are sent. Connections that are requested from now on do not use this
    /// link; they are made after its end. Does nothing if the link is ending already.
    ///
    /// - Parameter isServer: whether the values are those of the server. Then they include indications that wait for the
    ///   confirmations of earlier ones, and the link ends after ``LinkControl/flushLimit`` even if the client has not taken all.
    package func disconnectAfterFlush(_ identifier: LinkIdentifier, isServer: Bool = false) {
        guard let link = links[identifier], link.control.release(isLimited: isServer, controlContext) else { return }
        armTimer(of: link)
        spawn { host in
            await host.flush(identifier, includingIndications: isServer)
            await host.disconnect(identifier)
        }
    }

    /// If a link is ending, waits until it has ended. Cancelling the task ends the wait.
    package func waitIfDisconnecting(_ identifier: LinkIdentifier) async {
        if links[identifier]?.isEnding == true { try? await waitForEnd(of: identifier) }
    }

    /// Ends a link and waits until it has ended. Cancelling the task ends the wait, not the disconnection.
    package func disconnect(
        _ identifier: LinkIdentifier,
        reason: HCI.ErrorCode = .remoteUserTerminatedConnection
    ) async {
        guard let link = links[identifier] else { return }
        beginDisconnection(of: link, reason)
        try? await waitForEnd(of: identifier)
    }

    func disconnected(_ event: DisconnectionComplete) {
        guard event.status == .success else { return }
        guard links[event.connectionHandle] != nil else { return endedUnknown(event.connectionHandle) }
        endLink(event.connectionHandle, .controller(event.reason))
    }
}
