import BLE
import BluetoothTesting
import Synchronization
import Testing

@Suite("A gateway that maintains its connections")
struct MaintainTests {
    private static let service = ScriptedService(
        "A900",
        [ScriptedCharacteristic("A901", properties: [.read], value: [7])]
    )

    /// Which peripherals are connected, as the handlers know it, and how often each was.
    private final class Connections: Sendable {
        private struct State {
            var connected: Set<Int> = []
            var counts = Array(repeating: 0, count: 12)
        }

        private let state = Mutex(State())

        var connected: Int { state.withLock { $0.connected.count } }
        var total: Int { state.withLock { $0.counts.reduce(0, +) } }

        func begin(_ index: Int) {
            state.withLock { state in
                state.connected.insert(index)
                state.counts[index] += 1
            }
        }

        func end(_ index: Int) {
            state.withLock { _ = $0.connected.remove(index) }
        }
    }

    @Test func twelveLinksAreMaintainedForHours() throws {
        try LeakCheck.run(seed: 27, limit: .seconds(6 * 3600)) { world in
            var peripherals: [ScriptedPeripheral] = []
            for number in 1...12 {
                peripherals.append(
                    try await world.peripheral(
                        "sensor \(number)",
                        services: [Self.service],
                        advertisingInterval: .seconds(1)
                    )
                )
            }
            let device = world.device("gateway")
            let central = try await device.openAdapter().central
            let connections = Connections()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (index, peripheral) in peripherals.enumerated() {
                    let handle = try #require(peripheral.valueHandle(of: "A901"))
                    group.addTask {
                        // Long connection intervals, so that simulating an hour takes seconds.
                        let parameters = ConnectionParameters(
                            interval: .seconds(2)...(.seconds(2)),
                            supervisionTimeout: .seconds(10)
                        )
                        try? await central.maintain(peripheral.address, parameters: parameters) { peer in
                            _ = try await peer.read(handle)
                            connections.begin(index)
                            defer { connections.end(index) }
                            try await world.sleep(for: .seconds(1_000_000))
                        }
                    }
                }
                var random = world.makeGenerator()
                try await world.sleep(for: .seconds(180))
                #expect(connections.connected == 12)
                let start = world.elapsed
                while world.elapsed - start < .seconds(3 * 3600) {
                    try await Self.fail(peripherals, device, in: world, &random)
                    // Longer than the maximum delay, one attempt, and packets lost on the air together.
                    try await world.sleep(for: .seconds(240))
                    #expect(connections.connected == 12, "at \(world.elapsed)")
                }
                #expect(connections.total > 30)
                group.cancelAll()
            }
        }
    }

    /// Causes one fault, which has ended when this returns.
    private static func fail(
        _ peripherals: [ScriptedPeripheral],
        _ gateway: Device,
        in world: World,
        _ random: inout SeededGenerator
    ) async throws {
        switch Int.random(in: 0..<4, using: &random) {
        case 0:
            world.conditions.isDead = true
            try await world.sleep(for: .seconds(Int.random(in: 5...60, using: &random)))
            world.conditions.isDead = false
        case 1:
            gateway.failWithHardwareError()
        case 2:
            for peripheral in peripherals where Bool.random(using: &random) { await peripheral.disconnectClients() }
        default:
            let lost = peripherals.filter { _ in Bool.random(using: &random) }
            for peripheral in lost { peripheral.vanish() }
            try await world.sleep(for: .seconds(Int.random(in: 1...600, using: &random)))
            for peripheral in lost { peripheral.comeBack() }
        }
    }
}
