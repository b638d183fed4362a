import BLEByteCoding
import BluetoothTypes

/// Eddystone: service data 0xFEAA (https://github.com/google/eddystone). The first byte is the frame type.
///
/// | UID, 0x00 | URL, 0x10 | TLM, 0x20 | EID, 0x30 |
/// |---|---|---|---|
/// | power (1, dBm at 0 m) | power (1) | version (1): 0 plain, 1 encrypted | power (1) |
/// | namespace (10) | scheme (1) | battery (2, mV; 0: unknown) | ephemeral identifier (8) |
/// | instance (6) | address (n) | temperature (2, 1/256 °C; 0x8000: unknown) | |
/// | reserved (2, optional) | | advertisements (4), time (4, 0.1 s) | |
///
/// Numbers are sent most significant byte first.
enum Eddystone {
    static let serviceUUID: UInt16 = 0xFEAA

    static func decode(_ data: RawSpan) -> SensorReport? {
        var reader = ByteReader(data)
        switch try? reader.readUInt8() {
        case 0x00: return try? decodeUID(&reader)
        case 0x10: return try? decodeURL(&reader)
        case 0x20: return try? decodeTLM(&reader)
        case 0x30: return try? decodeEID(&reader)
        default: return nil
        }
    }

    private static func decodeUID(_ reader: inout ByteReader) throws(PacketDecodingError) -> SensorReport {
        let power = try reader.readInt8()
        let namespace = [UInt8](copying: try reader.readBytes(count: 10))
        let instance = [UInt8](copying: try reader.readBytes(count: 6))
        return report([
            SensorReading(.identifier, .text(namespace.hexadecimal), name: "namespace"),
            SensorReading(.identifier, .text(instance.hexadecimal), name: "instance"),
            SensorReading(.signalStrength, Double(power), name: "power_at_0m"),
        ])
    }

    private static func decodeURL(_ reader: inout ByteReader) throws(PacketDecodingError) -> SensorReport? {
        let schemes = ["http://www.", "https://www.", "http://", "https://"]
        let suffixes = [".com", ".org", ".edu", ".net", ".info", ".biz", ".gov"]
        let power = try reader.readInt8()
        let scheme = Int(try reader.readUInt8())
        guard scheme < schemes.count else { return nil }
        var url = schemes[scheme]
        while let byte = try? reader.readUInt8() {
            switch byte {
            case 0x00...0x06: url += suffixes[Int(byte)] + "/"
            case 0x07...0x0D: url += suffixes[Int(byte) - 7]
            case 0x21...0x7E: url.unicodeScalars.append(Unicode.Scalar(byte))
            // The specification reserves the other values.
            default: return nil
            }
        }
        return report([
            SensorReading(.url, .text(url)), SensorReading(.signalStrength, Double(power), name: "power_at_0m"),
        ])
    }

    private static func decodeTLM(_ reader: inout ByteReader) throws(PacketDecodingError) -> SensorReport? {
        switch try reader.readUInt8() {
        case 0: break
        case 1: return SensorReport(format: .eddystone, protection: .unsupported)
        default: return nil
        }
        let battery = try reader.readUInt16BE()
        let temperature = try reader.readInt16BE()
        let advertisements = try reader.readUInt32().byteSwapped
        let time = try reader.readUInt32().byteSwapped
        var readings: [SensorReading] = []
        if battery != 0 { readings.append(SensorReading(.voltage, Double(battery) / 1000)) }
        if temperature != .min { readings.append(SensorReading(.temperature, Double(temperature) / 256)) }
        readings.append(SensorReading(.count, Double(advertisements), name: "advertisements"))
        readings.append(SensorReading(.duration, Double(time) / 10, name: "uptime"))
        return report(readings)
    }

    private static func decodeEID(_ reader: inout ByteReader) throws(PacketDecodingError) -> SensorReport {
        let power = try reader.readInt8()
        let identifier = [UInt8](copying: try reader.readBytes(count: 8))
        return report([
            SensorReading(.identifier, .text(identifier.hexadecimal), name: "ephemeral_identifier"),
            SensorReading(.signalStrength, Double(power), name: "power_at_0m"),
        ])
    }

    private static func report(_ readings: [SensorReading]) -> SensorReport {
        SensorReport(format: .eddystone, readings: readings)
    }
}
