import ATT
import BluetoothTypes
import Foundation

// How a connection comes and goes; on the manager's queue, but for what the app asks.
extension CBPeripheral {
    /// What a wish to connect leads to.
    enum Wish {
        case begin
        /// The connection is there already.
        case confirm
        /// The connection before has to end first.
        case wait
    }

    func wishConnection(_ request: ConnectionRequest) -> Wish {
        content.withLock { content in
            switch content.state {
            case .connected: return .confirm
            case .disconnecting:
                content.nextConnection = request
                return .wait
            case .disconnected, .connecting:
                content.state = .connecting
                return .begin
            }
        }
    }

    /// Takes back the wish to be connected; whether there is anything to end.
    func wishDisconnection() -> Bool {
        content.withLock { content in
            content.nextConnection = nil
            guard content.state == .connecting || content.state == .connected else { return false }
            content.state = .disconnecting
            return true
        }
    }

    /// Whether the app still wants the connection that was made.
    func connectionMade(mtu: Int) -> Bool {
        content.withLock { content in
            guard content.state == .connecting else { return false }
            content.state = .connected
            content.mtu = mtu
            return true
        }
    }

    /// Whether the app still waits for the connection that failed.
    func connectionFailed() -> Bool {
        content.withLock { content in
            guard content.state == .connecting else { return false }
            content.state = .disconnected
            return true
        }
    }

    /// Forgets what belonged to the connection that ended; gives what the app has asked of the next one meanwhile.
    func connectionEnded(isReconnecting: Bool) -> ConnectionRequest? {
        content.withLock { content in
            content.connection += 1
            content.state = isReconnecting || content.nextConnection != nil ? .connecting : .disconnected
            content.mtu = Content().mtu
            content.writesInFlight = 0
            content.owesReadiness = false
            content.database.invalidate()
            defer { content.nextConnection = nil }
            return content.nextConnection
        }
    }

    // MARK: What the peripheral does

    func setMTU(_ mtu: Int) {
        content.withLock { $0.mtu = mtu }
    }

    /// Takes a name; whether it is another one.
    func setName(_ name: String?) -> Bool {
        content.withLock { content in
            guard content.name != name else { return false }
            content.name = name
            return true
        }
    }

    func servicesChanged(in range: HandleRange) {
        let invalid = content.withLock { $0.database.invalidate(range) }
        tell { $0.peripheral(self, didModifyServices: invalid) }
    }

    func received(_ value: [UInt8], of handle: AttributeHandle) {
        guard let characteristic = content.withLock({ $0.database.characteristics[handle] }) else { return }
        let value = Data(value)
        characteristic.content.withLock { $0.value = value }
        tell { $0.peripheral(self, didUpdateValueFor: characteristic, error: nil) }
        values.send(CBCharacteristicValue(characteristic: characteristic, value: value))
    }
}
