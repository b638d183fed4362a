import BLEByteCoding
import BluetoothTypes

/// AltBeacon: manufacturer data of any company (https://github.com/AltBeacon/spec).
///
/// | field | bytes | meaning |
/// |---|---|---|
/// | code | 2 | 0xBE, 0xAC |
/// | identifier | 20 | organization (16) and unit (4) |
/// | reference power | 1 | signed, dBm at 1 m |
/// | reserved | 1 | for the company |
enum AltBeacon {
    static func decode(_ data: RawSpan, company: UInt16) -> SensorReport? {
        guard data.byteCount == 24 else { return nil }
        var reader = ByteReader(data)
        guard (try? reader.readUInt16BE()) == 0xBEAC, let identifier = try? reader.readBytes(count: 20),
            let power = try? reader.readInt8(), let reserved = try? reader.readUInt8()
        else { return nil }
        return SensorReport(
            format: .altbeacon,
            readings: [
                SensorReading(.identifier, .text([UInt8](copying: identifier).hexadecimal), name: "identifier"),
                SensorReading(.identifier, .number(Double(company)), name: "company"),
                SensorReading(.signalStrength, Double(power), name: "power_at_1m"),
                SensorReading(.raw, .number(Double(reserved)), name: "reserved"),
            ]
        )
    }
}
