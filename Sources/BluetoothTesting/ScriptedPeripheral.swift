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
/// Created by ``World/peripheral(_:at:services:advertisingInterval:configure:)``. Methods that take the UUID of a
/// characteristic use the last one of its type, if several services have one.
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
        /// The number of scheduled indications that a client has not confirmed, if any.
        var unconfirmed: [LinkIdentifier: Int] = [:]
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
            if let schedule = characteristic.schedule { start(schedule, of: handle, characteristic) }
        }
    }

    private static func advertisement(
        name: String,
        services: [ScriptedService],
        interval: Duration
    ) -> AdvertisementConfiguration {
        var structures: [AdvertisingData.Structure] = [.flags([.generalDiscoverable, .brEdrNotSupported])]
        for case .serviceUUIDs(let uuids, _) in AdvertisingData.Structure.lists(of: services.map(\.uuid)) {
            if let list = longestList(of: uuids, after: structures) { structures.append(list) }
        }
        return AdvertisementConfiguration(
            interval: interval,
            advertisingData: AdvertisingData(structures),
            scanResponseData: AdvertisingData([localName(name)])
        )
    }

    /// Returns the longest list of the first services that fits behind other structures. The data of legacy advertising
    /// has 31 bytes (Vol 6, Part B, 2.3.1). Nil if not even the first service fits.
    ///
    /// - Parameter uuids: one UUID or more, all of one width.
    private static func longestList(
        of uuids: [BluetoothUUID],
        after structures: [AdvertisingData.Structure]
    ) -> AdvertisingData.Structure? {
        for count in (1...uuids.count).reversed() {
            let list = AdvertisingData.Structure.serviceUUIDs(
                Array(uuids.prefix(count)),
                isComplete: count == uuids.count
            )
            if AdvertisingData(structures + [list]).length <= 31 { return list }
        }
        return nil
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

    // MARK: Schedules

    /// Maximum number of scheduled indications that one client has not confirmed.
    private static let unconfirmedLimit = 16

    private func start(
        _ schedule: ScriptedCharacteristic.Schedule,
        of handle: AttributeHandle,
        _ characteristic: ScriptedCharacteristic
    ) {
        let caller = "the next scheduled value of \(characteristic.uuid) of \(device.name)"
        let start = world.clock.now
        state.schedules.append(
            Task(executorPreference: world.taskExecutor) { [weak self, weak world] in
                var due = start
                var count = 0
                while let self, let world {
                    due = max(due.advanced(by: schedule.interval), world.clock.now)
                    guard (try? await world.sleep(until: due, caller: caller)) != nil else { return }
                    await self.sendScheduled(schedule.value(count), of: handle, characteristic.properties)
                    count += 1
                }
            }
        )
    }

    private func sendScheduled(
        _ value: [UInt8],
        of handle: AttributeHandle,
        _ properties: CharacteristicProperties
    ) async {
        if properties.contains(.notify) { try? await adapter.peripheral.notify(value, of: handle) }
        if properties.contains(.indicate) { beginIndicating(value, of: handle) }
    }

    /// Indicates a value to the subscribed clients, and does not wait for their confirmations. Clients with too many
    /// unconfirmed indications miss it.
    private func beginIndicating(_ value: [UInt8], of handle: AttributeHandle) {
        adapter.host.assumeIsolated { host in
            for client in host.subscribers(of: handle, .indication) {
                let count = state.unconfirmed[client, default: 0]
                guard count < ScriptedPeripheral.unconfirmedLimit else { continue }
                state.unconfirmed[client] = count + 1
                host.beginIndicating(value, of: handle, to: client) { [weak self] _ in
                    self?.scheduledIndicationEnded(of: client)
                }
            }
        }
    }

    /// Counts the confirmation of a scheduled indication, or its loss with the link.
    private func scheduledIndicationEnded(of client: LinkIdentifier) {
        let count = state.unconfirmed[client, default: 0] - 1
        state.unconfirmed[client] = count > 0 ? count : nil
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
            take([(write.handle, write.value)], for: request, of: client)
        case .execute(let writes):
            guard let values = valuesWritten(by: writes) else {
                return perform(.refuse(.invalidOffset), for: request, of: client) { _ in .success([]) }
            }
            take(values, for: request, of: client)
        }
    }

    /// Returns the values after writes that are executed together, in the order of the first write to each. Nil if a
    /// write begins behind the end of a value.
    private func valuesWritten(by writes: [AttributeWrite]) -> [(handle: AttributeHandle, value: [UInt8])]? {
        var values: [(handle: AttributeHandle, value: [UInt8])] = []
        for write in writes {
            let index = values.firstIndex { $0.handle == write.handle }
            let old = index.map { values[$0].value } ?? state.values[write.handle] ?? []
            guard write.offset <= old.count else { return nil }
            let value = Array(old.prefix(write.offset)) + write.value
            if let index {
                values[index].value = value
            } else {
                values.append((write.handle, value))
            }
        }
        return values
    }

    /// Stores the written values if the script accepts all of them.
    private func take(
        _ values: [(handle: AttributeHandle, value: [UInt8])],
        for request: AccessRequest,
        of client: LinkIdentifier
    ) {
        var answer = ScriptedAnswer.accept
        for (handle, value) in values where answer.accepts {
            answer = answer.followed(by: state.characteristics[handle]?.onWrite?(value) ?? .accept)
        }
        perform(answer, for: request, of: client) { [self] _ in
            for (handle, value) in values {
                state.values[handle] = value
                guard let uuid = state.characteristics[handle]?.uuid else { continue }
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
                guard (try? await self?.sleepBeforeAnswer(delay)) != nil else { return }
                self?.perform(answer, for: request, of: client, succeed: succeed)
            }
        }
    }

    private func sleepBeforeAnswer(_ delay: Duration) async throws {
        let due = world.clock.now.advanced(by: delay)
        try await world.sleep(until: due, caller: "the delayed answer of \(device.name)")
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
