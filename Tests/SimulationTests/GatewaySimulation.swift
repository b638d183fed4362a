import BLE
import BLEHCITransport
import BluetoothHost
import BluetoothTesting

/// Simulates a gateway for several days. It keeps links to sensors and is bonded with some of them, scans beacons, and
/// serves clients that connect, pair and leave. Controllers, links and transports fail.
///
/// After each period the faults end, the clients leave, and the gateway must be as before the first period.
final class GatewaySimulation: Sendable {
    /// The counts of events.
    struct Outcome: Hashable, Sendable {
        var simulated = Duration.zero
        var faults = 0
        var connections = 0
        var reads = 0
        var values = 0
        var reports = 0
        var visits = 0
        var pairings = 0
        var errors = 0
        var lastError = ""
        /// The rule violations, in order.
        var violations: [String] = []
    }

    private static let sensorService: BluetoothUUID = "5C3A2001-0000-4000-8000-00805F9B34FB"
    private static let reading: BluetoothUUID = "5C3A2002-0000-4000-8000-00805F9B34FB"
    private static let alert: BluetoothUUID = "5C3A2003-0000-4000-8000-00805F9B34FB"
    private static let gatewayService: BluetoothUUID = "5C3A2011-0000-4000-8000-00805F9B34FB"
    private static let setting: BluetoothUUID = "5C3A2012-0000-4000-8000-00805F9B34FB"
    private static let state: BluetoothUUID = "5C3A2013-0000-4000-8000-00805F9B34FB"
    private static let period = Duration.seconds(6 * 3600)
    private static let sensorCount = 6

    private let world: World
    private let dice: Dice
    private let confined: LoopConfined<State>
    private var state: State { confined.value }

    private final class State {
        var outcome = Outcome()
        var sensors: [ScriptedPeripheral] = []
        var clients: [(device: Device, adapter: Adapter)] = []
        var gateway: (device: Device, adapter: Adapter)?
        var advertising: AdvertisingSet?
        /// The value handle of the gateway's state.
        var stateHandle: AttributeHandle?
        /// What the gateway holds before the first period.
        var atRest: HostInspection?
    }

    init(world: World) {
        self.world = world
        dice = Dice(world.makeGenerator())
        confined = LoopConfined(State(), to: world.loop)
    }

    /// Runs periods of six hours.
    ///
    /// - Parameter afterPeriod: called with the outcome so far.
    func run(periods: Int, afterPeriod: (Outcome) -> Void = { _ in }) async throws -> Outcome {
        try await bringUp()
        guard let gateway = state.gateway else { return state.outcome }
        return await withTaskGroup(of: Void.self) { group in
            for (index, sensor) in state.sensors.enumerated() {
                group.addTask { [self] in await keep(sensor, isBonded: index % 2 == 0, on: gateway.adapter.central) }
            }
            await checkRest(after: "the start")
            for number in 1...periods where state.outcome.violations.isEmpty {
                await runPeriod(gateway.adapter)
                await checkRest(after: "period \(number)")
                state.outcome.simulated = world.elapsed
                afterPeriod(state.outcome)
            }
            group.cancelAll()
            return state.outcome
        }
    }

    // MARK: Devices

    private func bringUp() async throws {
        for number in 1...Self.sensorCount {
            state.sensors.append(
                try await world.peripheral(
                    "sensor \(number)",
                    services: [
                        ScriptedService(
                            Self.sensorService,
                            [
                                ScriptedCharacteristic(Self.reading, properties: [.read], value: [7]),
                                ScriptedCharacteristic(
                                    Self.alert,
                                    properties: .notify,
                                    schedule: .every(.seconds(300)) { [UInt8(truncatingIfNeeded: $0)] }
                                ),
                            ]
                        )
                    ],
                    advertisingInterval: .seconds(2)
                )
            )
        }
        for number in 1...3 {
            _ = try await world.peripheral("beacon \(number)", services: [], advertisingInterval: .seconds(10))
        }
        for number in 1...2 {
            let device = world.device("client \(number)")
            state.clients.append((device, try await device.openAdapter()))
        }
        let device = world.device("gateway")
        let adapter = try await device.openAdapter()
        state.gateway = (device, adapter)
        var policy = SecurityPolicy()
        policy.justWorks = .always
        for server in state.sensors.map(\.adapter) + [adapter] { await server.setSecurityPolicy(policy) }
        let services = try await adapter.peripheral.publish([Self.definition]) { [world, dice] _, access in
            if dice.chance(0.3) { try? await world.sleep(for: .milliseconds(dice.number(in: 1...3000))) }
            if case .read(_, let offset) = access { return Array([1, 2, 3].dropFirst(offset)) }
            return []
        }
        state.stateHandle = services.first?.characteristics.last?.valueHandle
        state.advertising = try await adapter.peripheral.startAdvertising(
            AdvertisementConfiguration(
                interval: .seconds(5),
                advertisingData: AdvertisingData([.serviceUUIDs([Self.gatewayService], isComplete: true)])
            )
        )
    }

