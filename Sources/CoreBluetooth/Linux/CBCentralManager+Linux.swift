import BluetoothTypes
import Foundation

/// A peripheral that a scan has heard.
public struct CBDiscovery: Sendable {
    /// The peripheral. An app that wants to connect to it keeps the object.
    public let peripheral: CBPeripheral
    /// The advertising data and the scan response together, as they were sent.
    public let advertisingData: AdvertisingData
    /// Whether the peripheral accepts connections.
    public let isConnectable: Bool
    /// In dBm; nil if the controller does not know it.
    public let rssi: Int?

    init(peripheral: CBPeripheral, _ discovery: Discovery) {
        self.peripheral = peripheral
        advertisingData = discovery.content.data
        isConnectable = discovery.isConnectable
        rssi = discovery.rssi
    }
}

/// A change of a connection.
public struct CBConnectionChange: Sendable {
    /// The kind of a change.
    public enum Kind: Sendable {
        /// The peripheral is connected.
        case connected
        /// An attempt to connect has failed.
        case failed((any Error)?)
        /// The connection has ended; without an error if the app has ended it.
        case disconnected((any Error)?, isReconnecting: Bool)
    }

    /// The peripheral whose connection has changed.
    public let peripheral: CBPeripheral
    /// The kind of the change.
    public let kind: Kind
    /// The number of the app's requests to connect that the change answers. The end of a connection does not answer the
    /// requests for the next one.
    let answeredRequests: UInt64
}

extension CBCentralManager {
    /// The functions beyond Apple's API.
    public var linux: Linux { Linux(manager: self) }

    /// The functions of a central manager beyond Apple's API, and its events as async sequences. The delegate is called
    /// as well.
    ///
    /// Each sequence holds up to 256 elements for a slow reader. If more arrive, the oldest are dropped and counted by
    /// ``/BLE/Events/droppedCount``. A sequence ends when the manager is released. A cancelled reader does not end it
    /// for others. ``adapterEvents`` is a sequence of the adapter and ends when the adapter's last manager is released.
    ///
    /// A task that uses the manager to create a sequence keeps the manager, so the sequence does not end. Create the
    /// sequence outside of the task.
    public struct Linux: Sendable {
        private static let limit = 256
        let manager: CBCentralManager

        /// Each new state of the manager; see also ``CBManager/state``.
        public var states: Events<CBManagerState> { manager.states.sequence(limit: Linux.limit) }

        /// The peripherals that scans find from now on; see
        /// ``CBCentralManager/scanForPeripherals(withServices:options:)``.
        public var discoveries: Events<CBDiscovery> { manager.discoveries.sequence(limit: Linux.limit) }

        /// The changes of connections from now on.
        public var connectionChanges: Events<CBConnectionChange> {
            manager.connectionChanges.sequence(limit: Linux.limit)
        }

        /// Connects within `timeout`. After that time, the attempt ends and the connection fails with
        /// `CBError.connectionTimeout`. If there is an attempt already, it continues with this timeout.
        public func connect(_ peripheral: CBPeripheral, options: [String: Any]? = nil, timeout: Duration) {
            var request = ConnectionRequest(options: options)
            request.timeout = timeout
            manager.connect(peripheral, request)
        }

        /// Connects, and waits for the connection. Cancelling the task ends the attempt.
        ///
        /// If an earlier connection is still ending, this one begins after it. Reports about the earlier one do
        /// not end the wait.
        ///
        /// - Parameters:
        ///   - peripheral: a peripheral of this manager.
        ///   - timeout: how long to try; nil for no limit.
        /// - Throws: the reason why the connection failed; `CBError.operationNotSupported` if the manager is not
        ///   powered on, or the peripheral belongs to another manager.
        public func connected(_ peripheral: CBPeripheral, timeout: Duration? = nil) async throws {
            guard manager.state == .poweredOn, manager.manages(peripheral) else {
                throw CBError.described(.operationNotSupported)
            }
            if peripheral.state == .connected { return }
            // Created before the request, so that no answer is missed.
            let changes = manager.connectionChanges.sequence(limit: Linux.limit) { $0.peripheral === peripheral }
            guard let request = manager.connect(peripheral, ConnectionRequest(timeout: timeout)) else {
                throw CBError.described(.operationNotSupported)
            }
            try await withTaskCancellationHandler {
                // Changes that answer only earlier requests belong to an earlier connection.
                for await change in changes where change.answeredRequests >= request {
                    switch change.kind {
                    case .connected: return
                    case .failed(let error): throw error ?? CBError.described(.connectionFailed)
                    case .disconnected(_, isReconnecting: true): continue
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
