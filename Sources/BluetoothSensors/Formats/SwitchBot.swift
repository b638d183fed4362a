import BLEByteCoding

/// SwitchBot meters: service data 0xFD3D, earlier 0x0D00, and for outdoor meters also manufacturer data of company
/// 0x0969 (https://github.com/OpenWonderLabs/SwitchBotAPI-BLE).
///
/// | service data | bytes | manufacturer data | bytes |
/// |---|---|---|---|
/// | model, bit 7: encrypted | 1 | address | 6 |
/// | status | 1 | sequence, … | 2 |
/// | battery (7 bits, %) | 1 | measured values | 3 |
/// | measured values | 3 | | |
///
/// The measured values are the tenths of the temperature (4 bits), its whole degrees (7 bits, bit 7 set: positive) and
/// the humidity (7 bits, %).
enum SwitchBot {
    static let serviceUUIDs: [UInt16] = [0xFD3D, 0x0D00]
    static let company: UInt16 = 0x0969

    static func decode(_ data: RawSpan, manufacturer: [UInt8]) -> SensorReport? {
        guard let type = data[checked: 0], let model = model(type & 0x7F), let battery = data[checked: 2] else {
            return nil
        }
        guard type & 0x80 == 0 else { return SensorReport(format: .switchbot, model: model, protection: .unsupported) }
        var report = SensorReport(format: .switchbot, model: model)
        let isOutdoor = type == 0x77
        var reader = isOutdoor ? ByteReader(manufacturer.rawSpan) : ByteReader(data)
        guard (try? reader.skip(isOutdoor ? 8 : 3)) != nil, let tenths = try? reader.readUInt8(),
            let degrees = try? reader.readUInt8(), let humidity = try? reader.readUInt8(), tenths & 0x0F < 10
        else { return nil }
        let temperature = Double(Int(degrees & 0x7F) * 10 + Int(tenths & 0x0F)) / 10
        report.readings.append(SensorReading(.temperature, degrees & 0x80 == 0 ? -temperature : temperature))
        report.readings.appendPercentage(.humidity, Double(humidity & 0x7F))
        report.readings.appendPercentage(.battery, Double(battery & 0x7F))
        return report
    }

    private static func model(_ type: UInt8) -> String? {
        switch type {
        case 0x54: "Meter"
        case 0x69: "Meter Plus"
        case 0x77: "Indoor/Outdoor Meter"
        default: nil
        }
    }
}