    private static var definition: ServiceDefinition {
        ServiceDefinition(
            uuid: gatewayService,
            characteristics: [
                CharacteristicDefinition(
                    uuid: setting,
                    properties: [.read, .write],
                    permissions: [.read, .write],
                    value: .handled
                ),
                CharacteristicDefinition(uuid: state, properties: .notify, permissions: [], value: .stored([])),
            ]
        )
    }

    // MARK: The gateway

    /// Keeps a sensor connected: reads its value now and then, and receives its alerts.
    private func keep(_ sensor: ScriptedPeripheral, isBonded: Bool, on central: Central) async {
        guard let reading = sensor.valueHandle(of: Self.reading) else { return }
        // Long connection intervals, so that simulating an hour takes seconds. Pairings need shorter ones: each of
        // their many packets waits for the next event.
        let interval = Duration.milliseconds(isBonded ? 500 : 4000)
        let parameters = ConnectionParameters(interval: interval...interval, supervisionTimeout: .seconds(30))
        try? await central.maintain(sensor.address, parameters: parameters) { [self] peer in
            state.outcome.connections += 1
            do {
                if isBonded {
                    try await peer.pair()
                    state.outcome.pairings += 1
                }
                let alert = try await peer.characteristic(Self.alert, in: Self.sensorService)
                let subscription = try await peer.subscribe(to: alert)
                try await withThrowingTaskGroup(of: Void.self) { group in
                    defer { group.cancelAll() }
                    group.addTask { [self] in
                        for try await _ in subscription { state.outcome.values += 1 }
                    }
                    group.addTask { [self] in
                        while true {
                            _ = try await peer.read(reading)
                            state.outcome.reads += 1
                            try await world.sleep(for: .seconds(600))
                        }
                    }
                    try await group.next()
                }
            } catch {
                if !(error is CancellationError) { note(error, of: sensor.device) }
                throw error
            }
        }
    }

    private func note(_ error: any Error, of device: Device? = nil) {
        state.outcome.errors += 1
        state.outcome.lastError = "\(device?.name ?? "client"), at \(world.elapsed): \(error)"
    }

