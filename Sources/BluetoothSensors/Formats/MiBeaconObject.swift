import BLEByteCoding

/// The objects of MiBeacon with the values of sensors
/// (https://iot.mi.com/new/doc/accesses/direct-access/embedded-development/ble/object-definition).
///
/// | type | value |
/// |---|---|
/// | 0x1004 | temperature (2, signed, 0.1 °C) |
/// | 0x1006 | humidity (2, 0.1 %) |
/// | 0x1007 | illuminance (3, lx) |
/// | 0x1008 | soil moisture (1, %) |
/// | 0x1009 | soil conductivity (2, µS/cm) |
/// | 0x100A | battery (1, %) |
/// | 0x100D | temperature (2), humidity (2) |
/// | 0x1010 | formaldehyde (2, 0.01 mg/m³) |
/// | 0x1012 | power (1) |
/// | 0x1013 | consumable (1, %) |
/// | 0x1014, 0x1015 | moisture, smoke (1) |
/// | 0x1017 | seconds without motion (4) |
/// | 0x1018 | light (1) |
/// | 0x1019 | door: 0 open, 1 closed, 2 left open (1) |
/// | 0x4803, 0x4C03 | battery (1, %) |
/// | 0x4C01, 0x4C08 | temperature (4, float), humidity (4, float) |
/// | 0x4802, 0x4C02 | humidity (1, %) |
/// | 0x4801, 0x4808 | temperature (4, float), humidity (4, float) |
/// | 0x4805 | illuminance (4, float, lx) |
/// | 0x4806 | moisture (1) |
/// | 0x4818 | seconds without motion (2) |
/// | 0x4A01, 0x4E01 | low battery (1) |
enum MiBeaconObject {
    /// Appends the readings of one object. A value of another length gives none.
    static func decode(_ type: UInt16, _ value: RawSpan, into report: inout SensorReport) {
        var reader = ByteReader(value)
        switch value.byteCount {
        case 1:
            guard let byte = try? reader.readUInt8() else { return }
            decodeByte(type, byte, &report.readings)
        case 2:
            guard let number = try? reader.readUInt16() else { return }
            decodeTwoBytes(type, number, &report.readings)
        case 3:
            guard type == 0x1007, let number = try? reader.readUInt24() else { return }
            decodeLight(number, report.model, &report.readings)
        case 4:
            guard let number = try? reader.readUInt32() else { return }
            decodeFourBytes(type, number, &report.readings)
        default: break
        }
    }

    private static func decodeByte(_ type: UInt16, _ byte: UInt8, _ readings: inout [SensorReading]) {
        func append(_ deviceClass: SensorDeviceClass, _ state: Bool) {
            readings.append(SensorReading(deviceClass, .boolean(state)))
        }
        switch type {
        case 0x1008: readings.appendPercentage(.moisture, Double(byte))
        case 0x100A, 0x4803, 0x4C03: readings.appendPercentage(.battery, Double(byte))
        case 0x4802, 0x4C02: readings.appendPercentage(.humidity, Double(byte))
        case 0x1013: readings.appendPercentage(.consumable, Double(byte))
        case 0x1012: append(.power, byte != 0)
        case 0x1014, 0x4806: append(.moisture, byte != 0)
        case 0x4A01, 0x4E01: append(.battery, byte != 0)
        case 0x1015: append(.smoke, byte != 0)
        case 0x1018: append(.light, byte != 0)
        case 0x1019 where byte <= 2: append(.opening, byte != 1)
        default: break
        }
    }

    private static func decodeTwoBytes(_ type: UInt16, _ number: UInt16, _ readings: inout [SensorReading]) {
        switch type {
        case 0x1004: readings.append(SensorReading(.temperature, Double(Int16(bitPattern: number)) / 10))
        case 0x1006: readings.appendPercentage(.humidity, Double(number) / 10)
        case 0x1009: readings.append(SensorReading(.conductivity, Double(number)))
        case 0x1010: readings.append(SensorReading(.formaldehyde, Double(number) / 100))
        case 0x4818: readings.append(SensorReading(.motion, .boolean(number <= motionSeconds)))
        default: break
        }
    }

    private static func decodeFourBytes(_ type: UInt16, _ number: UInt32, _ readings: inout [SensorReading]) {
        let float = Double(Float(bitPattern: number))
        switch type {
        case 0x100D:
            decodeTwoBytes(0x1004, UInt16(truncatingIfNeeded: number), &readings)
            decodeTwoBytes(0x1006, UInt16(truncatingIfNeeded: number >> 16), &readings)
        case 0x1017: readings.append(SensorReading(.motion, .boolean(number <= UInt32(motionSeconds))))
        case 0x4C01, 0x4801: if float.isFinite { readings.append(SensorReading(.temperature, float)) }
        case 0x4C08, 0x4808: readings.appendPercentage(.humidity, float)
        case 0x4805: if float.isFinite { readings.append(SensorReading(.illuminance, float)) }
        default: break
        }
    }

    private static func decodeLight(_ number: UInt32, _ model: String?, _ readings: inout [SensorReading]) {
        switch model {
        // These models send 100 for light and at most 1 for darkness.
        case "MJYD02YL", "MCCGQ02HL": readings.append(SensorReading(.light, .boolean(number == 100)))
        default: readings.append(SensorReading(.illuminance, Double(number)))
        }
    }

    /// The devices report the time without motion first at 60 seconds, so a shorter time means motion.
    private static let motionSeconds: UInt16 = 30
}
