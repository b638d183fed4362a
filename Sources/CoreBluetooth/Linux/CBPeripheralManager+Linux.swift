import BluetoothTypes
import Foundation

/// The connection or disconnection of a central.
public struct CBCentralChange: Sendable {
    /// The central.
    public let central: CBCentral
    /// Whether the central has connected. If false, it has disconnected.
    public let isConnected: Bool
}

extension CBPeripheralManager {
    /// The functions beyond Apple's API.
    public var linux: Linux { Linux(manager: self) }

    /// The functions of a peripheral manager beyond Apple's API, and its events as async sequences. The delegate is
    /// called as well.
    ///
    /// Each sequence holds up to 256 elements for a slow reader. If more arrive, the oldest are dropped and counted by
    /// ``/BLE/Events/droppedCount``. A sequence ends when the manager is released. A cancelled reader does not end it
    /// for others. ``adapterEvents`` is a sequence of the adapter and ends when the adapter's last manager is released.
    ///
    /// A task that uses the manager to create a sequence keeps the manager, so the sequence does not end. Create the
    /// sequence outside of the task.
    public struct Linux: Sendable {
        private static let limit = 256
        let manager: CBPeripheralManager

        /// Each new state of the manager; see also ``CBManager/state``.
        public var states: Events<CBManagerState> { manager.states.sequence(limit: Linux.limit) }

        /// The centrals that connect or disconnect from now on, whether or not they use a service.
        public var centralChanges: Events<CBCentralChange> { manager.centralChanges.sequence(limit: Linux.limit) }

        /// Returns the address by which the host knows a central.
        public func address(of central: CBCentral) -> DeviceAddress? {
            manager.backend?.address(of: central.identifier)
        }

        /// Ends all links of a central, after the values of earlier calls of
        /// `updateValue(_:for:onSubscribedCentrals:)`.
        ///
        /// A central that does not take these values delays the end of its links by at most 2 s. Calls that follow have
        /// no effect on the links.
        public func disconnect(_ central: CBCentral) { manager.backend?.disconnect(central.identifier) }

        /// Advertises exactly this data; see
        /// ``CBPeripheralManagerDelegate/peripheralManagerDidStartAdvertising(_:error:)``.
        ///
        /// If `advertisingData` or `scanResponse` is longer than 31 bytes, both are sent together as extended
        /// advertising data, of at most 245 bytes. The controller must support extended advertising then.
        ///
        /// - Parameters:
        ///   - advertisingData: the data that is sent to all scanners.
        ///   - scanResponse: the data that is sent in answer to scan requests.
        ///   - interval: 20 ms to 10.24 s; nil for the host's default.
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
