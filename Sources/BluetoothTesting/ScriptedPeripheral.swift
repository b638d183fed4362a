import BLE
import BLEATT
import BLEGATT
import BLEHCI
import BLEHCITransport
import BLEL2CAP
import BluetoothHost
import BluetoothTypes

/// A device of a world that follows a script: it serves values, notifies on a schedule, refuses, violates the protocol,
/// vanishes.
///
/// Created by ``World/peripheral(_:at:services:advertisingInterval:configure:)``.
public final class ScriptedPeripheral: Sendable {
    /// A value that a client has written.
    public struct Write: Hashable, Sendable {
        /// The characteristic.
        public let uuid: BluetoothUUID
        /// The written bytes.
        public let value: [UInt8]
        /// The time since the world's start.
        public let time: Duration
    }

    /// The device in the world.
    public let device: Device
    /// The adapter of the host that serves and advertises.
    public let adapter: Adapter
    /// The values that clients have written and the script has accepted, oldest first.
    public var writes: [Write] { state.writes }
    /// The address that it advertises with.
    public let address: DeviceAddress

    private unowned let world: World
    private let configuration: AdvertisementConfiguration
    private let confined: LoopConfined<State>
    private var state: State { confined.value }

    private final class State {
        var writes: [Write] = []
        var characteristics: [AttributeHandle: ScriptedCharacteristic] = [:]
        var handles: [BluetoothUUID: AttributeHandle] = [:]
        var values: [AttributeHandle: [UInt8]] = [:]
        var advertisement: AdvertisingSet?
        var schedules: [Task<Void, Never>] = []
    }

    init(
        device: Device,
        world: World,
        services: [ScriptedService],
        interval: Duration
    ) async throws(BLEError) {
        self.device = device
        self.world = world
        confined = LoopConfined(State(), to: world.loop)
        adapter = try await device.openAdapter()
        address = try await adapter.information.identityAddress
        configuration = ScriptedPeripheral.advertisement(name: device.name, services: services, interval: interval)
        try await publish(services)
        try await startAdvertising()
        for (handle, characteristic) in state.characteristics.sorted(by: { $0.key < $1.key }) {
            if let schedule = characteristic.schedule { start(schedule, of: handle) }
        }
    }

    private static func advertisement(
        name: String,
        services: [ScriptedService],
        interval: Duration
    ) -> AdvertisementConfiguration {
        var structures: [AdvertisingData.Structure] = [.flags([.generalDiscoverable, .brEdrNotSupported])]
        for list in AdvertisingData.Structure.lists(of: services.map(\.uuid)) {
            if AdvertisingData(structures + [list]).length <= 31 { structures.append(list) }
        }
        return AdvertisementConfiguration(
            interval: interval,
            advertisingData: AdvertisingData(structures),
            scanResponseData: AdvertisingData([localName(name)])
        )
    }

    /// A name for a scan response of legacy advertising, which has 31 bytes (Vol 6, Part B, 2.3.2). A longer name is
    /// shortened to whole characters.
    private static func localName(_ name: String) -> AdvertisingData.Structure {
        let limit = 31 - 2
        guard name.utf8.count > limit else { return .completeLocalName(name) }
        var shortened = name
        while shortened.utf8.count > limit { shortened.removeLast() }
        return .shortenedLocalName(shortened)
    }

    private func publish(_ services: [ScriptedService]) async throws(BLEError) {
        let host = adapter.host
        let published: [PublishedService]
        do throws(DatabaseError) {
            published = try await host.publish(services.map(\.definition)) { [weak self] client, request in
                self?.answer(request, of: client)
            }
        } catch {
            throw .invalidArgument("\(error)")
        }
        for (service, script) in zip(published, services) {
            for (characteristic, script) in zip(service.characteristics, script.characteristics) {
                state.characteristics[characteristic.valueHandle] = script
                state.handles[script.uuid] = characteristic.valueHandle
                state.values[characteristic.valueHandle] = script.value
            }
        }
    }

    // MARK: Values

    /// The handle of a characteristic's value.
    public func valueHandle(of uuid: BluetoothUUID) -> AttributeHandle? { state.handles[uuid] }

    /// The value that was last written or set.
    public func value(of uuid: BluetoothUUID) -> [UInt8]? { state.handles[uuid].flatMap { state.values[$0] } }

    /// Sets the value for further reads.
    public func setValue(_ value: [UInt8], of uuid: BluetoothUUID) {
        guard let handle = state.handles[uuid] else { return }
        state.values[handle] = value
    }

    /// Sends a value to the subscribed clients, as notification or indication according to their configuration.
    public func send(_ value: [UInt8], of uuid: BluetoothUUID) async throws(BLEError) {
        guard let handle = state.handles[uuid] else {
            throw .invalidArgument("the peripheral has no characteristic \(uuid)")
        }
        let properties = state.characteristics[handle]?.properties ?? []
        try await ScriptedPeripheral.send(value, of: handle, properties, on: adapter.peripheral)
    }

