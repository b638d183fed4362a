import BLEHCI
import BLEL2CAP
import BluetoothTypes

/// The caller of an attempt to connect.
enum ConnectionCaller {
    /// A suspended task, which is resumed at once.
    case task(CallToken)
    /// A closure of an app.
    case callback(@Sendable (Result<LinkIdentifier, HostError>) -> Void)
}

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
        return try await connect(to: addresses, parameters) { host, attempt, addresses, call throws(HostError) in
            host.beginAttempt(attempt, addresses, parameters, timeout, for: .task(call))
        }
    }

    /// Connects to a device that is synchronized with a periodic train of this host and listens to a subevent.
    ///
    /// The request is sent in events of the train until the device answers. The result is an existing link as for
    /// ``connect(toAnyOf:parameters:timeout:)``.
    package func connect(
        to address: DeviceAddress,
        inSubevent subevent: UInt8,
        of advertisement: AdvertisementIdentifier,
        parameters: ConnectionParameters,
        timeout: Duration
    ) async throws(HostError) -> LinkIdentifier {
        try await connect(to: [address], parameters) { host, attempt, addresses, call throws(HostError) in
            guard host.information?.commands.contains(LEExtendedCreateConnectionV2.self) == true else {
                throw .notSupported("this controller requests no connections in periodic trains")
            }
            let subevent = try host.gap.advertising.subevent(subevent, of: advertisement)
            host.enableEvents(.enhancedConnectionCompleteV2)
            host.beginAttempt(attempt, addresses, parameters, timeout, in: subevent, for: .task(call))
        }
    }

    private typealias AttemptBeginning =
        @Sendable (isolated BluetoothHost, UInt64, Set<DeviceAddress>, CallToken) throws(HostError) -> Void

    /// - Parameter begin: begins the attempt with a number to the addresses, if none of them is connected.
    private func connect(
        to addresses: Set<DeviceAddress>,
        _ parameters: ConnectionParameters,
        _ begin: @escaping AttemptBeginning
    ) async throws(HostError) -> LinkIdentifier {
        guard parameters.isValid else { throw .invalidArgument("connection parameters out of range") }
        let identifier = observers.makeIdentifier()
        let outcome = try await wait(for: .connection(attempt: identifier)) { host, call in
            guard host.power != .closed else { return host.end(call, .failure(.closed)) }
            guard host.power != .off else { return host.end(call, .failure(.notReady)) }
            // The private address of a bonded peer is replaced by its identity, because the private address may change
            // soon.
            let addresses = Set(addresses.map { host.gap.identity(of: $0) })
            let link = host.links.values.first {
                !$0.isEnding && $0.countsAsConnection && $0.isWith(anyOf: addresses)
            }
            if let link {
                link.control.hold()
                return host.end(call, .connected(link.identifier))
            }
            do throws(HostError) {
                try begin(host, identifier, addresses, call)
            } catch {
                host.end(call, .failure(error))
            }
        }
        guard case .connected(let link) = outcome else { throw .closed }
        return link
    }

    func beginAttempt(
        _ identifier: UInt64,
        _ addresses: Set<DeviceAddress>,
        _ parameters: ConnectionParameters,
        _ timeout: Duration?,
        in subevent: SubeventTarget? = nil,
        for caller: ConnectionCaller
    ) {
        observers.connections[identifier] = caller
        let attempt = ConnectionAttempt(
            identifier: identifier,
            addresses: addresses,
            parameters: parameters,
            deadline: timeout.map { loop.now + $0 },
            subevent: subevent
        )
        perform(gap.beginAttempt(attempt, gapContext))
    }

    func endAttempt(_ identifier: UInt64, _ error: HostError) {
        perform(gap.endAttempt(identifier, error, gapContext))
    }

    // MARK: Outcomes

    /// Delivers the outcome of an attempt to connect.
    func end(_ attempt: ConnectionAttempt, _ result: Result<LinkIdentifier, HostError>) {
        switch observers.connections.removeValue(forKey: attempt.identifier) {
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

    /// Gives a link to the attempts that wait for a connection to its peer, if it counts as one from now on.
    func linkMayFulfilAttempts(_ link: Link) {
        guard !gap.connecting.attempts.isEmpty, !link.isEnding, link.countsAsConnection else { return }
        perform(gap.linkCountsAsConnection(link.identifier, with: link.addresses, gapContext))
    }

    /// Finds the link that the controller has with a device of one of these addresses. The link is used, or has to end
    /// first.
    func findLink(to addresses: Set<DeviceAddress>) {
        guard let link = links.values.first(where: { $0.isWith(anyOf: addresses) }) else {
            return controllerFailed("it has a connection that it did not report")
        }
        guard link.isEnding || !link.countsAsConnection else {
            return perform(
                gap.linkCountsAsConnection(link.identifier, with: link.addresses.union(addresses), gapContext)
            )
        }
        // A peer that claims to be bonded verifies its identity, or its link is ended after a timeout.
        if !link.isEnding, link.security.state.waiting.isEmpty { verifyIdentity(of: link) }
        gap.retryInitiating(afterEndOf: link.identifier)
    }

    // MARK: Beginnings of links

    func connectionCompleted(_ connection: NewConnection) {
        // If the host has given up the controller, pending events end with the reset.
        guard power == .on else { return }
        let isCentral = connection.role == .central
        guard connection.status == .success else {
            let (status, peer) = (connection.status, connection.peerAddress)
            return perform(gap.connectionFailed(status, of: peer, asCentral: isCentral, gapContext))
        }
        if links[connection.handle] != nil {
            endLink(connection.handle, .controllerReset("it used connection handle \(connection.handle) twice"))
        }
        let (effects, earlyPackets) = session.linkBegan(connection.handle)
        perform(effects)
        let link = addLink(connection)
        if connection.peerPrivateAddress == nil, gap.isSilenced(connection.peerAddress) {
            // The link exists already and can only be ended.
            giveUp(link, .controller(.authenticationFailure), telling: .authenticationFailure)
        }
        let addresses = !link.isEnding && link.countsAsConnection ? link.addresses : nil
        perform(
            gap.linkBegan(
                link.identifier,
                asCentral: isCentral,
                fromReceivedTrain: connection.isFromReceivedTrain,
                with: addresses,
                gapContext
            )
        )
        for packet in earlyPackets { receiveACL(packet.rawSpan) }
    }

    // MARK: Ends of links

    /// Waits until a link has ended.
    ///
    /// - Returns: why the link has ended.
    /// - Throws: ``HostError/cancelled`` at once if the task is cancelled.
    package func disconnection(of identifier: LinkIdentifier) async throws(HostError) -> DisconnectionReason {
        try await waitForEnd(of: identifier)
        return endReason(of: identifier)
    }

    /// Waits until a link has ended. Cancelling the task ends the wait.
    func waitForEnd(of identifier: LinkIdentifier) async throws(HostError) {
        try await wait(for: .endOfLink(identifier)) { host, call in
            guard let link = host.links[identifier] else { return host.end(call, .success(())) }
            link.observers.ends[host.observers.makeIdentifier()] = .call(call)
        }
    }

    /// Releases one hold on a link (see ``hold(_:)``). Releasing the last hold ends the link and waits for its end.
    ///
    /// If the task is cancelled, the call returns at once. The packets of earlier calls are still sent, as
    /// ``disconnectAfterFlush(_:isServer:)`` does it.
    ///
    /// - Returns: why the link ended, if it had ended before the call; otherwise nil.
    package func release(_ identifier: LinkIdentifier) async -> DisconnectionReason? {
        guard let link = links[identifier] else { return endReason(of: identifier) }
        guard link.control.releaseHold() else { return nil }
        if Task.isCancelled {
            disconnectAfterFlush(identifier)
        } else {
            await disconnect(identifier)
        }
        return nil
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

    /// Ends a link once all packets written to it are sent, or after ``LinkControl/flushLimit``: the peer may not take
    /// them, or not answer the requests before them. Connections that are requested from now on do not use this link;
    /// they are made after its end. Does nothing if the link is ending already.
    ///
    /// - Parameter isServer: whether the values are those of the server. Then they include indications that wait for
    ///   the confirmations of earlier ones.
    package func disconnectAfterFlush(_ identifier: LinkIdentifier, isServer: Bool = false) {
        guard let link = links[identifier], link.control.release(isLimited: true, controlContext) else { return }
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
        reason: HCIErrorCode = .remoteUserTerminatedConnection
    ) async {
        guard let link = links[identifier] else { return }
        beginDisconnection(of: link, reason)
        try? await waitForEnd(of: identifier)
    }

    func disconnected(_ event: DisconnectionComplete) {
        guard event.status == .success else { return }
        guard links[event.connectionHandle] != nil else {
            if isochronous.knows(event.connectionHandle, at: loop.now) { return streamEnded(event) }
            return endedUnknown(event.connectionHandle)
        }
        endLink(event.connectionHandle, .controller(event.reason))
    }
}
