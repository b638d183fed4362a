import BLE
import BluetoothSensors
import Foundation
import GatewayCore
import Testing

@testable import GatewayMQTT

/// The values that the entities of Home Assistant take, and their classes.
struct EntityTests {
    private func makeDiscovery() -> HomeAssistantDiscovery {
        HomeAssistantDiscovery(prefix: "homeassistant", topics: Topics(prefix: "ble", gateway: "hall"))
    }

    private func observation(of reading: SensorReading) -> SensorObservation {
        SensorObservation(
            time: Date(timeIntervalSince1970: 0),
            gateway: "hall",
            address: DeviceAddress(0xC0DE_0000_0002, isRandom: true),
            report: SensorReport(format: .bthome, readings: [reading])
        )
    }

    private func configuration(in message: MQTTMessage) throws -> [String: Any] {
        try #require(JSONSerialization.jsonObject(with: Data(message.payload.utf8)) as? [String: Any])
    }

    private func configuration(of reading: SensorReading) throws -> [String: Any] {
        var discovery = makeDiscovery()
        let message = try #require(discovery.announcements(for: observation(of: reading), at: .zero).first)
        return try configuration(in: message)
    }

    private func template(of reading: SensorReading) throws -> String {
        try #require(configuration(of: reading)["value_template"] as? String)
    }

    /// BTHome has a battery level, and a state that says whether the battery is low.
    @Test func entitiesOfOneNameTakeValuesOfTheirKind() throws {
        let object = #"value_json.readings["battery"]"#
        let isThere = #"{% if "battery" in value_json.readings and "#
        let isLevel = #"\#(object).value is number and \#(object).value is not boolean and \#(object).unit == "%" %}"#
        let level = try template(of: SensorReading(.battery, .number(97), unit: "%"))
        #expect(level == "\(isThere)\(isLevel){{ \(object).value }}{% endif %}")
        let low = try template(of: SensorReading(.battery, .boolean(false)))
        #expect(low == "\(isThere)\(object).value is boolean %}{{ 'ON' if \(object).value else 'OFF' }}{% endif %}")
    }

    @Test(arguments: ["kg", "lb"])
    func numberHasTheUnitThatWasAnnounced(unit: String) throws {
        let template = try template(of: SensorReading(.mass, .number(1), unit: unit))
        #expect(template.contains(#" and value_json.readings["mass"].unit == "\#(unit)" %}"#))
    }

    /// A device that changes its unit all the time is announced again at most once an hour after the first change.
    @Test func changedUnitIsAnnouncedAgain() throws {
        var discovery = makeDiscovery()
        let times: [(unit: String, seconds: Int64)] = [
            ("kg", 0), ("kg", 1), ("lb", 2), ("lb", 3), ("kg", 4), ("kg", 3601), ("kg", 3602), ("lb", 3603),
        ]
        var announced: [String] = []
        for (unit, seconds) in times {
            let reading = SensorReading(.mass, .number(1), unit: unit)
            for message in discovery.announcements(for: observation(of: reading), at: .seconds(seconds)) {
                let unit = try #require(configuration(in: message)["unit_of_measurement"] as? String)
                announced.append("\(unit) \(seconds)")
            }
        }
        #expect(announced == ["kg 0", "lb 2", "kg 3602"])
    }

    @Test func numberWithoutUnitIsTakenWithoutOne() throws {
        let template = try template(of: SensorReading(.count, .number(1)))
        #expect(template.contains("is not boolean %}"))
    }

    @Test(
        arguments: [
            (.mass, "kg", "weight", "Mass"), (.mass, "lb", "weight", "Mass"),
            (.dewPoint, "°C", "temperature", "Dew point"),
        ] as [(SensorDeviceClass, String, String, String)]
    )
    func classHasTheNameOfHomeAssistant(
        deviceClass: SensorDeviceClass,
        unit: String,
        homeAssistantClass: String,
        name: String
    ) throws {
        let configuration = try configuration(of: SensorReading(deviceClass, .number(1), unit: unit))
        #expect(configuration["device_class"] as? String == homeAssistantClass)
        #expect(configuration["name"] as? String == name)
        #expect(configuration["state_class"] as? String == "measurement")
        #expect(configuration["unit_of_measurement"] as? String == unit)
    }
}
