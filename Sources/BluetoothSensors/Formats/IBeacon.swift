import BLEByteCoding
import BluetoothTypes

/// Apple iBeacon: manufacturer data of company 0x004C (Apple, "Proximity Beacon Specification").
///
/// | field | bytes | meaning |
/// |---|---|---|
/// | type, length | 2 | 0x02, 0x15 |
/// | proximity UUID | 16 | most significant byte first |
/// | major, minor | 2, 2 | most significant byte first |
/// | measured power | 1 | signed, dBm at 1 m |
enum IBeacon {
    static let company: UInt16 = 0x004C

    static func decode(_ data: RawSpan) -> SensorReport? {
        guard data.byteCount >= 23 else { return nil }
        var reader = ByteReader(data)
        guard (try? reader.readUInt16BE()) == 0x0215, let uuid = try? reader.readUInt128(),
            let major = try? reader.readUInt16BE(), let minor = try? reader.readUInt16BE(),
            let power = try? reader.readInt8()
        else { return nil }
        return SensorReport(
            format: .ibeacon,
            readings: [
                SensorReading(.identifier, .text(BluetoothUUID(uuid.byteSwapped).description), name: "uuid"),
                SensorReading(.identifier, .number(Double(major)), name: "major"),
                SensorReading(.identifier, .number(Double(minor)), name: "minor"),
                SensorReading(.signalStrength, Double(power), name: "power_at_1m"),
            ]
        )
    }
}
