import BLE
import BLEATT
import BLEGATT
import BLEKeyStore
import BluetoothHost
import BluetoothTesting
import BluetoothTypes
import Foundation
import Synchronization

@testable import CoreBluetooth

/// The events of a backend in order, and the tests that wait for them.
final class Mailroom<Event: Sendable>: Sendable {
    private struct State {
        var events: [Event] = []
        var waiters: [@Sendable (Event) -> Bool] = []
    }

    private let state = Mutex(State())

    /// The events that no test has taken yet.
    var waiting: [Event] { state.withLock { $0.events } }

    func post(_ event: Event) {
        state.withLock { state in
            if let index = state.waiters.firstIndex(where: { $0(event) }) {
                state.waiters.remove(at: index)
            } else {
                state.events.append(event)
            }
        }
    }

    /// Takes the first event of a kind; waits for it if necessary. Other events before it stay.
    @discardableResult
    func next<Value: Sendable>(_ match: @escaping @Sendable (Event) -> Value?) async -> Value {
        await withCheckedContinuation { continuation in
            let found = state.withLock { state -> Value? in
                for (index, event) in state.events.enumerated() {
                    if let value = match(event) {
                        state.events.remove(at: index)
                        return value
                    }
                }
                state.waiters.append { event in
                    guard let value = match(event) else { return false }
                    continuation.resume(returning: value)
                    return true
                }
                return nil
            }
            if let found { continuation.resume(returning: found) }
        }
    }

    func removeAll() {
        state.withLock { $0.events = [] }
    }
}

/// A device of a world that managers share.
struct BackendDevice {
    let device: Device
    let adapter: Adapter
    let shared: SharedHost
    let open: OpenHost

    /// - Parameters:
    ///   - store: the store of identifiers.
    ///   - controller: changes the kind of the device's controller.
    ///   - configure: changes the adapter's configuration.
    init(
        _ name: String,
        in world: World,
        store: KeyStore = .inMemory(),
        controller: (inout ControllerConfiguration) -> Void = { _ in },
        configure: (inout Adapter.Configuration) -> Void = { _ in }
    ) async throws {
        let device = world.device(name, configure: controller)
        let adapter = try await device.openAdapter(configure)
        self.init(device: device, adapter: adapter, in: world, store: store)
    }

    init(device: Device, adapter: Adapter, in world: World, store: KeyStore) {
        self.device = device
        self.adapter = adapter
        let random = Mutex(world.makeGenerator())
        open = OpenHost(
            adapter.host,
            store: store,
            makeIdentifier: {
                var octets = [UInt8](repeating: 0, count: 16)
                random.withLock { random in
                    for index in octets.indices { octets[index] = UInt8(truncatingIfNeeded: random.next()) }
                }
                return octets.withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
            },
            wallClock: { 600_000_000 + world.elapsed / .seconds(1) }
        )
        shared = SharedHost(open)
    }

    /// A backend of a central manager, powered on.
    func central(restoreIdentifier: String? = nil) async -> TestCentral {
        let central = TestCentral(HostCentral(shared, restoreIdentifier: restoreIdentifier))
        await central.events.next { if case .stateChanged(.poweredOn) = $0 { true } else { nil } }
        return central
    }

    /// A backend of a peripheral manager, powered on.
    func peripheral(restoreIdentifier: String? = nil) async -> TestPeripheral {
        let peripheral = TestPeripheral(HostPeripheral(shared, restoreIdentifier: restoreIdentifier))
        await peripheral.events.next { if case .stateChanged(.poweredOn) = $0 { true } else { nil } }
        return peripheral
    }
}

/// Waits for the result of one call.
func outcome<Value: Sendable>(
    _ call: (@escaping Completion<Value>) -> Void
) async -> Result<Value, BackendError> {
    await withCheckedContinuation { continuation in call { continuation.resume(returning: $0) } }
}

/// The calls of a test that uses one connection to a peripheral at a time, and one scan.
extension HostCentral {
    func scan(_ request: ScanRequest) { scan(request, number: 0) }

    func connect(_ peripheral: UUID, _ request: ConnectionRequest) {
        connect(ConnectionIdentifier(peripheral: peripheral, number: 0), request)
    }

