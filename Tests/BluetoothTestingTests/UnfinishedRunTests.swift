import BLE
import BluetoothTesting
import Testing

@Suite("A run that does not end")
struct UnfinishedRunTests {
    /// Waits for the end of a link to a lamp, which does not come.
    private static func run(schedule: ScriptedCharacteristic.Schedule?) -> UnfinishedRun? {
        #expect(throws: UnfinishedRun.self) {
            try World.run(limit: .seconds(20)) { world in
                let counter = ScriptedCharacteristic("FFE2", properties: .notify, schedule: schedule)
                let lamp = try await world.peripheral("lamp", services: [ScriptedService("FFE0", [counter])])
                let phone = try await world.device("phone").openAdapter()
                let peer = try await phone.central.connect(to: lamp.address)
                _ = try await peer.disconnection()
            }
        }
    }

    @Test func runThatWaitsForAnEventSaysSo() {
        let error = Self.run(schedule: nil)
        #expect(error?.awaited == [])
        #expect(error?.description.contains("such as a notification or the end of a link") == true)
    }

    @Test func scheduledValueIsListed() throws {
        let awaited = try #require(Self.run(schedule: .every(.seconds(30)) { _ in [1] })?.awaited)
        #expect(awaited.contains { $0.hasPrefix("the next scheduled value of FFE2 of lamp, until ") }, "\(awaited)")
    }

    @Test func moveOfADeviceIsListed() throws {
        let error = #expect(throws: UnfinishedRun.self) {
            try World.run(limit: .seconds(20)) { world in
                try await world.device("phone").move(to: Position(x: 5, y: 0), over: .seconds(60))
            }
        }
        let awaited = try #require(error?.awaited)
        #expect(awaited.contains { $0.hasPrefix("the move of phone, until ") }, "\(awaited)")
    }
}
