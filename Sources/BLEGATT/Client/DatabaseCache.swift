import BLEATT
import BluetoothTypes

/// A server's database as a client has discovered it. It is valid while the server's Database Hash stays the same
/// (Vol 3, Part G, 2.5.2).
public struct DatabaseCache: Hashable, Sendable {
    /// The Database Hash, most significant byte first. If the server has none, this is nil and only Service Changed
    /// reports changes.
    public var hash: UInt128?
    /// The services in the order of their handles, with their contents.
    public var services: [DiscoveredService]

    /// Creates a cache of discovered services.
    public init(hash: UInt128?, services: [DiscoveredService]) {
        self.hash = hash
        self.services = services
    }

    /// The number of services, includes, characteristics and descriptors.
    package var attributeCount: Int {
        services.reduce(0) { count, service in
            service.characteristics.reduce(count + 1 + service.includedServices.count) {
                $0 + 1 + $1.descriptors.count
            }
        }
    }

    /// A characteristic of the server's GATT service (Vol 3, Part G, 7).
    func genericAttribute(_ uuid: BluetoothUUID) -> DiscoveredCharacteristic? {
        services.first { $0.uuid == .genericAttributeService }?.characteristics.first { $0.uuid == uuid }
    }
}
