import BLE
import BluetoothTesting
import Synchronization
import Testing

// The code of the article "Testing a gateway".

struct Gateway: Sendable {
    let adapter: Adapter
    let clock: any Clock<Duration>
    let report: @Sendable (_ sensor: DeviceAddress, _ temperature: Int) -> Void

    func run(sensors: [DeviceAddress]) async {
        await withTaskGroup(of: Void.self) { group in
            for sensor in sensors { group.addTask { await follow(sensor) } }
        }
    }

    private func follow(_ sensor: DeviceAddress) async {
        while !Task.isCancelled {
            do {
                try await collect(from: sensor)
            } catch {
                try? await clock.sleep(for: .seconds(5))
            }
        }
    }

    private func collect(from sensor: DeviceAddress) async throws {
        let peer = try await adapter.central.connect(to: sensor, timeout: .seconds(20))
        let temperature = try await peer.characteristic("2A6E", in: "181A")
        for try await value in try await peer.subscribe(to: temperature) where value.value.count == 2 {
            report(sensor, Int(Int16(truncatingIfNeeded: Int(value.value[0]) | Int(value.value[1]) << 8)))
        }
    }
}

/// Counts the reports of each sensor.
final class Log: Sendable {
    private let counts = Mutex<[DeviceAddress: Int]>([:])

    func add(_ sensor: DeviceAddress) {
        counts.withLock { $0[sensor, default: 0] += 1 }
    }

    func count(of sensor: ScriptedPeripheral) -> Int {
        counts.withLock { $0[sensor.address] ?? 0 }
    }
}

@Suite("A gateway in a world")
struct GatewayTests {
    func makeSensor(_ name: String, in world: World) async throws -> ScriptedPeripheral {
        try await world.peripheral(
            name,
            at: Position(x: 5, y: 0),
            services: [
                ScriptedService(
                    "181A",
                    [
                        ScriptedCharacteristic(
                            "2A6E",
                            properties: [.read, .notify],
                            schedule: .every(.seconds(1)) { count in [UInt8(truncatingIfNeeded: count), 0] }
                        )
                    ]
                )
            ]
        )
    }

    @Test func gatewayCollectsAgainAfterALostLinkAndAnUnpluggedController() throws {
        let log = Log()
        try World.run(seed: 7) { world in
            let sensors = [try await makeSensor("kitchen", in: world), try await makeSensor("cellar", in: world)]
            let gateway = Gateway(
                adapter: try await world.device("gateway").openAdapter(),
                clock: world.clock,
                report: { sensor, _ in log.add(sensor) }
            )
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { await gateway.run(sensors: sensors.map(\.address)) }

                try await world.sleep(for: .seconds(20))
                #expect(log.count(of: sensors[0]) >= 15 && log.count(of: sensors[1]) >= 15)

                // The cellar's sensor runs out of battery, and gets a new one a minute later.
                sensors[1].vanish()
                try await world.sleep(for: .seconds(60))
                let before = log.count(of: sensors[1])
                sensors[1].comeBack()
                try await world.sleep(for: .seconds(60))
                #expect(log.count(of: sensors[1]) >= before + 20)

                // The gateway's own controller is unplugged for some time.
                let count = log.count(of: sensors[0])
                world.devices.last?.vanish()
                try await world.sleep(for: .seconds(10))
                world.devices.last?.comeBack()
                try await world.sleep(for: .seconds(120))
                #expect(log.count(of: sensors[0]) >= count + 20)
                group.cancelAll()
            }
        }
    }
}
