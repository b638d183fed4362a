import BLE
import BluetoothSensors
import Foundation
import GatewayCore
import Testing

@testable import GatewayMQTT

/// A publisher without a broker.
struct MQTTPublisherTests {
    private func observation(_ number: UInt64) -> SensorObservation {
        SensorObservation(
            time: Date(timeIntervalSince1970: 0),
            gateway: "hall",
            address: DeviceAddress(0xC0DE_0000_0000 + number, isRandom: true),
            report: SensorReport(format: .bthome, readings: [])
        )
    }

    @Test func observationsBeforeTheEndAreStored() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "publisher-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let path = directory.appending(path: "mqtt.sqlite").path
        // Port 1 of this machine has no listener.
        var configuration = MQTTConfiguration(
            broker: try #require(BrokerAddress(parsing: "mqtt://127.0.0.1:1")),
            gateway: "hall",
            logger: LogRecorder().logger
        )
        configuration.storePath = path
        let publisher = try MQTTPublisher(configuration)
        for number in UInt64(0)..<4000 { publisher.publish(observation(number)) }
        let run = Task { try await publisher.run() }
        run.cancel()
        try await run.value
        let store = try MessageStore(path: path)
        let entries = try store.entries(after: 0, limit: 5000)
        #expect(entries.count == 4000)
        let addresses = entries.map { $0.message.topic.split(separator: "/").dropLast().last ?? "" }
        #expect(addresses == addresses.sorted())
    }
}