    func cancelConnection(_ peripheral: UUID) {
        cancelConnection(ConnectionIdentifier(peripheral: peripheral, number: 0))
    }

    func release(_ peripheral: UUID) { release(ConnectionIdentifier(peripheral: peripheral, number: 0)) }
}

/// The last link of each backend to each peripheral, and the last change of services on it.
private let lastTargets = Mutex<[ObjectIdentifier: [UUID: ConnectedPeripheral]]>([:])

/// Commands on the last link that the backend has reported, after the last change of services on it.
extension HostCentral {
    private func last(_ peripheral: UUID) -> ConnectedPeripheral {
        lastTargets.withLock { $0[ObjectIdentifier(self)]?[peripheral] }
            ?? ConnectedPeripheral(identifier: peripheral, link: .placeholder(0))
    }

    func discoverServices(
        _ types: [BluetoothUUID]?,
        of peripheral: UUID,
        _ completion: @escaping Completion<[DiscoveredService]>
    ) {
        discoverServices(types, of: last(peripheral), completion)
    }

    func discoverIncludedServices(
        in range: HandleRange,
        of peripheral: UUID,
        _ completion: @escaping Completion<[IncludedService]>
    ) {
        discoverIncludedServices(in: range, of: last(peripheral), completion)
    }

    func discoverCharacteristics(
        in range: HandleRange,
        of peripheral: UUID,
        _ completion: @escaping Completion<[DiscoveredCharacteristic]>
    ) {
        discoverCharacteristics(in: range, of: last(peripheral), completion)
    }

    func discoverDescriptors(
        in range: HandleRange,
        of peripheral: UUID,
        _ completion: @escaping Completion<[DiscoveredDescriptor]>
    ) {
        discoverDescriptors(in: range, of: last(peripheral), completion)
    }

    func read(_ handle: AttributeHandle, of peripheral: UUID, _ completion: @escaping Completion<[UInt8]>) {
        read(handle, of: last(peripheral), completion)
    }

    func write(
        _ value: [UInt8],
        to handle: AttributeHandle,
        of peripheral: UUID,
        _ completion: @escaping Completion<Void>
    ) {
        write(value, to: handle, of: last(peripheral), completion)
    }

    func writeWithoutResponse(
        _ value: [UInt8],
        to handle: AttributeHandle,
        of peripheral: UUID,
        _ completion: @escaping Completion<Void>
    ) {
        writeWithoutResponse(value, to: handle, of: last(peripheral), completion)
    }

    func setConfiguration(
        _ configuration: ClientConfiguration,
        of characteristic: DiscoveredCharacteristic,
        on peripheral: UUID,
        _ completion: @escaping Completion<Void>
    ) {
        setConfiguration(configuration, of: characteristic, on: last(peripheral), completion)
    }

    func completeInOrder(of peripheral: UUID, _ completion: @escaping Completion<Void>) {
        completeInOrder(of: last(peripheral), completion)
    }

    func readRSSI(of peripheral: UUID, _ completion: @escaping Completion<Int?>) {
        readRSSI(of: last(peripheral), completion)
    }

    func readLink(of peripheral: UUID, _ completion: @escaping Completion<LinkInformation>) {
        readLink(of: last(peripheral), completion)
    }

    func updateParameters(
        _ parameters: ConnectionParameters,
        of peripheral: UUID,
        _ completion: @escaping Completion<Void>
    ) {
        updateParameters(parameters, of: last(peripheral), completion)
    }

    func setPHYs(
        transmit: PHYSet,
        receive: PHYSet,
        of peripheral: UUID,
        _ completion: @escaping Completion<Void>
    ) {
        setPHYs(transmit: transmit, receive: receive, of: last(peripheral), completion)
    }

    func openChannel(_ psm: CBL2CAPPSM, to peripheral: UUID, _ completion: @escaping Completion<ChannelStreams>) {
        openChannel(psm, to: last(peripheral), completion)
    }
}

/// Matches the connections to a peripheral.
func ~= (peripheral: UUID, connection: ConnectionIdentifier) -> Bool { connection.peripheral == peripheral }

