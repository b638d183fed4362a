import BLEByteCoding

/// Ruuvi data formats 3, 5, 6 and E1: manufacturer data of company 0x0499
/// (https://docs.ruuvi.com/communication/bluetooth-advertisements).
///
/// Numbers are sent most significant byte first. The first byte is the format. A field with its invalid value, which is
/// the lowest signed or the highest unsigned number, gives no reading.
///
/// | format 3 | format 5 | format 6 | format E1 |
/// |---|---|---|---|
/// | humidity (1, 0.5 %) | temperature (2, 0.005 °C) | temperature (2) | temperature (2) |
/// | temperature (2, sign and hundredths) | humidity (2, 0.0025 %) | humidity (2) | humidity (2) |
/// | pressure (2, Pa - 50000) | pressure (2) | pressure (2) | pressure (2) |
/// | acceleration (3 × 2, 0.001 g) | acceleration (3 × 2) | PM2.5 (2, 0.1 µg/m³) | PM1, 2.5, 4, 10 (4 × 2) |
/// | battery (2, mV) | battery and power (11 + 5 bits) | CO2 (2, ppm) | CO2 (2) |
/// | | movements (1) | VOC, NOX (2 × 1, high 8 of 9 bits) | VOC, NOX (2 × 1) |
/// | | sequence (2) | luminosity (1, logarithmic), reserved (1) | luminosity (3, 0.01 lx), reserved (3) |
/// | | address (6) | sequence (1), flags (1) | sequence (3), flags (1), reserved (5) |
/// | | | address (3) | address (6) |
enum Ruuvi {
    static let company: UInt16 = 0x0499

    static func decode(_ data: RawSpan) -> SensorReport? {
        var reader = ByteReader(data)
        switch try? reader.readUInt8() {
        case 0x03: return try? format3(&reader)
        case 0x05: return try? format5(&reader)
        case 0x06: return try? format6(&reader)
        case 0xE1: return try? formatE1(&reader)
        default: return nil
        }
    }

    private static func format3(_ reader: inout ByteReader) throws(PacketDecodingError) -> SensorReport {
        var report = SensorReport(format: .ruuvi3)
        let humidity = try reader.readUInt8()
        let degrees = try reader.readUInt8()
        let hundredths = try reader.readUInt8()
        if hundredths < 100 {
            let magnitude = Double(Int(degrees & 0x7F) * 100 + Int(hundredths)) / 100
            report.readings.append(SensorReading(.temperature, degrees & 0x80 == 0 ? magnitude : -magnitude))
        }
        report.readings.appendPercentage(.humidity, Double(humidity) / 2)
        appendPressure(try reader.readUInt16BE(), isChecked: false, to: &report)
        appendAcceleration(try reader.readInt16BE(), try reader.readInt16BE(), try reader.readInt16BE(), to: &report)
        report.readings.append(SensorReading(.voltage, Double(try reader.readUInt16BE()) / 1000))
        return report
    }

    private static func format5(_ reader: inout ByteReader) throws(PacketDecodingError) -> SensorReport {
        var report = SensorReport(format: .ruuvi5)
        try appendClimate(&reader, to: &report)
        appendAcceleration(try reader.readInt16BE(), try reader.readInt16BE(), try reader.readInt16BE(), to: &report)
        let power = try reader.readUInt16BE()
        if power >> 5 != 0x7FF { report.readings.append(SensorReading(.voltage, Double(power >> 5 + 1600) / 1000)) }
        if power & 0x1F != 0x1F {
            let level = Double(power & 0x1F) * 2 - 40
            report.readings.append(SensorReading(.signalStrength, level, name: "tx_power"))
        }
        let movements = try reader.readUInt8()
        if movements != 0xFF { report.readings.append(SensorReading(.count, Double(movements), name: "movements")) }
        let sequence = try reader.readUInt16BE()
        if sequence != 0xFFFF { report.counter = UInt32(sequence) }
        try reader.skip(6)
        return report
    }

    private static func format6(_ reader: inout ByteReader) throws(PacketDecodingError) -> SensorReport {
        var report = SensorReport(format: .ruuvi6)
        try appendClimate(&reader, to: &report)
        append(.pm25, try reader.readUInt16BE(), 10, to: &report)
        append(.carbonDioxide, try reader.readUInt16BE(), 1, to: &report)
        let voc = try reader.readUInt8()
        let nox = try reader.readUInt8()
        let luminosity = try reader.readUInt8()
        try reader.skip(1)
        report.counter = UInt32(try reader.readUInt8())
        let flags = try reader.readUInt8()
        try reader.skip(3)
        appendIndices(voc, nox, flags, to: &report)
        if luminosity != 0xFF { report.readings.append(SensorReading(.illuminance, lux(luminosity))) }
        return report
    }

