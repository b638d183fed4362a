import BluetoothTypes
import Foundation

/// What a scan has found.
public struct CBDiscovery: Sendable {
    public let peripheral: CBPeripheral
    /// Advertising data and scan response together, as they were sent.
    public let advertisingData: AdvertisingData
    public let isConnectable: Bool
    /// In dBm; nil where the controller does not know it.
    public let rssi: Int?

    init(peripheral: CBPeripheral, _ discovery: Discovery) {
        self.peripheral = peripheral
        advertisingData = discovery.advertisingData
        isConnectable = discovery.isConnectable
        rssi = discovery.rssi
    }
}

/// What becomes of a connection.
public struct CBConnectionChange: Sendable {
    public enum Kind: Sendable {
        case connected
        case failed((any Error)?)
        /// Without an error where the app wanted it.
        case disconnected((any Error)?, isReconnecting: Bool)
    }

    public let peripheral: CBPeripheral
    public let kind: Kind
}

extension CBCentralManager {
    /// What Core Bluetooth on Linux has beyond Apple's.
    public var linux: Linux { Linux(manager: self) }

    /// What a central manager can do here beyond Apple's API, and an async view of it. The delegate is called all the same.
    ///
    /// Each sequence holds up to 256 elements for a slow reader. If more arrive, the oldest are dropped and counted by
    /// ``Events/droppedCount``. A sequence ends when the manager is released. A cancelled reader does not end it for others.
    /// ``adapterEvents`` is a sequence of the adapter, and ends when its last manager is released. A task that makes a
    /// sequence of a manager keeps the manager, so the sequence does not end: make the sequence outside of the task.
    public struct Linux: Sendable {
        private static let limit = 256
        let manager: CBCentralManager

        /// Each new state of the manager; see also ``CBManager/state``.
        public var states: Events<CBManagerState> { manager.states.sequence(limit: Linux.limit) }

        /// What scans find from now on; see ``CBCentralManager/scanForPeripherals(withServices:options:)``.
        public var discoveries: Events<CBDiscovery> { manager.discoveries.sequence(limit: Linux.limit) }

        /// What becomes of connections from now on.
        public var connectionChanges: Events<CBConnectionChange> {
            manager.connectionChanges.sequence(limit: Linux.limit)
        }

        /// Connects for no longer than `timeout`: after it the connection has failed with `CBError.connectionTimeout`, and
        /// nothing of it is left.
        public func connect(_ peripheral: CBPeripheral, options: [String: Any]? = nil, timeout: Duration) {
            guard manager.acceptsCommands(), manager.manages(peripheral) else { return }
            var request = ConnectionRequest(options: options)
            request.timeout = timeout
            manager.connect(peripheral, request)
        }

        /// Connects, and waits until the connection is there. Cancelling the task ends the attempt.
        ///
        /// - Parameter timeout: how long to try; nil for as long as it takes.
        /// - Throws: why the connection failed; `CBError.operationNotSupported` while the manager is not powered on.
        public func connected(_ peripheral: CBPeripheral, timeout: Duration? = nil) async throws {
            guard manager.state == .poweredOn, manager.manages(peripheral) else {
                throw CBError.described(.operationNotSupported)
            }
            if peripheral.state == .connected { return }
            let changes = manager.connectionChanges.sequence(limit: Linux.limit) { $0.peripheral === peripheral }
            if let timeout { connect(peripheral, timeout: timeout) } else { manager.connect(peripheral) }
            try await withTaskCancellationHandler {
                for await change in changes {
                    switch change.kind {
                    case .connected: return
                    case .failed(let error): throw error ?? CBError.described(.connectionFailed)
                    // The end of an earlier connection: this one is begun after it, and may be there already.
                    case .disconnected where [.connecting, .connected].contains(peripheral.state): continue
                    case .disconnected(let error, _): throw error ?? CBError.described(.operationCancelled)
                    }
                }
                throw CancellationError()
            } onCancel: {
                manager.cancelPeripheralConnection(peripheral)
            }
        }
    }
}
