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
        for caller: ConnectionCaller
    ) {
        connectionCallers[identifier] = caller
        connector.add(
            ConnectionAttempt(
                identifier: identifier,
                addresses: addresses,
                parameters: parameters,
                deadline: timeout.map { loop.now + $0 }
            )
        )
        reconcileAddresses()
        reconcileConnections()
        if isSeekingPeers { reconcileScan() }
    }

    func giveUp(_ identifier: UInt64, _ error: HostError) {
        perform(connector.endAttempt(identifier, error, at: loop.now))
    }

    // MARK: Ends of links

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