    private static func formatE1(_ reader: inout ByteReader) throws(PacketDecodingError) -> SensorReport {
        var report = SensorReport(format: .ruuviE1)
        try appendClimate(&reader, to: &report)
        for deviceClass in [SensorDeviceClass.pm1, .pm25, .pm4, .pm10] {
            append(deviceClass, try reader.readUInt16BE(), 10, to: &report)
        }
        append(.carbonDioxide, try reader.readUInt16BE(), 1, to: &report)
        let voc = try reader.readUInt8()
        let nox = try reader.readUInt8()
        let luminosity = try reader.readUInt24BE()
        try reader.skip(3)
        let sequence = try reader.readUInt24BE()
        let flags = try reader.readUInt8()
        try reader.skip(11)
        appendIndices(voc, nox, flags, to: &report)
        if luminosity != 0xFF_FFFF { report.readings.append(SensorReading(.illuminance, Double(luminosity) / 100)) }
        if sequence != 0xFF_FFFF { report.counter = sequence }
        return report
    }

    private static func appendClimate(
        _ reader: inout ByteReader,
        to report: inout SensorReport
    ) throws(PacketDecodingError) {
        let temperature = try reader.readInt16BE()
        let humidity = try reader.readUInt16BE()
        if temperature != .min { report.readings.append(SensorReading(.temperature, Double(temperature) / 200)) }
        report.readings.appendPercentage(.humidity, Double(humidity) / 400)
        appendPressure(try reader.readUInt16BE(), isChecked: true, to: &report)
    }

    private static func appendPressure(_ value: UInt16, isChecked: Bool, to report: inout SensorReport) {
        if isChecked, value == 0xFFFF { return }
        report.readings.append(SensorReading(.pressure, Double(UInt32(value) + 50_000) / 100))
    }

    private static func appendAcceleration(_ x: Int16, _ y: Int16, _ z: Int16, to report: inout SensorReport) {
        for (value, axis) in [(x, "x"), (y, "y"), (z, "z")] where value != .min {
            // Standard gravity: 9.80665 m/s².
            let acceleration = Double(value) * 9.80665 / 1000
            report.readings.append(SensorReading(.acceleration, acceleration, name: "acceleration_" + axis))
        }
    }

    private static func append(
        _ deviceClass: SensorDeviceClass,
        _ value: UInt16,
        _ divisor: Double,
        to report: inout SensorReport
    ) {
        if value != 0xFFFF { report.readings.append(SensorReading(deviceClass, Double(value) / divisor)) }
    }

    private static func appendIndices(_ voc: UInt8, _ nox: UInt8, _ flags: UInt8, to report: inout SensorReport) {
        let volatile = UInt16(voc) << 1 | UInt16(flags >> 6 & 1)
        let nitrous = UInt16(nox) << 1 | UInt16(flags >> 7)
        if volatile != 0x1FF { report.readings.append(SensorReading(.volatileOrganicIndex, Double(volatile))) }
        if nitrous != 0x1FF { report.readings.append(SensorReading(.nitrousOxideIndex, Double(nitrous))) }
    }

    /// Returns 65536 ^ (code / 254) - 1: the code is logarithmic. Powers are computed by repeated multiplication, as
    /// the standard library has no exponential function.
    private static func lux(_ code: UInt8) -> Double {
        // 65536 ^ (1 / 254)
        let base = 1.0446300614125956
        var result = 1.0
        for _ in 0..<code { result *= base }
        return (result - 1).rounded()
    }
}

extension ByteReader {
    /// Reads two bytes, most significant first.
    mutating func readUInt16BE() throws(PacketDecodingError) -> UInt16 { try readUInt16().byteSwapped }

    /// Reads two bytes as a signed number, most significant first.
    mutating func readInt16BE() throws(PacketDecodingError) -> Int16 { Int16(bitPattern: try readUInt16BE()) }

    /// Reads two bytes as a signed number, least significant first.
    mutating func readInt16() throws(PacketDecodingError) -> Int16 { Int16(bitPattern: try readUInt16()) }

    /// Reads three bytes, most significant first.
    mutating func readUInt24BE() throws(PacketDecodingError) -> UInt32 { try readUInt24().byteSwapped >> 8 }
}
