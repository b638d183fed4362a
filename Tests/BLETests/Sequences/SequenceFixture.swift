import BluetoothHost
import BluetoothTesting
import Testing

@testable import BLE

/// The environment of a test's adapters.
enum Place: String, CaseIterable, Sendable, CustomTestStringConvertible {
    /// In one thread, in simulated time.
    case simulated
    /// On virtual controllers, with the threads of tasks and event loops.
    case threads

    var testDescription: String { rawValue }
}

/// Two connected adapters, and a service with two characteristics that notify and indicate.
final class SequenceFixture: Sendable {
    static let service = ServiceDefinition(
        uuid: "9F3C0001-5C3A-4F8E-9A52-0D4A1E6C7B11",
        characteristics: (2...3).map { number in
            CharacteristicDefinition(
                uuid: BluetoothUUID("9F3C000\(number)-5C3A-4F8E-9A52-0D4A1E6C7B11") ?? "FFFF",
                properties: [.notify, .indicate],
                permissions: [],
                value: .stored([])
            )
        }
    )

    let server: Adapter
    let central: Adapter
    let peer: RemotePeripheral
    let client: ClientID
    let characteristics: [RemoteCharacteristic]
    private let world: World?

    private init(_ world: World?, server: Adapter, central: Adapter) async throws {
        self.world = world
        self.server = server
        self.central = central
        _ = try await server.peripheral.publish([SequenceFixture.service])
        let events = await server.peripheral.events()
        let advertising = try await server.peripheral.startAdvertising(
            AdvertisementConfiguration(interval: .milliseconds(20))
        )
        peer = try await central.central.connect(to: try await server.information.identityAddress)
        await advertising.stop()
        var client: ClientID?
        for await case .connected(let identifier, _) in events {
            client = identifier
            break
        }
        self.client = try #require(client)
        let services = try await peer.discoverAll()
        characteristics = try #require(services.last).characteristics
    }

    /// Runs `body` with a fixture, and closes its adapters.
    static func run(
        _ place: Place,
        name: String = #function,
        _ body: @escaping @Sendable (SequenceFixture) async throws -> Void
    ) async throws {
        switch place {
        case .simulated:
            try World.run(seed: 3) { world in
                let server = try await world.device("server").openAdapter()
                let central = try await world.device("central").openAdapter()
                try await body(SequenceFixture(world, server: server, central: central))
            }
        case .threads:
            let specification = AdapterSpecification.virtual(name: "sequences \(name)")
            let server = try await Adapter.open(specification)
            let central = try await Adapter.open(specification)
            let fixture = try await SequenceFixture(nil, server: server, central: central)
            try await body(fixture)
            await central.close()
            await server.close()
        }
    }

    /// The executor of the tasks that a test starts.
    var taskExecutor: (any TaskExecutor)? { world?.taskExecutor }

    /// Waits until a condition is true.
    func wait(until condition: @Sendable () async throws -> Bool) async throws {
        while try await !condition() {
            if let world {
                try await world.sleep(for: .milliseconds(10))
            } else {
                try await Task.sleep(for: .milliseconds(1))
            }
        }
    }

    /// Sends numbered values from the server.
    func notify(_ numbers: some Sequence<UInt8>, of index: Int = 0) async throws {
        for number in numbers { try await server.peripheral.notify([number], of: characteristics[index].valueHandle) }
    }

    /// Waits until the central has received what the server has sent.
    func waitForDelivery() async throws {
        // An indication follows the notifications, so its confirmation follows their delivery.
        let subscription = try await peer.subscribe(to: characteristics[1], preferring: .indication)
        try await server.peripheral.indicate([0], of: characteristics[1].valueHandle)
        await subscription.cancel()
    }

    /// The resources that the central holds for sequences.
    func held() async -> HeldForSequences {
        HeldForSequences(await central.host.inspect(), endOfConnection: peer.ending)
    }
}

/// The observers, subscribers, waiting calls and tasks of a host.
struct HeldForSequences: Hashable, Sendable {
    let observers: Int
    let endObservers: Int
    let subscribers: Int
    let scans: Int
    let advertisements: Int
    let waiters: Int

    /// Calls and observers that wait for the end of the peer's connection.
    private(set) var connectionWaiters: Int
    /// Tasks of the host.
    private(set) var tasks: Int?

    /// The same without resources that may outlast a call for a moment: the tasks that it started, and the observers of
    /// objects that the test still holds.
    var ofCalls: HeldForSequences {
        var held = self
        held.tasks = nil
        held.connectionWaiters = 0
        return held
    }

    init(_ inspection: HostInspection, endOfConnection: ConnectionEnd) {
        connectionWaiters = endOfConnection.count
        tasks = inspection.tasks
        observers = inspection.hostObservers + inspection.serverObservers + inspection.securityObservers
        endObservers = inspection.endObservers
        subscribers = inspection.subscribers
        scans = inspection.scans
        advertisements = inspection.advertisements
        waiters = inspection.waiters
    }
}
