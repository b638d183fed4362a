import BLEATT
import BluetoothTypes
import Foundation
import Testing

@testable import BLEGATT
@testable import CoreBluetooth

@Suite("Circular references between services")
struct CircularReferenceTests {
    /// Three services of a server, by their numbers from 0 on.
    struct Example: Sendable {
        /// The services that the server includes in each service.
        let includes: [[Int]]
        /// The order in which the app discovers the included services.
        let order: [Int]
        /// The included services of the app's objects.
        let expected: [[Int]]
    }

    private static let found = (1...3 as ClosedRange<UInt16>).map { number in
        DiscoveredService(
            uuid: BluetoothUUID(0xFFE0 + number),
            isPrimary: true,
            handle: AttributeHandle(number << 4),
            endHandle: AttributeHandle(number << 4 | 0x000F)
        )
    }

    /// Discovers the services and their included services.
    ///
    /// - Returns: the services, which are not kept alive.
    private static func discover(
        _ example: Example,
        of peripheral: CBPeripheral,
        _ fixture: CentralFixture
    ) throws -> [Weak<CBService>] {
        peripheral.discoverServices(nil)
        fixture.answer(.discoverServices(nil), .success(found))
        let services = try #require(peripheral.services)
        for number in example.order {
            peripheral.discoverIncludedServices(nil, for: services[number])
            let service = found[number]
            let included = example.includes[number].map { other in
                IncludedService(
                    uuid: found[other].uuid,
                    declarationHandle: service.handle,
                    handle: found[other].handle,
                    endHandle: found[other].endHandle
                )
            }
            let range = HandleRange(start: service.handle, end: service.endHandle)
            fixture.answer(.discoverIncludedServices(range), .success(included))
        }
        for (service, expected) in zip(services, example.expected) {
            #expect(service.includedServices == expected.map { services[$0] })
        }
        return services.map { Weak($0) }
    }

    @Test(
        "Circular references of a server are left out, so that its services are released with the connection",
        arguments: [
            Example(includes: [[0, 1], [2], [0, 1]], order: [0, 1, 2], expected: [[1], [2], []]),
            Example(includes: [[0, 1], [2], [0, 1]], order: [2, 1, 0], expected: [[1], [], [0, 1]]),
            Example(includes: [[1], [0], []], order: [0, 1, 0, 2], expected: [[1], [], []]),
            // A service that two others include is no circular reference.
            Example(includes: [[1, 2], [2], []], order: [0, 1, 2], expected: [[1, 2], [2], []]),
        ]
    )
    func circularReferencesAreLeftOut(example: Example) throws {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        let services = try Self.discover(example, of: peripheral, fixture)
        #expect(services.count == 3)
        fixture.deliver(.disconnected(peripheral.connection, Disconnection(error: nil, time: 1)))
        #expect(services.allSatisfy { $0.object == nil })
    }
}
