import BLE
import BluetoothHost
import BluetoothTesting
import Synchronization
import Testing

/// A peripheral with values that need security, and a central that accesses them.
struct LockAndPhone {
    static let service: BluetoothUUID = "10C4"
    static let open: BluetoothUUID = "10C5"
    static let encrypted: BluetoothUUID = "10C6"
    static let authenticated: BluetoothUUID = "10C7"

    let world: World
    let lock: Adapter
    let phone: Adapter
    let lockDevice: Device
    let phoneDevice: Device
    let address: DeviceAddress
    let phoneAddress: DeviceAddress
    let handles: [BluetoothUUID: AttributeHandle]
    let lockEvents: SecurityLog
    let phoneEvents: SecurityLog
    private let advertising: AdvertisingSet

    init(
        in world: World,
        lock configureLock: (inout Adapter.Configuration) -> Void = { _ in },
        phone configurePhone: (inout Adapter.Configuration) -> Void = { _ in }
    ) async throws {
        self.world = world
        lockDevice = world.device("lock")
        phoneDevice = world.device("phone")
        lock = try await lockDevice.openAdapter(configureLock)
        phone = try await phoneDevice.openAdapter(configurePhone)
        lockEvents = await SecurityLog(lock)
        phoneEvents = await SecurityLog(phone)
        let published = try await lock.peripheral.publish([LockAndPhone.definition])
        var handles: [BluetoothUUID: AttributeHandle] = [:]
        for characteristic in published[0].characteristics {
            handles[characteristic.uuid] = characteristic.valueHandle
        }
        self.handles = handles
        address = try await lock.information.identityAddress
        phoneAddress = try await phone.information.identityAddress
        advertising = try await lock.peripheral.startAdvertising(
            AdvertisementConfiguration(interval: .milliseconds(30))
        )
    }

    private static var definition: ServiceDefinition {
        let values: [(BluetoothUUID, AttributePermissions)] = [
            (open, [.read, .write]),
            (encrypted, [.readEncrypted, .writeEncrypted]),
            (authenticated, [.readAuthenticated, .writeAuthenticated]),
        ]
        return ServiceDefinition(
            uuid: service,
            characteristics: values.map { uuid, permissions in
                CharacteristicDefinition(
                    uuid: uuid,
                    properties: [.read, .write, .notify],
                    permissions: permissions,
                    value: .stored([0x2A])
                )
            }
        )
    }

    func connect() async throws -> RemotePeripheral {
        try await phone.central.connect(to: address)
    }

    func handle(_ uuid: BluetoothUUID) throws -> AttributeHandle { try #require(handles[uuid]) }

    /// Ends the link and waits until the lock has detected the end as well.
    func disconnect(_ peer: RemotePeripheral) async throws {
        await peer.disconnect()
        while !(await lock.host.linkIdentifiers()).isEmpty { try await world.sleep(for: .milliseconds(10)) }
    }

    /// The phone as a client of the lock.
    func client() async throws -> ClientID {
        while true {
            if let client = await lock.host.linkIdentifiers().first { return client }
            try await world.sleep(for: .milliseconds(5))
        }
    }

    /// Runs `body` in a simulated world, and checks after each step that every host's state is consistent.
    static func run(
        seed: UInt64 = 1,
        limit: Duration = .seconds(600),
        _ body: @escaping @Sendable (World) async throws -> Void
    ) throws {
        let world = World(seed: seed)
        defer { world.close() }
        let contradiction = Mutex<String?>(nil)
        try world.run(limit: limit) {
            for adapter in world.devices.flatMap(\.adapters) {
                guard let found = adapter.host.assumeIsolated({ $0.contradiction() }) else { continue }
                contradiction.withLock { $0 = $0 ?? found }
            }
        } _: {
            try await body(world)
        }
        #expect(contradiction.withLock { $0 } == nil)
    }
}

/// The security events of an adapter's links, in their order.
final class SecurityLog: Sendable {
    private let recorded = Mutex<[SecurityEvent]>([])

    init(_ adapter: Adapter) async {
        _ = await adapter.host.observeSecurity { [self] event in recorded.withLock { $0.append(event) } }
    }

    var all: [SecurityEvent] { recorded.withLock { $0 } }

    func clear() { recorded.withLock { $0 = [] } }

    var results: [PairingResult] {
        all.compactMap { if case .paired(_, let result) = $0 { result } else { nil } }
    }

    var failures: [SecurityError] {
        all.compactMap { if case .pairingFailed(_, _, let error) = $0 { error } else { nil } }
    }

    var encryptions: [KeyStrength?] {
        all.compactMap { if case .encryptionChanged(_, let strength) = $0 { .some(strength) } else { nil } }
    }

    var missingKeys: Int {
        all.count { if case .keyMissing = $0 { true } else { false } }
    }
}
