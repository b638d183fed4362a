import BLEByteCoding

/// Govee thermometers: manufacturer data (https://github.com/wcbonner/GoveeBTTempLogger, "Bluetooth message formats").
///
/// | models | company | layout |
/// |---|---|---|
/// | H5072, H5075 | 0xEC88, 6 bytes | 0, packed values (3), battery (1), 0 |
/// | H5051, H5074 | 0xEC88, 7 or 9 bytes | 0, temperature (2, 0.01 °C), humidity (2, 0.01 %), battery (1), … |
/// | H5100 to H5105, H5174, H5177 | 0x0001, 6 bytes | 1, 1, packed values (3), battery (1) |
/// | H5106 | 0x0001, 6 bytes | 1, 1, packed values (4) |
/// | H5179 | 0x8801, 9 bytes | … (4), temperature (2), humidity (2), battery (1) |
///
/// The packed values are a sign bit and a number, most significant byte first: the temperature in 0.1 °C times 1000,
/// plus the humidity in 0.1 %. Bit 7 of the battery reports an error; the measured values are then not valid. In the
/// H5106, the number is this sum times 1000, plus PM2.5 in µg/m³.
///
/// 0x0001 is the identifier of another company, and only the name distinguishes the H5106 from the other models. Such
/// data is decoded only with a Govee name.
enum Govee {
    /// Whether the field may be Govee's.
    static func isCandidate(_ company: UInt16, length: Int) -> Bool {
        switch company {
        case 0xEC88: [6, 7, 9].contains(length)
        case 0x0001: length == 6
        case 0x8801: length == 9
        default: false
        }
    }

    static func decode(_ data: RawSpan, company: UInt16, name: String) -> SensorReport? {
        let isNamed = ["Govee", "GVH5", "ihoment"].contains { name.hasPrefix($0) }
        guard company != 0x0001 || isNamed else { return nil }
        var reader = ByteReader(data)
        var report = SensorReport(format: .govee, model: model(name))
        do throws(PacketDecodingError) {
            switch (company, data.byteCount) {
            case (0xEC88, 6):
                try reader.skip(1)
                try decodePacked(&reader, into: &report)
            case (0xEC88, 7), (0xEC88, 9):
                try reader.skip(1)
                try decodePlain(&reader, into: &report)
            case (0x0001, 6):
                guard try reader.readUInt16() == 0x0101 else { return nil }
                if report.model == "H5106" {
                    try decodePackedWithParticles(&reader, into: &report)
                } else {
                    try decodePacked(&reader, into: &report)
                }
            case (0x8801, 9):
                try reader.skip(4)
                try decodePlain(&reader, into: &report)
            default: return nil
            }
        } catch {
            return nil
        }
        return report
    }

    private static func decodePacked(
        _ reader: inout ByteReader,
        into report: inout SensorReport
    ) throws(PacketDecodingError) {
        let packed = try reader.readUInt24BE()
        let magnitude = packed & 0x7F_FFFF
        let temperature = Double(magnitude / 1000) / 10
        let battery = try reader.readUInt8()
        guard battery & 0x80 == 0 else { return }
        report.readings.append(SensorReading(.temperature, packed & 0x80_0000 == 0 ? temperature : -temperature))
        report.readings.appendPercentage(.humidity, Double(magnitude % 1000) / 10)
        report.readings.appendPercentage(.battery, Double(battery))
    }

    private static func decodePackedWithParticles(
        _ reader: inout ByteReader,
        into report: inout SensorReport
    ) throws(PacketDecodingError) {
        let packed = try reader.readUInt32().byteSwapped
        let magnitude = packed & 0x7FFF_FFFF
        let temperature = Double(magnitude / 1_000_000) / 10
        report.readings.append(SensorReading(.temperature, packed & 0x8000_0000 == 0 ? temperature : -temperature))
        report.readings.appendPercentage(.humidity, Double(magnitude / 1000 % 1000) / 10)
        report.readings.append(SensorReading(.pm25, Double(magnitude % 1000)))
    }

    private static func decodePlain(
        _ reader: inout ByteReader,
        into report: inout SensorReport
    ) throws(PacketDecodingError) {
        let temperature = Double(try reader.readInt16()) / 100
        let humidity = Double(try reader.readUInt16()) / 100
        let battery = try reader.readUInt8()
        guard battery & 0x80 == 0 else { return }
        report.readings.append(SensorReading(.temperature, temperature))
        report.readings.appendPercentage(.humidity, humidity)
        report.readings.appendPercentage(.battery, Double(battery))
    }

    /// Returns the model in a name such as `GVH5075_1234`.
    private static func model(_ name: String) -> String? {
        guard let start = name.utf8.firstIndex(of: UInt8(ascii: "H")) else { return nil }
        let model = name[start...].prefix(5)
        guard model.utf8.count == 5, model.utf8.dropFirst().allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        return String(model)
    }
}
