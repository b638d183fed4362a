import BLEATT
import BluetoothHost
import Foundation

// The connections that the app requests: from the call over the attempts and the link to its end.
extension HostCentral {
    func connect(_ connection: ConnectionIdentifier, _ request: ConnectionRequest) {
        submit { host, open in self.connect(connection, request, on: host, open) }
    }

    private func connect(
        _ connection: ConnectionIdentifier,
        _ request: ConnectionRequest,
        on host: isolated BluetoothHost,
        _ open: OpenHost
    ) {
        let peripheral = connection.peripheral
        state.failed[peripheral] = nil
        switch state.connections[peripheral]?.phase {
        case .connected(let link):
            replaceRequest(of: connection, by: request)
            // The manager takes it: it replaces an earlier event for the same link that waits for the app.
            if state.connections[peripheral]?.isRefused == false { _ = sayConnected(peripheral, link, on: host) }
            return
        case .delayed:
            let mustRestart = state.connections[peripheral]?.request.delay != request.delay
            replaceRequest(of: connection, by: request)
            startTimeout(of: peripheral, on: host)
            if mustRestart { startDelay(of: peripheral, on: host) }
            return
        case .waiting, .connecting, .establishing:
            replaceRequest(of: connection, by: request)
            return startTimeout(of: peripheral, on: host)
        // The object that has requested the end was released.
        case .ending, nil: break
        }
        guard open.peers.use(peripheral) else {
            state.connections[peripheral] = nil
            keepRestoration()
            return connectionFailed(connection, .core(.unkownDevice))
        }
        state.lastNumber += 1
        let number = state.lastNumber
        state.connections[peripheral] = Connection(
            identifier: connection,
            request: request,
            phase: .delayed,
            number: number
        )
        keepRestoration()
        startTimeout(of: peripheral, on: host)
        startDelay(of: peripheral, on: host)
    }

    /// Replaces the request of a connection or attempt that exists. Without the option, it reconnects as before.
    private func replaceRequest(of connection: ConnectionIdentifier, by request: ConnectionRequest) {
        let reconnects = request.reconnects ?? state.connections[connection.peripheral]?.request.reconnects
        state.connections[connection.peripheral]?.identifier = connection
        state.connections[connection.peripheral]?.request = request
        state.connections[connection.peripheral]?.request.reconnects = reconnects
    }

    /// Starts the delay of a connection's last request, in place of that of an earlier request. Without a delay, takes
    /// the next step at once.
    private func startDelay(of peripheral: UUID, on host: isolated BluetoothHost) {
        state.connections[peripheral]?.delayNumber += 1
        guard let connection = state.connections[peripheral] else { return }
        guard connection.request.delay > .zero else { return proceed(peripheral, connection.number) }
        host.run(after: connection.request.delay) { [weak self] in
            self?.delayEnded(of: peripheral, connection.number, connection.delayNumber)
        }
    }

    /// Takes the next step after the delay of a connection's last request. Called on the loop.
    private func delayEnded(of peripheral: UUID, _ number: UInt64, _ delayNumber: UInt64) {
        guard let connection = state.connections[peripheral], connection.number == number,
            connection.delayNumber == delayNumber, case .delayed = connection.phase
        else { return }
        proceed(peripheral, number)
    }

    /// Starts the timeout of a connection's last request, if it has one, in place of those of earlier requests.
    private func startTimeout(of peripheral: UUID, on host: isolated BluetoothHost) {
        state.connections[peripheral]?.timeoutNumber += 1
        guard let connection = state.connections[peripheral], let timeout = connection.request.timeout else { return }
        host.run(after: timeout) { [weak self] in
            self?.waitedLongEnough(for: peripheral, connection.number, connection.timeoutNumber)
        }
    }

    /// Ends a connection attempt that has reached the timeout of its last request. Called on the loop.
    private func waitedLongEnough(for peripheral: UUID, _ number: UInt64, _ timeoutNumber: UInt64) {
        guard let open, let connection = state.connections[peripheral], connection.number == number,
            connection.timeoutNumber == timeoutNumber
        else { return }
        // The app has cancelled the attempt. The end of the link is reported instead.
        if case .ending = connection.phase { return }
        open.host.assumeIsolated { end(connection.identifier, isAnswered: false, on: $0, open) }
        connectionFailed(connection.identifier, .core(.connectionTimeout))
    }

