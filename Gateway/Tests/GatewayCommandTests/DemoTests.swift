import BLE
import Foundation
import Testing

@testable import Gateway

struct DemoTests {
    @Test func broadcastIsBTHomeVersion2() {
        let data = DemoBroadcaster.data(packet: 9, temperature: 2150, humidity: 5005)
        #expect(data.serviceData["FCD2"] == [0x40, 0x00, 9, 0x02, 0x66, 0x08, 0x03, 0x8D, 0x13])
        #expect(data.length <= 31)
    }

    @Test func adapterIsRefused() throws {
        let error = #expect(throws: (any Error).self) { try Demo.parse(["--adapter", "hci0"]) }
        let problem = Demo.message(for: try #require(error))
        #expect(problem == "demo has a simulated adapter; leave out --adapter, or use `ble-gateway run`")
        #expect(throws: Never.self) { try Demo.parse(["--port", "0"]) }
    }

    @Test func fileOverridesTheValuesOfTheDemo() throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "demo-\(UUID().uuidString).json").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        let file = #"{"name": "hall", "readings": "json", "logLevel": "debug"}"#
        try Data(file.utf8).write(to: URL(fileURLWithPath: path))
        let settings = try Demo.parse(["--config", path, "--state-dir", "/s"]).settings()
        #expect(settings.name == "hall" && settings.readings == .json && settings.logLevel == .debug)
        let options = ["--config", path, "--state-dir", "/s", "--name", "attic", "--readings", "none"]
        let overridden = try Demo.parse(options).settings()
        #expect(overridden.name == "attic" && overridden.readings == .none && overridden.logLevel == .debug)
    }

    @Test(arguments: [([], .none), (["--no-api"], .json)] as [([String], ReadingsFormat)])
    func demoHasValuesOfItsOwn(options: [String], readings: ReadingsFormat) throws {
        let settings = try Demo.parse(options + ["--state-dir", "/s"]).settings()
        #expect(settings.name == "ble-gateway-demo" && settings.logLevel == .warning)
        #expect(settings.readings == readings)
        #expect(settings.stateDirectory == "/s")
    }

    @Test func readingStaysBetweenItsBounds() {
        var reading = SimulatedReading(bounds: 0...10, step: 4)
        let values = (0..<100).map { _ in reading.next() }
        #expect(values.allSatisfy { $0 >= 0 && $0 <= 10 })
        #expect(Set(values).count > 1)
    }

    @Test func devicesAreFoundAndTheLampAnswers() async throws {
        let air = AdapterSpecification.virtual(name: "demo-test")
        let devices = try await DemoDevices.start(on: air)
        let adapter = try await Adapter.open(air)
        var found: Set<DeviceAddress> = []
        for try await advertisement in adapter.central.scan() {
            found.insert(advertisement.address)
            if found.count == 3 { break }
        }
        #expect(
            found == [DemoDevices.thermometerAddress, DemoDevices.broadcasterAddress, DemoDevices.lampAddress]
        )
        let lamp = try await adapter.central.connect(to: DemoDevices.lampAddress)
        let state = try await lamp.characteristic(DemoLamp.state, in: DemoLamp.service)
        let changes = try await lamp.subscribe(to: state)
        try await lamp.write([1, 40], to: state)
        for try await change in changes {
            #expect(change.value == [1, 40])
            break
        }
        await adapter.close()
        await devices.stop()
    }
}
