import BLEATT
import BluetoothTypes
import Foundation

// The phases of a connection. Used on the manager's queue, except for the app's calls.
extension CBPeripheral {
    /// Handles the app's call to connect. The engine is called under the lock, so that calls from several threads reach
    /// it in the order of the resulting states.
    ///
    /// - Returns: whether the connection exists already, so that the delegate is to be called.
    func wishConnection(_ request: ConnectionRequest) -> Bool {
        content.withLock { content in
            switch content.state {
            case .connected: return true
            case .disconnecting: content.nextConnection = request
            case .disconnected, .connecting:
                content.state = .connecting
                content.nextConnection = nil
                engine?.connect(identifier, request)
            }
            return false
        }
    }

    /// Handles the app's call to disconnect.
    func wishDisconnection(tellsEngine: Bool) {
        content.withLock { content in
            content.nextConnection = nil
            guard content.state == .connecting || content.state == .connected else { return }
            content.state = .disconnecting
            if tellsEngine { engine?.cancelConnection(identifier) }
        }
    }

    /// Begins the connection that the app requested while the last connection was ending, unless the app has cancelled
    /// it.
    func beginNextConnection() {
        content.withLock { content in
            guard let next = content.nextConnection, content.state == .connecting else { return }
            content.nextConnection = nil
            engine?.connect(identifier, next)
        }
    }

    /// Handles the release of the manager: the connection has ended, and no event follows.
    func managerWasReleased() {
        wishDisconnection(tellsEngine: false)
        connectionEnded(isReconnecting: false)
        content.withLock { $0.manager = nil }
    }

    /// Notes that the connection was made. Returns whether the app still wants it.
    func connectionMade(mtu: Int) -> Bool {
        content.withLock { content in
            guard content.state == .connecting else { return false }
            content.state = .connected
            content.mtu = mtu
            return true
        }
    }

    /// Notes that the connection has failed. Returns whether the app still waited for it.
    func connectionFailed() -> Bool {
        content.withLock { content in
            guard content.state == .connecting else { return false }
            content.state = .disconnected
            return true
        }
    }

    /// Discards the state of the connection that ended, and ends the sequences of its values. The next connection has
    /// other objects.
    func connectionEnded(isReconnecting: Bool) {
        content.withLock { content in
            content.connection += 1
            content.state = isReconnecting || content.nextConnection != nil ? .connecting : .disconnected
            content.mtu = Content().mtu
            content.writesInFlight = 0
            content.owesReadiness = false
            content.database.invalidate()
        }
        content.withLock { $0.values }?.finish()
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