    /// Takes the next step towards a link, if the connection is still wanted. Called on the loop.
    private func proceed(_ peripheral: UUID, _ number: UInt64) {
        guard let open, state.connections[peripheral]?.number == number else { return }
        open.host.assumeIsolated { host in
            guard let address = open.peers.address(of: peripheral) else { return }
            guard let link = host.link(to: address) else {
                state.connections[peripheral]?.phase = .connecting(nil)
                let attempt = host.beginConnecting(to: address) { [weak self] result in
                    self?.attemptEnded(peripheral, number, result)
                }
                if case .connecting? = state.connections[peripheral]?.phase {
                    state.connections[peripheral]?.phase = .connecting(attempt)
                }
                return
            }
            guard link.isEnding else {
                return linkMade(peripheral, number, link.identifier, on: host, open)
            }
            state.connections[peripheral]?.phase = .waiting
            host.observeEnd(of: link.identifier) { [weak self] _ in self?.proceed(peripheral, number) }
        }
    }

    private func attemptEnded(_ peripheral: UUID, _ number: UInt64, _ result: Result<LinkIdentifier, HostError>) {
        guard let open, let connection = state.connections[peripheral], connection.number == number,
            case .connecting = connection.phase
        else { return }
        switch result {
        case .success(let link):
            open.host.assumeIsolated { linkMade(peripheral, number, link, on: $0, open) }
        case .failure(.disconnected(.controller(.connectionFailedToBeEstablished))):
            notEstablished(connection)
        case .failure(let error):
            attemptFailed(connection, BackendError(error))
        }
    }

    /// Tries again after a link that could not be established, up to the limit.
    private func notEstablished(_ connection: Connection) {
        let isReconnection = connection.wasConnected && connection.request.reconnects == true
        guard isReconnection || connection.failures < HostCentral.retryLimit else {
            let error = HostError.disconnected(.controller(.connectionFailedToBeEstablished))
            return attemptFailed(connection, BackendError(error))
        }
        let peripheral = connection.identifier.peripheral
        state.connections[peripheral]?.failures += 1
        proceed(peripheral, connection.number)
    }

    private func attemptFailed(_ connection: Connection, _ error: BackendError) {
        state.connections[connection.identifier.peripheral] = nil
        keepRestoration()
        connectionFailed(connection.identifier, error)
    }

    private func connectionFailed(_ connection: ConnectionIdentifier, _ error: BackendError) {
        state.failed[connection.peripheral] = connection
        deliver(.connectionFailed(connection, error))
    }

    /// Uses a link that was made for this connection, or for another user. It counts as a connection once it is
    /// established.
    private func linkMade(
        _ peripheral: UUID,
        _ number: UInt64,
        _ link: LinkIdentifier,
        on host: isolated BluetoothHost,
        _ open: OpenHost
    ) {
        // Before the link is shared, so that its users learn of the end in the order in which they joined.
        host.observeEnd(of: link) { [weak self] reason in self?.linkEnded(peripheral, number, link, reason) }
        guard !host.isEstablished(link) else { return connected(peripheral, number, link, on: host, open) }
        state.connections[peripheral]?.phase = .establishing(link)
        host.hold(link)
        host.observeEstablishment(of: link) { [weak self] in self?.established(peripheral, number, link) }
    }

    /// Called on the loop.
    private func established(_ peripheral: UUID, _ number: UInt64, _ link: LinkIdentifier) {
        guard let open, let connection = state.connections[peripheral], connection.number == number,
            case .establishing(link) = connection.phase
        else { return }
        open.host.assumeIsolated { host in
            connected(peripheral, number, link, on: host, open)
            host.discardHold(on: link)
        }
    }

    private func connected(
        _ peripheral: UUID,
        _ number: UInt64,
        _ link: LinkIdentifier,
        on host: isolated BluetoothHost,
        _ open: OpenHost
    ) {
        setConnected(peripheral, link)
        guard sayConnected(peripheral, link, on: host) else {
            state.connections[peripheral]?.isRefused = true
            return host.disconnectFlooding(link)
        }
        open.links.join(link, LinkUser(central: self, peripheral: peripheral), on: host)
    }

    private func setConnected(_ peripheral: UUID, _ link: LinkIdentifier) {
        state.connections[peripheral]?.phase = .connected(link)
        state.connections[peripheral]?.timeoutNumber += 1
        state.connections[peripheral]?.failures = 0
        state.connections[peripheral]?.wasConnected = true
    }

    /// Reports a link to the manager.
    ///
    /// - Returns: false if the manager does not take it, because too many connections to the peripheral wait for the
    ///   app.
    private func sayConnected(
        _ peripheral: UUID,
        _ link: LinkIdentifier,
        on host: isolated BluetoothHost
    ) -> Bool {
        guard let connection = state.connections[peripheral]?.identifier,
            let mtu = try? host.information(on: link).mtu
        else { return true }
        // The app discovers the attributes after the event.
        state.connections[peripheral]?.changes = DatabaseChanges()
        return deliver(.connected(connection, mtu: mtu, on: link))
    }