    private static func send(
        _ value: [UInt8],
        of handle: AttributeHandle,
        _ properties: CharacteristicProperties,
        on peripheral: Peripheral
    ) async throws(BLEError) {
        if properties.contains(.notify) { try await peripheral.notify(value, of: handle) }
        if properties.contains(.indicate) { try await peripheral.indicate(value, of: handle) }
    }

    private func start(_ schedule: ScriptedCharacteristic.Schedule, of handle: AttributeHandle) {
        let properties = state.characteristics[handle]?.properties ?? []
        state.schedules.append(
            Task(executorPreference: world.taskExecutor) { [weak world, adapter] in
                var count = 0
                while let world, (try? await world.sleep(for: schedule.interval)) != nil {
                    let value = schedule.value(count)
                    try? await ScriptedPeripheral.send(value, of: handle, properties, on: adapter.peripheral)
                    count += 1
                }
            }
        )
    }

    // MARK: Answers

    private func answer(_ request: AccessRequest, of client: LinkIdentifier) {
        switch request.kind {
        case .read(let handle, let offset):
            perform(state.characteristics[handle]?.onRead?() ?? .accept, for: request, of: client) { [self] given in
                let value = given ?? state.values[handle] ?? []
                return offset <= value.count ? .success(Array(value[offset...])) : .failure(.invalidOffset)
            }
        case .write(let write, _):
            take(write.value, of: write.handle, for: request, of: client)
        case .execute(let writes):
            guard let handle = writes.first?.handle, writes.allSatisfy({ $0.handle == handle }) else {
                return perform(.refuse(.requestNotSupported), for: request, of: client) { _ in .success([]) }
            }
            let value = writes.sorted { $0.offset < $1.offset }.flatMap(\.value)
            take(value, of: handle, for: request, of: client)
        }
    }

    private func take(
        _ value: [UInt8],
        of handle: AttributeHandle,
        for request: AccessRequest,
        of client: LinkIdentifier
    ) {
        perform(state.characteristics[handle]?.onWrite?(value) ?? .accept, for: request, of: client) { [self] _ in
            state.values[handle] = value
            if let uuid = state.characteristics[handle]?.uuid {
                state.writes.append(Write(uuid: uuid, value: value, time: world.elapsed))
            }
            return .success([])
        }
    }

    /// Executes an answer of the script. `succeed` returns the result unless the answer is a failure; its argument is
    /// the script's value.
    private func perform(
        _ answer: ScriptedAnswer,
        for request: AccessRequest,
        of client: LinkIdentifier,
        succeed: @escaping @Sendable (_ value: [UInt8]?) -> Result<[UInt8], ATTErrorCode>
    ) {
        let host = adapter.host
        switch answer {
        case .value(let value):
            host.assumeIsolated { $0.answer(request.identifier, on: client, with: succeed(value)) }
        case .accept:
            host.assumeIsolated { $0.answer(request.identifier, on: client, with: succeed(nil)) }
        case .refuse(let code):
            host.assumeIsolated { $0.answer(request.identifier, on: client, with: .failure(code)) }
        case .silence: break
        case .octets(let pdu):
            host.assumeIsolated { $0.answer(request.identifier, on: client, withUnchecked: pdu) }
        case .disconnect:
            host.spawn { await $0.disconnect(client) }
        case .after(let delay, let answer):
            Task(executorPreference: world.taskExecutor) { [weak self] in
                // The world ends the wait when it is closed; there is nothing to answer then.
                guard (try? await self?.world.sleep(for: delay)) != nil else { return }
                self?.perform(answer, for: request, of: client, succeed: succeed)
            }
        }
    }

    // MARK: Presence

    /// Advertises until ``stopAdvertising()``.
    public func startAdvertising() async throws(BLEError) {
        guard state.advertisement == nil else { return }
        state.advertisement = try await adapter.peripheral.startAdvertising(configuration)
    }

    /// Stops advertising. Connections stay.
    public func stopAdvertising() async {
        await state.advertisement?.stop()
        state.advertisement = nil
    }

    /// Ends the links of all clients.
    public func disconnectClients() async {
        let host = adapter.host
        for link in await host.linkIdentifiers() { await host.disconnect(link) }
    }

    /// Sends a frame of the Attribute Protocol's channel to all clients unchanged, even if it is malformed.
    public func sendBytes(_ pdu: [UInt8]) async {
        let host = adapter.host
        for link in await host.linkIdentifiers() { await host.sendUnchecked(pdu, on: .attribute, of: link) }
    }

    /// Removes the controller at once; see ``Device/vanish()``.
    public func vanish() { device.vanish() }

    /// Restores the controller; the device then advertises as before.
    public func comeBack() { device.comeBack() }

    func close() async {
        for schedule in state.schedules { schedule.cancel() }
        await adapter.close()
        for schedule in state.schedules { await schedule.value }
        state.schedules = []
    }
}
