import BLE
import BluetoothSensors
import Foundation
import GatewayCore
import Testing

@testable import GatewayMQTT

struct DiscoveryTests {
    private let topics = Topics(prefix: "ble", gateway: "hall")

    private func observation(_ readings: [SensorReading], number: UInt64 = 2) -> SensorObservation {
        SensorObservation(
            time: Date(timeIntervalSince1970: 0),
            gateway: "hall",
            address: DeviceAddress(0xC0DE_0000_0000 + number, isRandom: true),
            report: SensorReport(format: .bthome, readings: readings)
        )
    }

    private func object(_ message: MQTTMessage) throws -> [String: Any] {
        try #require(JSONSerialization.jsonObject(with: Data(message.payload.utf8)) as? [String: Any])
    }

    @Test func binarySensorsHaveStates() throws {
        var discovery = HomeAssistantDiscovery(prefix: "homeassistant", topics: topics)
        let messages = discovery.announcements(for: observation([SensorReading(.motion, .boolean(true))]))
        let message = try #require(messages.first)
        #expect(messages.count == 1 && message.isRetained)
        #expect(message.topic == "homeassistant/binary_sensor/ble_C0DE00000002_motion/config")
        let object = try object(message)
        #expect(object["device_class"] as? String == "motion")
        #expect((object["value_template"] as? String)?.contains("'ON'") == true)
        #expect(object["state_class"] == nil)
    }

    @Test func classesThatHomeAssistantDoesNotKnowAreLeftOut() throws {
        var discovery = HomeAssistantDiscovery(prefix: "homeassistant", topics: topics)
        let readings = [
            SensorReading(.acceleration, .number(1), unit: "m/s²", name: "acceleration_x"),
            SensorReading(.text, .text("a \"b\"")), SensorReading(.packetID, .number(7)),
            SensorReading(.button, .event("press", count: nil)),
        ]
        let messages = discovery.announcements(for: observation(readings))
        #expect(messages.map(\.topic).map { $0.split(separator: "_").last } == ["x/config", "text/config"])
        for message in messages { #expect(try object(message)["device_class"] == nil) }
        #expect(try object(messages[0])["name"] as? String == "Acceleration x")
    }

    @Test func amountsThatAddUpAreNoMeasurements() throws {
        var discovery = HomeAssistantDiscovery(prefix: "homeassistant", topics: topics)
        let readings = [
            SensorReading(.energy, .number(1), unit: "kWh"), SensorReading(.gas, .number(1), unit: "m³"),
            SensorReading(.water, .number(1), unit: "L"), SensorReading(.volume, .number(1), unit: "L"),
            SensorReading(.temperature, .number(1), unit: "°C"),
        ]
        let classes = try discovery.announcements(for: observation(readings)).map {
            try object($0)["state_class"] as? String
        }
        #expect(classes == ["total_increasing", "total_increasing", "total_increasing", "total", "measurement"])
    }

    @Test func readingsAreAnnouncedOnceAndAgainAfterARestart() {
        var discovery = HomeAssistantDiscovery(prefix: "homeassistant", topics: topics)
        let observation = observation([SensorReading(.temperature, .number(1), unit: "°C")])
        let counts = (0..<4).map { round in
            if round == 2 { discovery.restart() }
            return discovery.announcements(for: observation).count
        }
        #expect(counts == [1, 0, 1, 0])
    }

    @Test func announcementsAreBounded() {
        var discovery = HomeAssistantDiscovery(prefix: "homeassistant", topics: topics)
        var count = 0
        for number in 0..<UInt64(HomeAssistantDiscovery.limit + 10) {
            let reading = SensorReading(.temperature, .number(1), unit: "°C")
            count += discovery.announcements(for: observation([reading], number: number)).count
        }
        #expect(count == HomeAssistantDiscovery.limit)
    }
}
