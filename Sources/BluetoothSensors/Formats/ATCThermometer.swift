import BLEByteCoding
import BluetoothTypes

/// Xiaomi thermometers with the firmware by atc1441 or by pvvx: service data 0x181A
/// (https://github.com/atc1441/ATC_MiThermometer, https://github.com/pvvx/ATC_MiThermometer). The length of the data
/// tells the layouts apart.
///
/// | atc1441, 13 bytes | pvvx, 15 bytes | pvvx encrypted, 11 bytes | atc1441 encrypted, 8 bytes |
/// |---|---|---|---|
/// | address (6) | address (6, reversed) | counter (1) | counter (1) |
/// | temperature (2, 0.1 °C) | temperature (2, 0.01 °C) | temperature (2) | temperature (1, 0.5 °C + 40) |
/// | humidity (1, %) | humidity (2, 0.01 %) | humidity (2) | humidity (1, 0.5 %) |
/// | battery (1, %) | battery (2, mV) | battery (1, %) | battery (7 bits, %), trigger (1 bit) |
/// | battery (2, mV) | battery (1, %) | flags (1) | tag (4) |
/// | counter (1) | counter (1), flags (1) | tag (4) | |
///
/// Numbers of atc1441 are sent most significant byte first, those of pvvx least significant byte first. The nonce is
/// the reversed address, the header of the AD structure and the counter.
enum ATCThermometer {
    static let serviceUUID: UInt16 = 0x181A

    static func frame(_ data: RawSpan, from address: DeviceAddress) -> KeyedFrame? {
        switch data.byteCount {
        case 15, 13: plainFrame(data, address)
        case 11, 8: sealedFrame(data, address)
        default: nil
        }
    }

    private static func plainFrame(_ data: RawSpan, _ address: DeviceAddress) -> KeyedFrame? {
        var reader = ByteReader(data)
        guard let sent = try? reader.readUInt48() else { return nil }
        let isPVVX = data.byteCount == 15
        // The address in the data must be the advertiser's; other uses of service 0x181A fail this check.
        guard isPVVX ? sent == address.value : sent == address.value.byteSwapped >> 16 else { return nil }
        var report = SensorReport(format: isPVVX ? .pvvx : .atc1441, firmware: isPVVX ? "ATC (pvvx)" : "ATC (atc1441)")
        report.counter = data[checked: isPVVX ? 13 : 12].map { UInt32($0) }
        let content = [UInt8](copying: reader.readRemaining())
        return KeyedFrame(kind: .atc, report: report, content: .plain(content))
    }

    private static func sealedFrame(_ data: RawSpan, _ address: DeviceAddress) -> KeyedFrame? {
        let isPVVX = data.byteCount == 11
        var reader = ByteReader(data)
        guard let counter = try? reader.readUInt8(), let ciphertext = try? reader.readBytes(count: reader.remaining - 4)
        else { return nil }
        let report = SensorReport(
            format: isPVVX ? .pvvx : .atc1441,
            firmware: isPVVX ? "ATC (pvvx encrypted)" : "ATC (atc1441 encrypted)",
            counter: UInt32(counter)
        )
        let sealed = SealedContent(
            nonce: addressBytes(address).reversed() + [UInt8(data.byteCount + 3), 0x16, 0x1A, 0x18, counter],
            additionalData: [0x11],
            ciphertext: [UInt8](copying: ciphertext),
            tag: [UInt8](copying: reader.readRemaining())
        )
        return KeyedFrame(kind: .atc, report: report, content: .sealed(sealed, .bits8))
    }

    /// Decodes the content after the address, or the decrypted content.
    static func decode(_ content: RawSpan, into report: inout SensorReport) {
        var reader = ByteReader(content)
        switch content.byteCount {
        case 9: try? decodePVVX(&reader, into: &report)
        case 7: try? decodeATC(&reader, into: &report)
        case 6: try? decodeSealedPVVX(&reader, into: &report)
        case 3: try? decodeSealedATC(&reader, into: &report)
        default: break
        }
    }

    private static func decodePVVX(
        _ reader: inout ByteReader,
        into report: inout SensorReport
    ) throws(PacketDecodingError) {
        report.readings.append(SensorReading(.temperature, Double(try reader.readInt16()) / 100))
        report.readings.appendPercentage(.humidity, Double(try reader.readUInt16()) / 100)
        report.readings.append(SensorReading(.voltage, Double(try reader.readUInt16()) / 1000))
        report.readings.appendPercentage(.battery, Double(try reader.readUInt8()))
    }

    private static func decodeATC(
        _ reader: inout ByteReader,
        into report: inout SensorReport
    ) throws(PacketDecodingError) {
        report.readings.append(SensorReading(.temperature, Double(try reader.readInt16BE()) / 10))
        report.readings.appendPercentage(.humidity, Double(try reader.readUInt8()))
        let battery = try reader.readUInt8()
        report.readings.append(SensorReading(.voltage, Double(try reader.readUInt16BE()) / 1000))
        report.readings.appendPercentage(.battery, Double(battery))
    }

    private static func decodeSealedPVVX(
        _ reader: inout ByteReader,
        into report: inout SensorReport
    ) throws(PacketDecodingError) {
        report.readings.append(SensorReading(.temperature, Double(try reader.readInt16()) / 100))
        report.readings.appendPercentage(.humidity, Double(try reader.readUInt16()) / 100)
        report.readings.appendPercentage(.battery, Double(try reader.readUInt8()))
    }

    private static func decodeSealedATC(
        _ reader: inout ByteReader,
        into report: inout SensorReport
    ) throws(PacketDecodingError) {
        report.readings.append(SensorReading(.temperature, Double(try reader.readUInt8()) / 2 - 40))
        report.readings.appendPercentage(.humidity, Double(try reader.readUInt8()) / 2)
        report.readings.appendPercentage(.battery, Double(try reader.readUInt8() & 0x7F))
    }
}