    /// One period with scans, clients and faults.
    private func runPeriod(_ adapter: Adapter) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { [self] in await scanPeriodically(adapter.central) }
            for client in state.clients {
                group.addTask { [self, dice = dice.split()] in await visitRepeatedly(client.adapter, adapter, dice) }
            }
            group.addTask { [self, dice = dice.split()] in await injectFaultsRepeatedly(dice) }
            group.addTask { [self] in
                guard let handle = state.stateHandle else { return }
                while (try? await world.sleep(for: .seconds(20))) != nil {
                    try? await adapter.peripheral.notify([1], of: handle)
                }
            }
            try? await world.sleep(for: Self.period)
            group.cancelAll()
        }
        endAllFaults()
        // Links that clients have left open end with the period.
        for client in state.clients {
            for link in await client.adapter.host.linkIdentifiers() { await client.adapter.host.disconnect(link) }
        }
    }

    private func scanPeriodically(_ central: Central) async {
        while (try? await world.sleep(for: .seconds(900))) != nil {
            await withTaskGroup(of: Void.self) { group in
                group.addTask { [self] in
                    do {
                        for try await _ in central.scan() { state.outcome.reports += 1 }
                    } catch {}
                }
                group.addTask { [world] in try? await world.sleep(for: .seconds(20)) }
                await group.next()
                group.cancelAll()
            }
        }
    }

    // MARK: Clients

    private func visitRepeatedly(_ client: Adapter, _ gateway: Adapter, _ dice: Dice) async {
        while (try? await world.sleep(for: .seconds(dice.number(in: 60...2400)))) != nil {
            do {
                try await visit(client, gateway, dice)
                state.outcome.visits += 1
            } catch {
                if !Task.isCancelled { note(error) }
            }
            // Some clients lose their bonds.
            if dice.chance(0.05) {
                for bond in await client.bonds() { await client.removeBond(bond.identity) }
                for bond in await gateway.bonds() where bond.identity == (try? await client.information.identityAddress)
                {
                    await gateway.removeBond(bond.identity)
                }
            }
        }
    }

    /// Connects to the gateway, pairs, uses its values, and leaves or stays until the link is lost.
    private func visit(_ client: Adapter, _ gateway: Adapter, _ dice: Dice) async throws {
        let address = try await gateway.information.identityAddress
        let peer = try await client.central.connect(to: address, timeout: .seconds(60))
        do {
            if dice.chance(0.5) { try await peer.pair() }
            let setting = try await peer.characteristic(Self.setting, in: Self.gatewayService)
            let state = try await peer.characteristic(Self.state, in: Self.gatewayService)
            let subscription = try await peer.subscribe(to: state)
            for _ in 0..<dice.number(in: 1...4) {
                _ = try await peer.read(setting.valueHandle)
                try await peer.write([UInt8](repeating: 1, count: dice.number(in: 1...100)), to: setting.valueHandle)
                try await world.sleep(for: .seconds(dice.number(in: 1...10)))
            }
            if dice.chance(0.7) { await subscription.cancel() }
        } catch {
            await peer.disconnect()
            throw error
        }
        if dice.chance(0.9) { await peer.disconnect() }
    }

    // MARK: Faults

    private func injectFaultsRepeatedly(_ dice: Dice) async {
        let devices =
            state.sensors.map(\.device) + state.clients.map(\.device) + (state.gateway.map { [$0.device] } ?? [])
        while (try? await world.sleep(for: .seconds(dice.number(in: 30...1200)))) != nil {
            guard let device = dice.chance(0.5) ? state.gateway?.device : dice.pick(devices) else { return }
            state.outcome.faults += 1
            await injectFault(device, dice)
        }
    }

    private func injectFault(_ device: Device, _ dice: Dice) async {
        let duration = Duration.seconds(dice.number(in: 1...120))
        switch dice.number(in: 0...9) {
        case 0:
            device.vanish()
            try? await world.sleep(for: duration)
            device.comeBack()
        case 1: device.failWithHardwareError()
        case 2:
            world.conditions.isDead = true
            try? await world.sleep(for: duration)
            world.conditions = .perfect
        case 3: for sensor in state.sensors where dice.chance(0.5) { await sensor.disconnectClients() }
        case 4: await applyFaults(device, for: duration) { $0.isSilent = true }
        case 5: await applyFaults(device, for: duration) { $0.refusal = 0.5 }
        case 6: await applyFaults(device, for: duration) { $0.completionLoss = 0.3 }
        case 7: await applyFaults(device, for: duration) { $0.garbage = 0.3 }
        case 8: await applyFaults(device, for: duration) { $0.bufferLoss = 0.5 }
        default:
            world.conditions = RadioConditions(loss: 0.3)
            try? await world.sleep(for: duration)
            world.conditions = .perfect
        }
    }

    private func applyFaults(_ device: Device, for duration: Duration, _ change: (inout ControllerFaults) -> Void) async
    {
        change(&device.faults)
        try? await world.sleep(for: duration)
        device.faults = .none
    }

    private func endAllFaults() {
        world.conditions = .perfect
        for device in world.devices {
            device.faults = .none
            device.comeBack()
        }
    }

    // MARK: Checks

    /// Waits until the gateway has recovered, and compares what it holds with what it held first.
    private func checkRest(after place: String) async {
        guard let host = state.gateway?.adapter.host else { return }
        // Longer than a lost link, the longest delay between attempts, and the turns of all sensors together.
        try? await world.sleep(for: .seconds(600))
        var inspection = await host.inspect().atRest
        // A procedure may be in progress just then.
        for _ in 1...20 where !isAtRest(inspection) {
            try? await world.sleep(for: .seconds(7))
            inspection = await host.inspect().atRest
        }
        if !isAtRest(inspection) {
            let first = state.atRest.map { ", at first \($0)" } ?? ""
            state.outcome.violations.append("after \(place) the gateway holds \(inspection)\(first)")
        }
        if state.atRest == nil { state.atRest = inspection }
    }

    /// Whether all sensors are connected, and the gateway holds what it held first.
    private func isAtRest(_ inspection: HostInspection) -> Bool {
        guard inspection.links == Self.sensorCount, inspection.subscribers == Self.sensorCount else { return false }
        if let atRest = state.atRest { return inspection == atRest }
        return inspection.transactions == 0 && inspection.commands == 0 && inspection.frames == 0
    }
}

extension HostInspection {
    /// The inspection without what depends on the instant at which it is made.
    fileprivate var atRest: HostInspection {
        var inspection = self
        // Cancelled timers stay for some time. Their number is bounded, not constant.
        inspection.timersInHeap = timersInHeap > 2 * timers + 64 ? timersInHeap : 0
        inspection.packetsInController = 0
        // Handles that a controller used without a link are ignored until its next reset; they are bounded.
        inspection.strayHandles = strayHandles > 16 ? strayHandles : 0
        return inspection
    }
}