struct TestCentral {
    let backend: HostCentral
    let events = Mailroom<CentralEvent>()

    /// - Parameters:
    ///   - listen: receives each event, before the tests that wait for it.
    ///   - accept: whether an event is accepted, as by a manager of an app that keeps up.
    init(
        _ backend: HostCentral,
        listen: @escaping @Sendable (CentralEvent) -> Void = { _ in },
        accept: @escaping @Sendable (CentralEvent) -> Bool = { _ in true }
    ) {
        self.backend = backend
        let name = ObjectIdentifier(backend)
        backend.start { [events] event in
            guard accept(event) else { return false }
            switch event {
            case .connected(let connection, _, let link):
                let target = ConnectedPeripheral(identifier: connection.peripheral, link: link)
                lastTargets.withLock { $0[name, default: [:]][connection.peripheral] = target }
            case .servicesChanged(let peripheral, _, let number):
                lastTargets.withLock { $0[name]?[peripheral]?.lastChange = number }
            default: break
            }
            listen(event)
            events.post(event)
            return true
        }
    }

    /// Scans until an advertiser is found.
    func find(_ services: [BluetoothUUID] = []) async -> Discovery {
        backend.scan(ScanRequest(services: services))
        let discovery = await discovery()
        backend.stopScan()
        return discovery
    }

    func discovery() async -> Discovery {
        await events.next { if case .discovered(let discovery) = $0 { discovery } else { nil } }
    }

    func connect(_ peripheral: UUID, _ request: ConnectionRequest = ConnectionRequest()) async {
        backend.connect(peripheral, request)
        await connected(peripheral)
    }

    @discardableResult
    func connected(_ peripheral: UUID) async -> LinkIdentifier {
        await events.next { if case .connected(peripheral, _, let link) = $0 { link } else { nil } }
    }

    func disconnected(_ peripheral: UUID) async -> Disconnection {
        await events.next { if case .disconnected(peripheral, let disconnection) = $0 { disconnection } else { nil } }
    }

    func value(of handle: AttributeHandle) async -> [UInt8] {
        await events.next { if case .valueReceived(_, handle, let value) = $0 { value } else { nil } }
    }

    /// Waits for a change of a peripheral's services. Returns its handles.
    func changedServices(of peripheral: UUID) async -> HandleRange {
        await events.next { if case .servicesChanged(peripheral, let range, _) = $0 { range } else { nil } }
    }

    func services(_ types: [BluetoothUUID]?, of peripheral: UUID) async throws -> [DiscoveredService] {
        try await outcome { backend.discoverServices(types, of: peripheral, $0) }.get()
    }

    func characteristics(of service: DiscoveredService, on peripheral: UUID) async throws -> [DiscoveredCharacteristic]
    {
        let range = HandleRange(start: service.handle, end: service.endHandle)
        return try await outcome { backend.discoverCharacteristics(in: range, of: peripheral, $0) }.get()
    }

    /// Returns the characteristics of the first service of a type.
    func characteristics(of type: BluetoothUUID, on peripheral: UUID) async throws -> [DiscoveredCharacteristic] {
        guard let service = try await services([type], of: peripheral).first else { return [] }
        return try await characteristics(of: service, on: peripheral)
    }

    func read(_ handle: AttributeHandle, of peripheral: UUID) async -> Result<[UInt8], BackendError> {
        await outcome { backend.read(handle, of: peripheral, $0) }
    }

    func write(
        _ value: [UInt8],
        to handle: AttributeHandle,
        of peripheral: UUID
    ) async -> Result<Void, BackendError> {
        await outcome { backend.write(value, to: handle, of: peripheral, $0) }
    }

    func configure(
        _ configuration: ClientConfiguration,
        of characteristic: DiscoveredCharacteristic,
        on peripheral: UUID
    ) async -> Result<Void, BackendError> {
        await outcome { backend.setConfiguration(configuration, of: characteristic, on: peripheral, $0) }
    }
}

struct TestPeripheral {
    let backend: HostPeripheral
    let events = Mailroom<CoreBluetooth.PeripheralEvent>()

