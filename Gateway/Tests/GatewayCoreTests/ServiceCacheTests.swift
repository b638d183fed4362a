import BLE
import Testing

@testable import GatewayCore

struct ServiceCacheTests {
    /// A service with this number of attributes.
    private func service(attributeCount: Int) -> RemoteService {
        let handle = AttributeHandle(rawValue: 1)
        let characteristic = RemoteCharacteristic(
            uuid: "2A6E",
            handle: handle,
            valueHandle: handle,
            endHandle: handle,
            properties: .read,
            descriptors: [RemoteDescriptor(uuid: "2902", handle: handle)]
        )
        return RemoteService(
            uuid: "181A",
            isPrimary: true,
            handle: handle,
            endHandle: handle,
            characteristics: Array(repeating: characteristic, count: (attributeCount - 1) / 2)
        )
    }

    private func known(_ cache: ServiceCache, in addresses: ClosedRange<UInt64>) -> [UInt64] {
        addresses.filter { cache.services(of: $0) != nil }
    }

    @Test func oldestServicesAreForgottenBeyondTheNumberOfDevices() {
        let cache = ServiceCache()
        let count = UInt64(ServiceCache.limit)
        for address in 1...count { cache.set([service(attributeCount: 3)], of: address) }
        // The first device is discovered again.
        cache.set([service(attributeCount: 5)], of: 1)
        cache.set([service(attributeCount: 3)], of: count + 1)
        #expect(known(cache, in: 1...count + 1) == [1] + Array(3...count + 1))
        #expect(cache.services(of: 1) == [service(attributeCount: 5)])
    }

    @Test func oldestServicesAreForgottenBeyondTheNumberOfAttributes() {
        let cache = ServiceCache()
        let (size, count) = (2001, UInt64(100))
        for address in 1...count { cache.set([service(attributeCount: size)], of: address) }
        let keptCount = UInt64(ServiceCache.attributeLimit / size)
        #expect(known(cache, in: 1...count) == Array(count - keptCount + 1...count))
        // Databases that were removed or replaced do not count.
        for address in 1...count { cache.remove(address) }
        for _ in 0..<100 { cache.set([service(attributeCount: size)], of: 1) }
        for address in 2...keptCount { cache.set([service(attributeCount: size)], of: address) }
        #expect(known(cache, in: 1...count) == Array(1...keptCount))
    }
}
