import BLEATT
import BluetoothTypes
import Testing

@testable import BLEGATT
@testable import CoreBluetooth

@Suite("The services of one connection")
struct RemoteDatabaseTests {
    private let fixture = CentralFixture()
    private let peripheral: CBPeripheral

    init() {
        peripheral = fixture.makePeripheral()
    }

    /// A service with 32 handles, the first of which is `32 * number + 1`.
    private static func service(_ number: Int) -> DiscoveredService {
        DiscoveredService(
            uuid: "180D",
            isPrimary: true,
            handle: AttributeHandle(UInt16(32 * number + 1)),
            endHandle: AttributeHandle(UInt16(32 * number + 32))
        )
    }

    /// Returns a database of services, each with seven characteristics that notify. Each of these has a descriptor.
    private func makeDatabase(of found: [DiscoveredService]) throws -> RemoteDatabase {
        var database = RemoteDatabase()
        database.add(found, areAll: true, of: peripheral)
        let services = try #require(database.services)
        for (service, discovered) in zip(services, found) {
            let characteristics = (0..<7).map { number in
                let handle = discovered.handle.rawValue + 3 * UInt16(number)
                return DiscoveredCharacteristic(
                    uuid: "2A37",
                    handle: AttributeHandle(handle + 1),
                    valueHandle: AttributeHandle(handle + 2),
                    endHandle: AttributeHandle(handle + 3),
                    properties: .notify
                )
            }
            try database.add(characteristics, wanted: nil, to: service)
            for (object, characteristic) in zip(service.characteristics ?? [], characteristics) {
                let descriptor = DiscoveredDescriptor(uuid: "2902", handle: characteristic.endHandle)
                try database.add([descriptor], to: object)
                try database.setNotifying(true, of: object)
            }
        }
        return database
    }

    @Test("Invalid handles of a large database remove the services that overlap them, and no others")
    func invalidHandlesRemoveTheServicesThatOverlapThem() throws {
        var database = try makeDatabase(of: (0..<2000).map(Self.service))
        let services = try #require(database.services)
        let range = HandleRange(start: Self.service(1).endHandle, end: Self.service(1998).handle)
        let invalid = database.invalidate(range)
        #expect(invalid.map { ObjectIdentifier($0) } == services[1...1998].map { ObjectIdentifier($0) })
        let kept = [services[0], services[1999]]
        #expect(database.services?.map { ObjectIdentifier($0) } == kept.map { ObjectIdentifier($0) })
        for service in invalid {
            let characteristics = service.characteristics ?? []
            #expect(!database.contains(service) && characteristics.count == 7)
            #expect(!characteristics.contains { database.contains($0) || $0.isNotifying })
        }
        for service in kept {
            let characteristics = service.characteristics ?? []
            #expect(database.contains(service) && characteristics.count == 7)
            #expect(characteristics.allSatisfy { database.contains($0) && $0.isNotifying })
        }
        #expect(database.characteristics.count == 14)
        #expect(database.descriptors.count == 14)
    }

    @Test("A service that ends before it begins is removed like others")
    func serviceThatEndsBeforeItBeginsIsRemoved() throws {
        var database = try makeDatabase(of: [Self.service(0)])
        let service = try #require(database.services?.first)
        let malformed = IncludedService(uuid: "180F", declarationHandle: 0x0002, handle: 0x0050, endHandle: 0x0040)
        try database.add([malformed], wanted: nil, to: service)
        let invalid = database.invalidate(.all)
        #expect(invalid.count == 2)
        #expect(database.services?.isEmpty == true && database.characteristics.isEmpty && database.descriptors.isEmpty)
        let none = database.invalidate(.all)
        #expect(none.isEmpty)
    }
}
