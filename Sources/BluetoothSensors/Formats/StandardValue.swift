import BLEByteCoding

/// Values of characteristics that the Bluetooth SIG defines, for sensors that are read over a connection
/// (GATT Specification Supplement).
///
/// | characteristic | UUID | value |
/// |---|---|---|
/// | Battery Level | 0x2A19 | 1 byte, % |
/// | Pressure | 0x2A6D | 4 bytes, 0.1 Pa |
/// | Temperature | 0x2A6E | 2 bytes, signed, 0.01 °C; 0x8000: unknown |
/// | Humidity | 0x2A6F | 2 bytes, 0.01 %; 0xFFFF: unknown |
/// | Heart Rate Measurement | 0x2A37 | flags (1), heart rate (1, or 2 if flag bit 0), … |
public enum StandardValue {
    /// Decodes the value of the characteristic with this 16-bit UUID.
    ///
    /// - Returns: nil if the characteristic is not supported, its value is malformed, or the device reports that it
    /// does   not know the value.
    public static func decode(_ value: RawSpan, characteristic: UInt16) -> SensorReading? {
        try? reading(value, characteristic)
    }

    private static func reading(
        _ value: RawSpan,
        _ characteristic: UInt16
    ) throws(PacketDecodingError) -> SensorReading? {
        var reader = ByteReader(value)
        switch characteristic {
        case 0x2A19: return percentage(.battery, Double(try reader.readUInt8()))
        case 0x2A6D: return SensorReading(.pressure, Double(try reader.readUInt32()) / 1000)
        case 0x2A6E:
            let number = try reader.readInt16()
            return number == .min ? nil : SensorReading(.temperature, Double(number) / 100)
        case 0x2A6F: return percentage(.humidity, Double(try reader.readUInt16()) / 100)
        case 0x2A37:
            let isLong = try reader.readUInt8() & 0x01 != 0
            let rate = isLong ? Double(try reader.readUInt16()) : Double(try reader.readUInt8())
            return SensorReading(.heartRate, rate)
        default: return nil
        }
    }

    private static func percentage(_ deviceClass: SensorDeviceClass, _ number: Double) -> SensorReading? {
        (0...100).contains(number) ? SensorReading(deviceClass, number) : nil
    }
}
