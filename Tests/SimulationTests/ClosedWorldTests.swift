import BLE
import BluetoothTesting
import Testing

@Suite("A closed world")
struct ClosedWorldTests {
    @Test func delayedAnswerOfAScriptDoesNotKeepTheWorld() throws {
        try LeakCheck.run(seed: 1) { world in
            let late = ScriptedCharacteristic(
                "FFE1",
                properties: [.write],
                onWrite: { _ in .after(.seconds(300), .accept) }
            )
            let lamp = try await world.peripheral("lamp", services: [ScriptedService("FFE0", [late])])
            let phone = try await world.device("phone").openAdapter()
            let peer = try await phone.central.connect(to: lamp.address)
            let handle = try #require(lamp.valueHandle(of: "FFE1"))
            await #expect(throws: BLEError.disconnected(.attributeTransactionTimeout)) {
                try await peer.write([1], to: handle)
            }
        }
    }

    @Test func waitingTaskDoesNotKeepTheWorld() throws {
        try LeakCheck.run(seed: 1) { world in
            Task(executorPreference: world.taskExecutor) {
                try? await world.sleep(for: .seconds(3600))
            }
            try await world.sleep(for: .seconds(1))
        }
    }

    @Test("A task that waits again after an adapter was closed does not keep the world")
    func taskThatWaitsAgainDoesNotKeepTheWorld() throws {
        try LeakCheck.run(seed: 1) { world in
            let phone = try await world.device("phone").openAdapter()
            Task(executorPreference: world.taskExecutor) {
                // The second wait begins when the first one has ended with the world.
                try? await world.sleep(for: .seconds(3600))
                _ = try? await phone.information
                try? await world.sleep(for: .seconds(3600))
            }
            try await world.sleep(for: .seconds(1))
        }
    }
}
