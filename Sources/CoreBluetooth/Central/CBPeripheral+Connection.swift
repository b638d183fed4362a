import BLEATT
import BluetoothHost
import BluetoothTypes
import Foundation

// The phases of a connection. Used on the manager's queue, except for the app's calls.
extension CBPeripheral {
    /// Handles the app's call to connect. The backend is called under the lock, so that calls from several threads
    /// reach it in the order of the resulting states.
    ///
    /// - Returns: whether the connection exists already, so that the delegate is to be called; nil if the peripheral is
    ///   no longer valid.
    func wishConnection(_ request: ConnectionRequest) -> Bool? {
        content.withLock { content in
            guard content.manager != nil else { return nil }
            var request = request
            // As for an attempt that exists: without the option, the earlier request's choice stays.
            request.reconnects = request.reconnects ?? content.nextConnection?.reconnects
            switch content.state {
            case .connected:
                // The other options concern attempts.
                if let reconnects = request.reconnects, let connection = content.requested {
                    backend?.setReconnects(reconnects, of: connection)
                }
                return true
            case .disconnecting: content.nextConnection = request
            case .disconnected, .connecting: beginConnecting(request, &content)
            }
            return false
        }
    }

    /// Asks the backend for a connection, under the lock.
    private func beginConnecting(_ request: ConnectionRequest, _ content: inout Content) {
        let connection = ConnectionIdentifier(newTo: identifier)
        content.state = .connecting
        content.nextConnection = nil
        content.requested = connection
        backend?.connect(connection, request)
    }

    /// Handles the app's call to disconnect.
    ///
    /// - Returns: whether the backend was not asked for the connection yet, so that it does not report the end either.
    func wishDisconnection() -> Bool {
        content.withLock { content in
            content.nextConnection = nil
            guard content.state == .connecting || content.state == .connected else { return false }
            guard let connection = content.requested else {
                content.state = .disconnected
                return true
            }
            content.state = .disconnecting
            backend?.cancelConnection(connection)
            return false
        }
    }

    /// Discards the connection and any attempt, because the manager is no longer powered on or was released. No event
    /// reports the end. The backend ends what the app has requested after the links ended.
    ///
    /// - Parameter isInvalidated: whether the peripheral is no longer valid.
    /// - Returns: whether there was a connection or an attempt.
    @discardableResult
    func discardConnection(isInvalidated: Bool) -> Bool {
        // In one step, so that a connection that the app requests on another thread is discarded too, or begins after
        // it.
        let (hadConnection, values) = content.withLock { content in
            if isInvalidated { content.manager = nil }
            content.nextConnection = nil
            if let connection = content.requested { backend?.release(connection) }
            let hadConnection = content.state != .disconnected
            content.endConnection(isReconnecting: false)
            return (hadConnection, content.values)
        }
        values?.finish()
        return hadConnection
    }

    /// Begins the connection that the app requested while the last connection was ending, unless the app has cancelled
    /// it.
    func beginNextConnection() {
        content.withLock { content in
            guard let next = content.nextConnection, content.state == .connecting else { return }
            beginConnecting(next, &content)
        }
    }

    /// Notes that the connection was made. Returns whether the app still wants it.
    func connectionMade(_ connection: ConnectionIdentifier, mtu: Int, on link: LinkIdentifier) -> Bool {
        content.withLock { content in
            guard content.requested == connection, content.state == .connecting else { return false }
            content.state = .connected
            content.link = link
            content.mtu = mtu
            return true
        }
    }

    /// Notes that the connection has failed. Returns whether the app still waited for it.
    func connectionFailed(_ connection: ConnectionIdentifier) -> Bool {
        content.withLock { content in
            guard content.requested == connection, content.state == .connecting else { return false }
            content.state = .disconnected
            content.requested = nil
            return true
        }
    }

    /// Returns whether the end of a connection is to be reported. If the app has cancelled the connection, its answer
    /// is reported, and not the loss of the link before it.
    func awaitsEnd(of connection: ConnectionIdentifier, isReconnecting: Bool) -> Bool {
        content.withLock { content in
            content.requested == connection && !(isReconnecting && content.state == .disconnecting)
        }
    }

    /// Discards the state of the connection that ended, and ends the sequences of its values. The next connection has
    /// other objects.
    func connectionEnded(isReconnecting: Bool) {
        let values = content.withLock { content in
            content.endConnection(isReconnecting: isReconnecting)
            return content.values
        }
        values?.finish()
    }

    // MARK: Changes by the peripheral

    func setMTU(_ mtu: Int) {
        content.withLock { $0.mtu = mtu }
    }

    /// Sets the name. Returns whether it has changed.
    func setName(_ name: String?) -> Bool {
        content.withLock { content in
            guard content.name != name else { return false }
            content.name = name
            return true
        }
    }

    func servicesChanged(in range: HandleRange) {
        let invalid = content.withLock { $0.database.invalidate(range) }
        endLostValues()
        tell { $0.peripheral(self, didModifyServices: invalid) }
    }

    /// Ends the sequences of characteristics that the connection no longer has.
    func endLostValues() {
        content.withLock { $0.values }?.finish { subject in
            guard let characteristic = subject as? CBCharacteristic else { return false }
            return !content.withLock { $0.database.contains(characteristic) }
        }
    }

    /// The source of the sequences of values. Most apps use none, and each discovery may create a peripheral.
    func broadcastOfValues() -> Broadcast<CBCharacteristicValue> {
        content.withLock { content in
            if let values = content.values { return values }
            let values = Broadcast<CBCharacteristicValue>()
            content.values = values
            return values
        }
    }

    func received(_ value: [UInt8], of handle: AttributeHandle) {
        guard let characteristic = content.withLock({ $0.database.characteristics[handle] }) else { return }
        let value = Data(value)
        let values = content.withLock { $0.values }
        characteristic.content.withLock { $0.value = value }
        tell { $0.peripheral(self, didUpdateValueFor: characteristic, error: nil) }
        values?.send(CBCharacteristicValue(characteristic: characteristic, value: value))
    }
}

extension CBPeripheral.Content {
    /// Discards the state of the connection that ended.
    fileprivate mutating func endConnection(isReconnecting: Bool) {
        connection += 1
        if !isReconnecting { requested = nil }
        state = isReconnecting || nextConnection != nil ? .connecting : .disconnected
        link = nil
        mtu = CBPeripheral.Content().mtu
        writesInFlight = 0
        owesReadiness = false
        database.invalidate()
    }
}
