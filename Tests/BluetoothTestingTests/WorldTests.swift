import BLE
import BluetoothTesting
import Testing

@Suite("A simulated world")
struct WorldTests {
    @Test("A central finds a scripted peripheral, reads, writes and is notified")
    func conversation() throws {
        try World.run(seed: 1) { world in
            let lamp = try await world.peripheral(
                "lamp",
                services: [
                    ScriptedService(
                        "FFE0",
                        [
                            ScriptedCharacteristic("FFE1", properties: [.read, .write], value: [7]),
                            ScriptedCharacteristic(
                                "FFE2",
                                properties: [.notify],
                                schedule: .every(.seconds(1)) { [UInt8(truncatingIfNeeded: $0)] }
                            ),
                        ]
                    )
                ]
            )
            let phone = try await world.device("phone").openAdapter()
            var found: DeviceAddress?
            for try await advertisement in phone.central.scan() where advertisement.localName == "lamp" {
                found = advertisement.address
                break
            }
            #expect(found == lamp.address)
            let peer = try await phone.central.connect(to: lamp.address)
            let services = try await peer.discoverAll()
            let characteristics = try #require(services.last?.characteristics)
            #expect(try await peer.read(characteristics[0].valueHandle) == [7])
            try await peer.write([9], to: characteristics[0].valueHandle)
            #expect(lamp.value(of: "FFE1") == [9])
            #expect(lamp.writes.map(\.value) == [[9]])
            let notifications = try await peer.subscribe(to: characteristics[1])
            var values: [UInt8] = []
            for try await notification in notifications {
                values += notification.value
                if values.count == 5 { break }
            }
            #expect(zip(values, values.dropFirst()).allSatisfy { $1 == $0 &+ 1 })
            await peer.disconnect()
        }
    }
}
