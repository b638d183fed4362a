import BLEATT
import BluetoothTypes

// Results of discovery procedures, taken from the cache of the server's database.

extension DiscoverServices {
    public mutating func cachedOutput(from services: [DiscoveredService]) -> [DiscoveredService]? {
        services.filter { $0.isPrimary == isPrimary }.map { $0.declaration }
    }
}

extension DiscoverServicesByUUID {
    public mutating func cachedOutput(from services: [DiscoveredService]) -> [DiscoveredService]? {
        services.filter { $0.isPrimary && $0.uuid == uuid }.map { $0.declaration }
    }
}

extension FindIncludedServices {
    public mutating func cachedOutput(from services: [DiscoveredService]) -> [IncludedService]? {
        guard range.isValid else { return nil }
        return services.flatMap { $0.includedServices }.filter { range.contains($0.declarationHandle) }
    }
}

extension DiscoverCharacteristics {
    public mutating func cachedOutput(from services: [DiscoveredService]) -> [DiscoveredCharacteristic]? {
        guard range.isValid else { return nil }
        let declared = services.flatMap { $0.characteristics }.filter {
            range.contains($0.handle) && $0.valueHandle <= range.end
        }
        var characteristics: [DiscoveredCharacteristic] = []
        for (index, characteristic) in declared.enumerated() {
            // Each characteristic ends before the next one, and the last with the range, as in discovery.
            let end = index + 1 < declared.count ? declared[index + 1].handle.rawValue - 1 : range.end.rawValue
            characteristics.append(
                DiscoveredCharacteristic(
                    uuid: characteristic.uuid,
                    handle: characteristic.handle,
                    valueHandle: characteristic.valueHandle,
                    endHandle: AttributeHandle(end),
                    properties: characteristic.properties
                )
            )
        }
        return uuid.map { uuid in characteristics.filter { $0.uuid == uuid } } ?? characteristics
    }
}

extension DiscoverDescriptors {
    /// The cache has only the descriptors of characteristics. The client requests any other range.
    public mutating func cachedOutput(from services: [DiscoveredService]) -> [DiscoveredDescriptor]? {
        guard range.isValid else { return nil }
        let characteristic = services.lazy.flatMap { $0.characteristics }.first {
            $0.descriptorRange.map { $0.start <= range.start && range.end <= $0.end } ?? false
        }
        return characteristic?.descriptors.filter { range.contains($0.handle) }
    }
}

extension DiscoverAll {
    public mutating func cachedOutput(from services: [DiscoveredService]) -> [DiscoveredService]? { services }
}

extension DiscoveredService {
    /// The service without its contents.
    fileprivate var declaration: DiscoveredService {
        DiscoveredService(uuid: uuid, isPrimary: isPrimary, handle: handle, endHandle: endHandle)
    }
}

extension HandleRange {
    fileprivate func contains(_ handle: AttributeHandle) -> Bool { start <= handle && handle <= end }
}
