import BLEGATT
import BluetoothTypes

/// The saved form of a peer's database, as this host's client has discovered it.
struct DatabaseCacheEntry: Codable {
    let cache: DatabaseCache

    private enum Key: String, CodingKey {
        case hash
        case services
    }

    init(_ cache: DatabaseCache) {
        self.cache = cache
    }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        cache = DatabaseCache(
            hash: try container.decodeNumber(.hash),
            services: try container.decode([Service].self, forKey: .services).map(\.discovered)
        )
        guard cache.attributeCount <= DiscoveryLimits.attributes else {
            throw container.problem(.services, "these are more than \(DiscoveryLimits.attributes) attributes")
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encodeIfPresent(cache.hash?.digits, forKey: .hash)
        try container.encode(cache.services.map(Service.init), forKey: .services)
    }
}

/// The names of the members are those of the types that were discovered.
private struct Service: Codable {
    let uuid: UUIDEntry
    let isPrimary: Bool
    let handle: UInt16
    let endHandle: UInt16
    let includedServices: [Include]
    let characteristics: [Characteristic]

    init(_ service: DiscoveredService) {
        uuid = UUIDEntry(uuid: service.uuid)
        isPrimary = service.isPrimary
        handle = service.handle.rawValue
        endHandle = service.endHandle.rawValue
        includedServices = service.includedServices.map(Include.init)
        characteristics = service.characteristics.map(Characteristic.init)
    }

    var discovered: DiscoveredService {
        DiscoveredService(
            uuid: uuid.uuid,
            isPrimary: isPrimary,
            handle: AttributeHandle(handle),
            endHandle: AttributeHandle(endHandle),
            includedServices: includedServices.map(\.discovered),
            characteristics: characteristics.map(\.discovered)
        )
    }
}

private struct Include: Codable {
    let uuid: UUIDEntry
    let declarationHandle: UInt16
    let handle: UInt16
    let endHandle: UInt16

    init(_ service: IncludedService) {
        uuid = UUIDEntry(uuid: service.uuid)
        declarationHandle = service.declarationHandle.rawValue
        handle = service.handle.rawValue
        endHandle = service.endHandle.rawValue
    }

    var discovered: IncludedService {
        IncludedService(
            uuid: uuid.uuid,
            declarationHandle: AttributeHandle(declarationHandle),
            handle: AttributeHandle(handle),
            endHandle: AttributeHandle(endHandle)
        )
    }
}

private struct Characteristic: Codable {
    let uuid: UUIDEntry
    let handle: UInt16
    let valueHandle: UInt16
    let endHandle: UInt16
    let properties: UInt8
    let descriptors: [Descriptor]

    init(_ characteristic: DiscoveredCharacteristic) {
        uuid = UUIDEntry(uuid: characteristic.uuid)
        handle = characteristic.handle.rawValue
        valueHandle = characteristic.valueHandle.rawValue
        endHandle = characteristic.endHandle.rawValue
        properties = characteristic.properties.rawValue
        descriptors = characteristic.descriptors.map(Descriptor.init)
    }

    var discovered: DiscoveredCharacteristic {
        DiscoveredCharacteristic(
            uuid: uuid.uuid,
            handle: AttributeHandle(handle),
            valueHandle: AttributeHandle(valueHandle),
            endHandle: AttributeHandle(endHandle),
            properties: CharacteristicProperties(rawValue: properties),
            descriptors: descriptors.map(\.discovered)
        )
    }
}

private struct Descriptor: Codable {
    let uuid: UUIDEntry
    let handle: UInt16

    init(_ descriptor: DiscoveredDescriptor) {
        uuid = UUIDEntry(uuid: descriptor.uuid)
        handle = descriptor.handle.rawValue
    }

    var discovered: DiscoveredDescriptor {
        DiscoveredDescriptor(uuid: uuid.uuid, handle: AttributeHandle(handle))
    }
}
