import BLE
import BluetoothSensors
import Foundation
import GatewayCore
import Testing

@testable import GatewayMQTT

struct TheengsPayloadTests {
    private func object(_ readings: SensorReading...) throws -> [String: Any] {
        let observation = SensorObservation(
            time: Date(timeIntervalSince1970: 0),
            gateway: "hall",
            address: DeviceAddress(0xC0DE_0000_0002, isRandom: true),
            report: SensorReport(format: .bthome, readings: readings)
        )
        let text = TheengsPayload(observation: observation).text
        return try #require(JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    }

    @Test(arguments: ["kg", "lb"])
    func massIsWeightWithItsUnit(unit: String) throws {
        let object = try object(SensorReading(.mass, .number(73.5), unit: unit))
        #expect(object["weight"] as? Double == 73.5)
        #expect(object["unit"] as? String == unit)
    }

    @Test func stateHasNoKeyOfANumber() throws {
        let object = try object(
            SensorReading(.battery, .boolean(true)),
            SensorReading(.moisture, .boolean(true)),
            SensorReading(.motion, .boolean(true))
        )
        #expect(Set(object.keys) == ["id", "mac", "motion"])
        #expect(object["motion"] as? Bool == true)
    }

    @Test func percentageHasItsKey() throws {
        let object = try object(
            SensorReading(.battery, .number(97), unit: "%"),
            SensorReading(.moisture, .number(40), unit: "%")
        )
        #expect(object["batt"] as? Int == 97)
        #expect(object["moi"] as? Int == 40)
    }
}
