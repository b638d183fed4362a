import BluetoothHost
import Logging

extension Central {
    /// Keeps a peripheral connected, and reports changes of the connection.
    ///
    /// ```swift
    /// for try await state in adapter.central.maintain("F0:12:34:56:78:9A") {
    ///     switch state {
    ///     case .connecting(let attempt): print("attempt \(attempt)")
    ///     case .connected(let peer): await use(peer)
    ///     case .disconnected(let reason, let delay): print("\(reason); again in \(delay)")
    ///     case .failed(let error, _, let delay): print("\(error); again in \(delay)")
    ///     }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - address: the peripheral's address; of a bonded peripheral, its identity address.
    ///   - backoff: the delays between attempts.
    ///   - attemptTimeout: how long one attempt waits for the peripheral's advertisement; nil for as long as it takes.
    ///     If the attempt takes turns with scans or other attempts, the controller listens for the peripheral only
    ///     during the attempt's turns.
    ///   - parameters: the connection's parameters.
    /// - Returns: a sequence that is endless until its task is cancelled or the adapter is closed.
    public func maintain(
        _ address: DeviceAddress,
        backoff: ReconnectionBackoff = ReconnectionBackoff(),
        attemptTimeout: Duration? = .seconds(30),
        parameters: ConnectionParameters = ConnectionParameters()
    ) -> MaintainedConnection {
        MaintainedConnection(
            central: self,
            address: address,
            backoff: backoff,
            attemptTimeout: attemptTimeout,
            parameters: parameters
        )
    }

    /// Keeps a peripheral connected, and calls a handler for each connection.
    ///
    /// ```swift
    /// try await adapter.central.maintain("F0:12:34:56:78:9A") { peer in
    ///     let rate = try await peer.characteristic("2A37", in: "180D")
    ///     for try await beat in try await peer.subscribe(to: rate) { print(beat.value) }
    /// }
    /// ```
    ///
    /// The handler's task is cancelled when the connection ends, and the next attempt starts when the handler has
    /// returned. A handler that returns leaves the connection as it is. A handler that throws ends the connection; the
    /// error is logged, and the peripheral is connected again.
    ///
    /// - Parameters:
    ///   - address: the peripheral's address; of a bonded peripheral, its identity address.
    ///   - backoff: the delays between attempts.
    ///   - attemptTimeout: how long one attempt waits for the peripheral's advertisement; nil for as long as it takes.
    ///     If the attempt takes turns with scans or other attempts, the controller listens for the peripheral only
    ///     during the attempt's turns.
    ///   - parameters: the connection's parameters.
    ///   - handler: is called with each connection.
    /// - Throws: ``BLEError/cancelled`` when the task is cancelled, ``BLEError/closed`` when the adapter is closed,
    ///   ``BLEError/invalidArgument(_:)`` if no attempt can succeed. The call does not return otherwise.
    public func maintain(
        _ address: DeviceAddress,
        backoff: ReconnectionBackoff = ReconnectionBackoff(),
        attemptTimeout: Duration? = .seconds(30),
        parameters: ConnectionParameters = ConnectionParameters(),
        whileConnected handler: @escaping @Sendable (RemotePeripheral) async throws -> Void
    ) async throws(BLEError) {
        let keeper = ConnectionKeeper(
            maintain(address, backoff: backoff, attemptTimeout: attemptTimeout, parameters: parameters)
        )
        while let state = try await keeper.next() {
            if case .connected(let peripheral) = state { await peripheral.run(handler) }
        }
    }
}

extension RemotePeripheral {
    /// Calls a handler and waits until both the connection has ended and the handler has returned, or the task is
    /// cancelled and the handler has returned.
    fileprivate func run(_ handler: @escaping @Sendable (RemotePeripheral) async throws -> Void) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.callHandler(handler) }
            _ = await end()
            group.cancelAll()
        }
    }

    private func callHandler(_ handler: @Sendable (RemotePeripheral) async throws -> Void) async {
        do {
            try await handler(self)
        } catch {
            guard await isConnected, !Task.isCancelled else { return }
            host.logger.warning("the connection to \(address) is ended, because its handler failed: \(error)")
            await disconnect()
        }
    }
}
