import BLEByteCoding
import BluetoothTypes
import Testing

@testable import BluetoothSensors

/// Reports of the formats without keys.
@Suite struct BeaconTests {
    private func decode(_ text: String, name: String? = nil) -> SensorReport? {
        var decoder = SensorDecoder()
        let bytes = [UInt8](hexadecimal: text)!
        let address = DeviceAddress(0x1122_3344_5566, isRandom: true)
        return decoder.decode(bytes.rawSpan, from: address, name: name, at: Instant(nanoseconds: 0)).first
    }

    private func numbers(_ report: SensorReport?) -> [String: Double] {
        var result: [String: Double] = [:]
        for reading in report?.readings ?? [] {
            if case .number(let number) = reading.value { result[reading.name] = number }
        }
        return result
    }

    @Test func ibeacon() {
        let report = decode("1aff4c000215e2c56db5dffb48d2b060d0f5a71096e000010002c5")
        let uuid = SensorReading.Value.text("E2C56DB5-DFFB-48D2-B060-D0F5A71096E0")
        #expect(report?.readings.first?.value == uuid)
        #expect(numbers(report) == ["major": 1, "minor": 2, "power_at_1m": -59])
    }

    @Test func eddystone() {
        #expect(decode("0c16aafe10eb03737769667407")?.readings.first?.value == .text("https://swift.com"))
        // A space is no character of a URL.
        #expect(decode("0c16aafe10eb03737720667407") == nil)
        let telemetry = decode("1116aafe20000bb8158000000001" + "0000000a")
        #expect(numbers(telemetry) == ["voltage": 3, "temperature": 21.5, "advertisements": 1, "uptime": 1])
        #expect(decode("0516aafe2001")?.protection == .unsupported)
    }

    @Test func goveeNeedsName() {
        let data = "09ff0100010103519e64"
        #expect(decode(data) == nil)
        // Models with different layouts have the service.
        #expect(decode("030388ec" + data) == nil)
        let report = decode(data, name: "GVH5101_1234")
        #expect(report?.model == "H5101")
        #expect(numbers(report) == ["temperature": 21.7, "humidity": 50.2, "battery": 100])
    }

    @Test(
        arguments: [("0ed2e431", 24.8, 70.2, 1), ("8ed2e4b1", -24.8, 70.2, 129)] as [(String, Double, Double, Double)]
    )
    func goveeH5106HasParticlesInsteadOfBattery(
        packed: String,
        temperature: Double,
        humidity: Double,
        particles: Double
    ) {
        let report = decode("09ff01000101" + packed, name: "GVH5106_1234")
        #expect(report?.model == "H5106")
        #expect(numbers(report) == ["temperature": temperature, "humidity": humidity, "pm25": particles])
    }

    @Test func switchBotMeter() {
        #expect(numbers(decode("09163dfd540064059a2d")) == ["temperature": 26.5, "humidity": 45, "battery": 100])
    }
}
