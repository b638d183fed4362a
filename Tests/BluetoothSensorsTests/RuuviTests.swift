import BLEByteCoding
import BluetoothTypes
import Testing

@testable import BluetoothSensors

/// The test vectors of https://docs.ruuvi.com/communication/bluetooth-advertisements.
struct RuuviTests {
    private func report(_ text: String) throws -> SensorReport {
        let bytes = try #require([UInt8](hexadecimal: text))
        let data = [UInt8(bytes.count + 3), 0xFF, 0x99, 0x04] + bytes
        var decoder = SensorDecoder()
        let address = DeviceAddress(0xCBB8_334C_884F, isRandom: true)
        return try #require(decoder.decode(data.rawSpan, from: address, at: Instant(nanoseconds: 0)).first)
    }

    private func values(_ report: SensorReport) -> [String: Double] {
        var values: [String: Double] = [:]
        for reading in report.readings {
            // In thousandths, so that sums of binary fractions are compared as decimal ones.
            if case .number(let number) = reading.value { values[reading.name] = (number * 1000).rounded() / 1000 }
        }
        return values
    }

    /// An acceleration in units of 0.001 g, as m/s² in thousandths.
    private func acceleration(_ thousandths: Double) -> Double { (thousandths * 9.80665).rounded() / 1000 }

    @Test(
        arguments: [
            ("03291A1ECE1EFC18F94202CA0B53", 26.3, 20.5, 1027.66, [-1000, -1726, 714], 2.899),
            ("03FF7F63FFFF7FFF7FFF7FFFFFFF", 127.99, nil, 1155.35, [32767, 32767, 32767], 65.535),
            ("0300FF6300008001800180010000", -127.99, 0, 500, [-32767, -32767, -32767], 0),
        ] as [(String, Double, Double?, Double, [Double], Double)]
    )
    func format3(
        text: String,
        temperature: Double,
        humidity: Double?,
        pressure: Double,
        axes: [Double],
        voltage: Double
    ) throws {
        let report = try report(text)
        #expect(report.format == .ruuvi3)
        var expected = ["temperature": temperature, "pressure": pressure, "voltage": voltage]
        for (axis, value) in zip(["x", "y", "z"], axes) { expected["acceleration_\(axis)"] = acceleration(value) }
        expected["humidity"] = humidity
        #expect(values(report) == expected)
    }

    @Test(
        arguments: [
            (
                "0512FC5394C37C0004FFFC040CAC364200CDCBB8334C884F", 24.3, 53.49, 1000.44, [4, -4, 1036], 2.977, 4, 66,
                205
            ),
            (
                "057FFFFFFEFFFE7FFF7FFF7FFFFFDEFEFFFECBB8334C884F", 163.835, nil, 1155.34, [32767, 32767, 32767], 3.646,
                20,
                254, 65534
            ),
            (
                "058001000000008001800180010000000000CBB8334C884F", -163.835, 0, 500, [-32767, -32767, -32767], 1.6,
                -40, 0,
                0
            ),
        ] as [(String, Double, Double?, Double, [Double], Double, Double, Double, UInt32)]
    )
    func format5(
        text: String,
        temperature: Double,
        humidity: Double?,
        pressure: Double,
        axes: [Double],
        voltage: Double,
        power: Double,
        movements: Double,
        counter: UInt32
    ) throws {
        let report = try report(text)
        #expect(report.format == .ruuvi5)
        var expected = [
            "temperature": temperature, "pressure": pressure, "voltage": voltage, "tx_power": power,
            "movements": movements,
        ]
        for (axis, value) in zip(["x", "y", "z"], axes) { expected["acceleration_\(axis)"] = acceleration(value) }
        expected["humidity"] = humidity
        #expect(values(report) == expected)
        #expect(report.counter == counter)
    }

    @Test func shortenedAdvertisementsAreNoReports() throws {
        for text in ["03291A1ECE1EFC18F94202CA0B53", "0512FC5394C37C0004FFFC040CAC364200CDCBB8334C884F"] {
            let bytes = try #require([UInt8](hexadecimal: text))
            for count in 1..<bytes.count {
                let data = [UInt8(count + 3), 0xFF, 0x99, 0x04] + bytes.prefix(count)
                var decoder = SensorDecoder()
                let address = DeviceAddress(1, isRandom: true)
                #expect(decoder.decode(data.rawSpan, from: address, at: Instant(nanoseconds: 0)).isEmpty)
            }
        }
    }
}