    private func linkEnded(_ peripheral: UUID, _ number: UInt64, _ link: LinkIdentifier, _ reason: DisconnectionReason)
    {
        guard let open, let connection = state.connections[peripheral], connection.number == number else { return }
        let time = open.wallClock()
        switch connection.phase {
        case .establishing(link) where reason == .controller(.connectionFailedToBeEstablished):
            notEstablished(connection)
        case .establishing(link) where reason.isEndOfController:
            attemptFailed(connection, BackendError(HostError.disconnected(reason)))
        case .establishing(link):
            // The peer has ended the link, so it was heard.
            setConnected(peripheral, link)
            let isTaken = deliver(.connected(connection.identifier, mtu: Bearer.defaultMTU, on: link))
            state.connections[peripheral]?.isRefused = !isTaken
            linkEnded(peripheral, number, link, reason)
        case .connected(link)
        where connection.request.reconnects == true && !connection.isRefused && !reason.isEndOfController:
            state.connections[peripheral]?.subscriptions = [:]
            deliver(
                .disconnected(
                    connection.identifier,
                    Disconnection(error: BackendError(reason), isReconnecting: true, time: time)
                )
            )
            proceed(peripheral, number)
        case .connected(link):
            state.connections[peripheral] = nil
            keepRestoration()
            deliver(.disconnected(connection.identifier, Disconnection(error: BackendError(reason), time: time)))
        case .ending(link):
            state.connections[peripheral] = nil
            keepRestoration()
            deliver(.disconnected(connection.identifier, Disconnection(error: nil, time: time)))
        case .establishing, .connected, .ending, .delayed, .waiting, .connecting: break
        }
    }

    func setReconnects(_ reconnects: Bool, of connection: ConnectionIdentifier) {
        submit { _, _ in
            guard self.state.connections[connection.peripheral]?.identifier == connection else { return }
            self.state.connections[connection.peripheral]?.request.reconnects = reconnects
        }
    }

    func cancelConnection(_ connection: ConnectionIdentifier) {
        submit { host, open in self.end(connection, isAnswered: true, on: host, open) }
    }

    func release(_ connection: ConnectionIdentifier) {
        // An object may outlive its manager, so this is not a call of the app.
        submit(call: nil) { host, open in self.end(connection, isAnswered: false, on: host, open) }
    }

    /// Ends a connection in any phase. Does nothing if the app has requested a later one to the same peripheral.
    ///
    /// - Parameter isAnswered: whether the manager is notified of the end.
    func end(
        _ identifier: ConnectionIdentifier,
        isAnswered: Bool,
        on host: isolated BluetoothHost,
        _ open: OpenHost
    ) {
        defer { keepRestoration() }
        let peripheral = identifier.peripheral
        guard let connection = state.connections[peripheral], connection.identifier == identifier else {
            guard state.failed[peripheral] == identifier else { return }
            state.failed[peripheral] = nil
            if isAnswered { sayCancelled(identifier, open) }
            return
        }
        switch connection.phase {
        case .delayed, .waiting, .connecting(nil):
            state.connections[peripheral] = nil
            if isAnswered { sayCancelled(identifier, open) }
        case .connecting(let attempt?):
            state.connections[peripheral] = nil
            host.cancelConnecting(attempt)
            if isAnswered { sayCancelled(identifier, open) }
        case .establishing(let link):
            let isEnding = !host.isShared(link)
            if isEnding { host.disconnectAfterFlush(link) } else { host.discardHold(on: link) }
            if isEnding, isAnswered {
                state.connections[peripheral]?.phase = .ending(link)
            } else {
                state.connections[peripheral] = nil
                if isAnswered { sayCancelled(identifier, open) }
            }
        case .connected(let link):
            let sounding = endSounding(with: peripheral, on: host)
            if isAnswered { sounding?.completion(.success(())) }
            let isEnding = open.links.leave(link, LinkUser(central: self, peripheral: peripheral), on: host)
            for (handle, subscription) in connection.subscriptions {
                open.links.removeSubscriber(subscription.subscriber, of: handle, on: link, host)
            }
            if isEnding, isAnswered {
                state.connections[peripheral]?.phase = .ending(link)
                state.connections[peripheral]?.subscriptions = [:]
            } else {
                state.connections[peripheral] = nil
                if isAnswered { sayCancelled(identifier, open) }
            }
        case .ending:
            if !isAnswered { state.connections[peripheral] = nil }
        }
    }

    private func sayCancelled(_ connection: ConnectionIdentifier, _ open: OpenHost) {
        deliver(.disconnected(connection, Disconnection(error: nil, time: open.wallClock())))
    }
}
