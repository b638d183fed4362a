import ATT
import BluetoothTypes

/// A server's database as a client has discovered it, good for as long as the server's Database Hash is the same
/// (Vol 3, Part G, 2.5.2).
public struct DatabaseCache: Hashable, Sendable {
    /// The Database Hash, most significant octet first; nil where the server has none, and only Service Changed tells of
    /// changes.
    public var hash: UInt128?
    /// In the order of their handles, with all that is in them.
    public var services: [DiscoveredService]

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
