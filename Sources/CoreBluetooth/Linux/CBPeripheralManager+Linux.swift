import BluetoothTypes
import Foundation

/// A central has connected to this host, or is gone.
public struct CBCentralChange: Sendable {
    public let central: CBCentral
    public let isConnected: Bool
}

extension CBPeripheralManager {
    /// What Core Bluetooth on Linux has beyond Apple's.
    public var linux: Linux { Linux(manager: self) }

    /// What a peripheral manager can do here beyond Apple's API, and an async view of it. The delegate is called all the same.
    ///
    /// Each sequence holds up to 256 elements for a slow reader. If more arrive, the oldest are dropped and counted by
    /// ``Events/droppedCount``. A sequence ends when the manager is released. A cancelled reader does not end it for others.
    /// ``adapterEvents`` is a sequence of the adapter, and ends when its last manager is released. A task that makes a
    /// sequence of a manager keeps the manager, so the sequence does not end: make the sequence outside of the task.
    public struct Linux: Sendable {
        private static let limit = 256
        let manager: CBPeripheralManager

        /// Each new state of the manager; see also ``CBManager/state``.
        public var states: Events<CBManagerState> { manager.states.sequence(limit: Linux.limit) }

        /// The centrals that connect from now on, and that are gone, whether or not they use a service.
        public var centralChanges: Events<CBCentralChange> { manager.centralChanges.sequence(limit: Linux.limit) }

        /// Under which address the host knows a central.
        public func address(of central: CBCentral) -> DeviceAddress? { manager.engine?.address(of: central.identifier) }

        /// Ends the link of a central.
        public func disconnect(_ central: CBCentral) { manager.engine?.disconnect(central.identifier) }

        /// Advertises exactly these data; see ``CBPeripheralManagerDelegate/peripheralManagerDidStartAdvertising(_:error:)``.
        ///
        /// - Parameters:
        ///   - advertisingData: up to 31 octets; more, up to what the controller takes, where it has extended advertising.
        ///   - scanResponse: up to 31 octets; there is none beside longer advertising data.
        ///   - interval: 20 ms to 10.24 s; nil for the host's own choice.
        public func startAdvertising(
            _ advertisingData: AdvertisingData,
            scanResponse: AdvertisingData = AdvertisingData(),
            interval: Duration? = nil
        ) {
            guard manager.acceptsCommands() else { return }
            manager.startAdvertising(
                AdvertisementPayload(advertisingData, scanResponse: scanResponse, interval: interval)
            )
        }
    }
}
