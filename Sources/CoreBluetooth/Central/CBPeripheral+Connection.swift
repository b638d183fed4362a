import BLEATT
import BluetoothHost
import BluetoothTypes
import Foundation

// The phases of a connection. Used on the manager's queue, except for the app's calls.
extension CBPeripheral {
    /// Handles the app's call to connect. The backend is called under the lock, so that calls from several threads
    /// reach it in the order of the resulting states.
    ///
    /// - Returns: the number of the request, and whether the connection exists already, so that the delegate is to be
    ///   called; nil if the peripheral is no longer valid.
    func wishConnection(_ request: ConnectionRequest) -> (number: UInt64, isConnected: Bool)? {
        content.withLock { content in
            guard content.manager != nil else { return nil }
            var request = request
            // As for an attempt that exists: without the option, the earlier request's choice stays.
            request.reconnects = request.reconnects ?? content.nextConnection?.request.reconnects
            let earlierRequests = content.nextConnection?.earlierRequests ?? content.requestCount
            content.requestCount += 1
            switch content.state {
            case .connected:
                // The other options concern attempts.
                if let reconnects = request.reconnects, let connection = content.requested {
                    backend?.setReconnects(reconnects, of: connection)
                }
                return (number: content.requestCount, isConnected: true)
            case .disconnecting:
                content.nextConnection = NextConnection(request: request, earlierRequests: earlierRequests)
            case .disconnected, .connecting: beginConnecting(request, &content)
            }
            return (number: content.requestCount, isConnected: false)
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
    /// - Returns: the number of requests that the end answers, if the backend was not asked for the connection yet, so
    ///   that it does not report the end; otherwise nil.
    func wishDisconnection() -> UInt64? {
        content.withLock { content in
            content.nextConnection = nil
            guard content.state == .connecting || content.state == .connected else { return nil }
            guard let connection = content.requested else {
                content.state = .disconnected
                return content.requestCount
            }
            content.state = .disconnecting
            backend?.cancelConnection(connection)
            return nil
        }
    }

    /// Discards the connection and any attempt, because the manager is no longer powered on or was released. No event
    /// reports the end. The backend ends what the app has requested after the links ended.
    ///
    /// - Parameter isInvalidated: whether the peripheral is no longer valid.
    /// - Returns: the number of requests that the end answers; nil if there was neither a connection nor an attempt.
    @discardableResult
    func discardConnection(isInvalidated: Bool) -> UInt64? {
        // In one step, so that a connection that the app requests on another thread is discarded too, or begins after
        // it.
        let (answered, values) = content.withLock { content in
            if isInvalidated { content.manager = nil }
            content.nextConnection = nil
            if let connection = content.requested { backend?.release(connection) }
            let answered: UInt64? = content.state == .disconnected ? nil : content.requestCount
            content.endConnection(isReconnecting: false)
            return (answered, content.values)
        }
        values?.finish()
        return answered
    }

    /// Begins the connection that the app requested while the last connection was ending, unless the app has cancelled
    /// it.
    func beginNextConnection() {
        content.withLock { content in
            guard let next = content.nextConnection, content.state == .connecting else { return }
            beginConnecting(next.request, &content)
        }
    }

    /// Notes that the connection was made.
    ///
    /// - Returns: the number of requests that it answers; nil if the app no longer wants it.
    func connectionMade(_ connection: ConnectionIdentifier, mtu: Int, on link: LinkIdentifier) -> UInt64? {
        content.withLock { content in
            guard content.requested == connection, content.state == .connecting else { return nil }
            content.state = .connected
            content.link = link
            content.mtu = mtu
            return content.requestCount
        }
    }

    /// The number of the app's requests, which the connection has answered; nil if the peripheral is not connected.
    var requestsOfConnection: UInt64? {
        content.withLock { $0.state == .connected ? $0.requestCount : nil }
    }

    /// Notes that the connection has failed.
    ///
    /// - Returns: the number of requests that the failure answers; nil if the app no longer waits for the connection.
    func connectionFailed(_ connection: ConnectionIdentifier) -> UInt64? {
        content.withLock { content in
            guard content.requested == connection, content.state == .connecting else { return nil }
            content.state = .disconnected
            content.requested = nil
            return content.requestCount
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
    ///
    /// - Returns: the number of requests that the end answers: those that do not wait for the next connection.
    func connectionEnded(isReconnecting: Bool) -> UInt64 {
        let (answered, values) = content.withLock { content in
            let answered = content.nextConnection?.earlierRequests ?? content.requestCount
            content.endConnection(isReconnecting: isReconnecting)
            return (answered, content.values)
        }
        values?.finish()
        return answered
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

    /// - Parameter number: the number of the change, for later commands.
    func servicesChanged(in range: HandleRange, number: UInt64) {
        let invalid = content.withLock { content in
            content.lastChange = number
            return content.database.invalidate(range)
        }
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