    /// - Parameter accept: whether an event is accepted, as by a manager of an app that keeps up.
    init(
        _ backend: HostPeripheral,
        accept: @escaping @Sendable (CoreBluetooth.PeripheralEvent) -> Bool = { _ in true }
    ) {
        self.backend = backend
        backend.start { [events] event in
            guard accept(event) else { return false }
            events.post(event)
            return true
        }
    }

    func publish(_ service: ServiceDefinition) async throws -> PublishedService {
        try await outcome { backend.publish(service, $0) }.get()
    }

    func advertise(_ name: String, _ services: [BluetoothUUID]) async throws {
        let payload = AdvertisementPayload(localName: name, services: services)
        try await outcome { backend.startAdvertising(payload, $0) }.get()
    }

    func access(by link: LinkIdentifier? = nil) async -> (RemoteCentral, AccessRequest) {
        await events.next { event in
            if case .access(let central, let request) = event, link == nil || central.link == link {
                (central, request)
            } else {
                nil
            }
        }
    }

    func connected() async -> RemoteCentral {
        await events.next { if case .connected(let central) = $0 { central } else { nil } }
    }

    func configured() async -> (RemoteCentral, AttributeHandle, ClientConfiguration) {
        await events.next { event in
            if case .configured(let central, let handle, let configuration) = event {
                (central, handle, configuration)
            } else {
                nil
            }
        }
    }
}

/// The services that tests use.
enum Lamp {
    static let service: BluetoothUUID = "FFE0"
    static let brightness: BluetoothUUID = "FFE1"
    static let text: BluetoothUUID = "FFE2"
    static let version: BluetoothUUID = "FFE3"
    static let level: BluetoothUUID = "FFE4"

    /// Two values that the app provides, one that the host stores, and one that is indicated.
    static let definition = ServiceDefinition(
        uuid: service,
        characteristics: [
            CharacteristicDefinition(
                uuid: brightness,
                properties: [.read, .write, .notify, .writeWithoutResponse],
                permissions: [.read, .write],
                value: .handled
            ),
            CharacteristicDefinition(
                uuid: text,
                properties: [.read, .write],
                permissions: [.read, .write],
                value: .handled
            ),
            CharacteristicDefinition(
                uuid: version,
                properties: [.read],
                permissions: [.read],
                value: .stored(Array("1.0".utf8))
            ),
            CharacteristicDefinition(
                uuid: level,
                properties: [.indicate],
                permissions: [.read],
                value: .handled
            ),
        ]
    )
}

/// A lamp and a phone in one virtual air. The lamp is advertising.
struct LampAndPhone {
    let lampDevice: BackendDevice
    let phoneDevice: BackendDevice
    let lamp: TestPeripheral
    let phone: TestCentral
    let published: PublishedService

    /// - Parameter isPhonePrivate: whether the phone uses private addresses, which the lamp's host resolves once they
    ///   are bonded. The lamp's controller does not resolve them, so it regards the phone's addresses as different
    ///   devices.
    init(_ world: World, isPhonePrivate: Bool = false) async throws {
        lampDevice = try await BackendDevice(
            "lamp",
            in: world,
            controller: { if isPhonePrivate { $0.features.remove(.llPrivacy) } }
        )
        phoneDevice = try await BackendDevice(
            "phone",
            in: world,
            configure: { $0.usesPrivateAddresses = isPhonePrivate }
        )
        lamp = await lampDevice.peripheral()
        published = try await lamp.publish(Lamp.definition)
        try await lamp.advertise("lamp", [Lamp.service])
        phone = await phoneDevice.central()
    }

    func handle(_ index: Int) -> AttributeHandle { published.characteristics[index].valueHandle }

    /// Connects the phone to the lamp.
    func connect(_ request: ConnectionRequest = ConnectionRequest()) async -> UUID {
        let peripheral = await phone.find([Lamp.service]).identifier
        await phone.connect(peripheral, request)
        return peripheral
    }

    /// The lamp's characteristics as the phone discovers them.
    func characteristics(of peripheral: UUID) async throws -> [DiscoveredCharacteristic] {
        try await phone.characteristics(of: Lamp.service, on: peripheral)
    }
}
