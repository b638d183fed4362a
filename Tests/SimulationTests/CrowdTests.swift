import BLE
import BluetoothTesting
import Foundation
import Testing

@Suite("A crowd of devices")
struct CrowdTests {
    private static let service: BluetoothUUID = "5C3A1001-0000-4000-8000-00805F9B34FB"
    private static let value: BluetoothUUID = "5C3A1002-0000-4000-8000-00805F9B34FB"

    /// The result of a run.
    struct Outcome: Sendable {
        var advertisersFound = 0
        var notifications = 0
        var simulated = Duration.zero
    }

    /// Simulates 200 advertisers around one central, which connects to 32 of them. Each notifies it twice a second.
    private static func live(for duration: Duration) throws -> Outcome {
        try LeakCheck.run(seed: 200, limit: .seconds(600), checksEachStep: false) { world in
            var peripherals: [ScriptedPeripheral] = []
            for index in 0..<200 {
                peripherals.append(
                    try await world.peripheral(
                        "sensor \(index)",
                        services: [
                            ScriptedService(
                                service,
                                [
                                    ScriptedCharacteristic(
                                        value,
                                        properties: .notify,
                                        schedule: .every(.milliseconds(500)) { [UInt8(truncatingIfNeeded: $0)] }
                                    )
                                ]
                            )
                        ],
                        advertisingInterval: .milliseconds(1000)
                    )
                )
            }
            let central = try await world.device("central").openAdapter().central
            var addresses: Set<DeviceAddress> = []
            for try await advertisement in central.scan(ScanOptions(serviceUUIDs: [service])) {
                addresses.insert(advertisement.address)
                if addresses.count == 200 { break }
            }
            var outcome = Outcome(advertisersFound: addresses.count)
            var subscriptions: [Subscription] = []
            for peripheral in peripherals.prefix(32) {
                let peer = try await central.connect(to: peripheral.address)
                let found = try await peer.discoverServices([service])
                let characteristics = try await peer.discoverCharacteristics([value], of: #require(found.first))
                subscriptions.append(try await peer.subscribe(to: #require(characteristics.first)))
            }
            outcome.notifications = try await withThrowingTaskGroup(of: Int.self) { group in
                for subscription in subscriptions {
                    group.addTask {
                        var count = 0
                        do {
                            for try await _ in subscription { count += 1 }
                        } catch is BLEError {}
                        return count
                    }
                }
                try await world.sleep(for: duration)
                group.cancelAll()
                return try await group.reduce(0, +)
            }
            outcome.simulated = world.elapsed
            return outcome
        }
    }

    @Test("200 advertisers are found, and 32 connections exist at the same time")
    func all200AdvertisersAreFoundAnd32ConnectionsExist() throws {
        let outcome = try Self.live(for: .seconds(5))
        #expect(outcome.advertisersFound == 200)
        // Each of the 32 sends ten values in that time, and those connected first send some before.
        #expect(outcome.notifications >= 32 * 10)
    }

    @Test(
        .enabled(if: ProcessInfo.processInfo.environment["SIMULATION_REPORT"] != nil, "make simulate-report prints it")
    )
    func costOfACrowdIsPrinted() throws {
        let clock = ContinuousClock()
        for duration in [10, 60] {
            let start = clock.now
            let outcome = try Self.live(for: .seconds(duration))
            let taken = clock.now - start
            let perSecond = taken / outcome.simulated * 1000
            print(
                "200 advertisers, 32 connections: \(outcome.simulated) simulated in \(taken), "
                    + String(format: "%.1f ms a simulated second", perSecond)
                    + ", peak memory \(try Self.peakMemory()), \(outcome.notifications) notifications"
            )
        }
    }

    /// The peak memory use of the process, as Linux reports it.
    private static func peakMemory() throws -> String {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") })
        return line.dropFirst("VmHWM:".count).trimmingCharacters(in: .whitespaces)
    }
}
