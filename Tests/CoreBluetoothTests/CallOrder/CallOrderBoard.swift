import BLEATT
import BLEGATT
import BluetoothHost
import BluetoothTesting
import BluetoothTypes
import Foundation
import Synchronization

@testable import CoreBluetooth

/// The services that models of call order use.
enum Board {
    static let service: BluetoothUUID = "FFC0"
    static let otherService: BluetoothUUID = "FFC7"

    /// Indices of the characteristics.
    static let (command, value, long, described, notified, indicated) = (0, 1, 2, 3, 4, 5)

    static let definition = ServiceDefinition(
        uuid: service,
        characteristics: [
            characteristic("FFC1", [.write, .writeWithoutResponse]),
            characteristic("FFC2", [.read, .write]),
            characteristic("FFC3", [.read], value: .stored([UInt8](repeating: 3, count: 180))),
            characteristic("FFC4", [.read], value: .stored([4]), descriptors: (1...5).map(descriptor)),
            characteristic("FFC5", [.notify]),
            characteristic("FFC6", [.indicate]),
        ]
    )

    static let otherDefinition = ServiceDefinition(
        uuid: otherService,
        characteristics: [characteristic("FFC8", [.read], value: .stored([8]))]
    )

    private static func characteristic(
        _ uuid: BluetoothUUID,
        _ properties: CharacteristicProperties,
        value: CharacteristicDefinition.Value = .handled,
        descriptors: [DescriptorDefinition] = []
    ) -> CharacteristicDefinition {
        CharacteristicDefinition(
            uuid: uuid,
            properties: properties,
            permissions: [.read, .write],
            value: value,
            descriptors: descriptors
        )
    }

    /// Descriptors with long UUIDs, so that one response holds only some of them.
    private static func descriptor(_ number: Int) -> DescriptorDefinition {
        let uuid = BluetoothUUID("0000000\(number)-55A3-4F52-8A54-0CD1B8A7B1F0")
        return DescriptorDefinition(uuid: uuid!, value: .stored([UInt8(number)]))
    }
}

extension [UInt8] {
    /// A number in two bytes, least significant byte first, like a handle.
    init(number: Int) { self = [UInt8(truncatingIfNeeded: number), UInt8(truncatingIfNeeded: number >> 8)] }
}

extension AttributeHandle {
    var bytes: [UInt8] { [UInt8](number: Int(rawValue)) }
}

extension HandleRange {
    var bytes: [UInt8] { start.bytes + end.bytes }
}

/// A random generator shared by several tasks.
final class SharedGenerator: Sendable {
    private let generator: Mutex<SeededGenerator>

    init(_ generator: SeededGenerator) { self.generator = Mutex(generator) }

    func number(below bound: Int) -> Int { generator.withLock { Int.random(in: 0..<bound, using: &$0) } }

    /// A random delay up to a limit; no delay in half of the cases.
    func delay(upTo milliseconds: Int) -> Duration {
        number(below: 2) == 0 ? .zero : .milliseconds(number(below: milliseconds))
    }
}

/// A board and a phone in one virtual air, both recorded.
struct BoardAndPhone {
    let board: BackendDevice
    let phone: BackendDevice
    let service: PublishedService
    let random: SharedGenerator

    /// - Parameter listen: receives the board's events.
    init(
        _ world: World,
        _ conditions: LinkConditions,
        _ backend: (BackendDevice) -> HostPeripheral,
        listen: @escaping @Sendable (CoreBluetooth.PeripheralEvent, BackendDevice) -> Void
    ) async throws {
        random = SharedGenerator(world.makeGenerator())
        let board = try await BackendDevice(
            "board",
            in: world,
            controller: conditions.apply,
            // A short MTU, so that long values have several parts.
            configure: { $0.mtu = 65 }
        )
        self.board = board
        phone = try await BackendDevice("phone", in: world, controller: conditions.apply)
        let server = backend(board)
        let isOn = Mailroom<Void>()
        server.start { event in
            if case .stateChanged(.poweredOn) = event { isOn.post(()) }
            listen(event, board)
            return true
        }
        await isOn.next { $0 }
        service = try await outcome { server.publish(Board.definition, $0) }.get()
        _ = try await outcome { server.publish(Board.otherDefinition, $0) }.get()
        let payload = AdvertisementPayload(localName: "board", services: [Board.service])
        try await outcome { server.startAdvertising(payload, $0) }.get()
    }

    func handle(_ index: Int) -> AttributeHandle { service.characteristics[index].valueHandle }

    /// Connects the phone and waits until the host's own requests on the new link are answered.
    func connect(_ central: TestCentral, in world: World) async throws -> UUID {
        let peripheral = await central.find([Board.service]).identifier
        await central.connect(peripheral)
        try await world.sleep(for: .seconds(3))
        return peripheral
    }
}
