import BLEByteCoding
import BluetoothTypes

/// BTHome version 2: service data 0xFCD2 (https://bthome.io/format).
///
/// | field | bytes | meaning |
/// |---|---|---|
/// | device information | 1 | bit 0: encrypted; bit 1: address included; bit 2: irregular; bits 5 to 7: version, 2 |
/// | address | 6 | only if included; least significant byte first |
/// | objects | n | each an identifier and a value; see `BTHomeObject` |
/// | counter | 4 | only if encrypted |
/// | tag | 4 | only if encrypted |
///
/// The nonce is the address, most significant byte first, the UUID, the device information and the counter.
enum BTHome {
    static let serviceUUID: UInt16 = 0xFCD2

    static func frame(_ data: RawSpan, from address: DeviceAddress) -> KeyedFrame? {
        var reader = ByteReader(data)
        guard let information = try? reader.readUInt8(), information >> 5 == 2 else { return nil }
        if information & 0x02 != 0 {
            // The address names the device whose key applies, so another one is not accepted.
            guard (try? reader.readUInt48()) == address.value else { return nil }
        }
        var report = SensorReport(format: .bthome, isIrregular: information & 0x04 != 0)
        guard information & 0x01 != 0 else {
            guard !reader.isAtEnd else { return nil }
            let content = [UInt8](copying: reader.readRemaining())
            return KeyedFrame(kind: .bthome, report: report, content: .plain(content))
        }
        guard reader.remaining > 8, let ciphertext = try? reader.readBytes(count: reader.remaining - 8),
            let counter = try? reader.readBytes(count: 4)
        else { return nil }
        let counterBytes = [UInt8](copying: counter)
        report.counter = counterBytes.reversed().reduce(0) { $0 << 8 | UInt32($1) }
        let sealed = SealedContent(
            nonce: addressBytes(address) + [0xD2, 0xFC, information] + counterBytes,
            additionalData: [],
            ciphertext: [UInt8](copying: ciphertext),
            tag: [UInt8](copying: reader.readRemaining())
        )
        return KeyedFrame(kind: .bthome, report: report, content: .sealed(sealed, .bits32))
    }

    /// Decodes objects up to the first that is unknown or truncated, as the length of an unknown object is not known.
    /// Returns the packet number, if there is one.
    ///
    /// Readings with the same name are numbered by their objects. For example, a device with two buttons sends two
    /// objects. The object of a button that was not pressed has no reading.
    static func decode(_ content: RawSpan, into report: inout SensorReport) -> UInt8? {
        var reader = ByteReader(content)
        var packetNumber: UInt8?
        var omitted: [(name: String, index: Int)] = []
        objects: while let identifier = try? reader.readUInt8() {
            let layout = BTHomeObject.layout(identifier)
            var length = layout.length
            switch layout.kind {
            case .none: break objects
            case .text, .raw: length = (try? reader.readUInt8()).map { Int($0) } ?? .max
            case .command: length = (try? reader.readUInt8()).map { Int($0 & 0x1F) + 1 } ?? .max
            default: break
            }
            guard let value = try? reader.readBytes(count: length) else { break }
            if identifier == 0 { packetNumber = value[checked: 0] }
            let count = report.readings.count
            BTHomeObject.decode(value, layout, into: &report)
            if layout.isReading, report.readings.count == count {
                omitted.append((name: layout.deviceClass.rawValue, index: count))
            }
        }
        report.readings.numberEqualNames(omitted: omitted)
        return packetNumber
    }
}

/// The bytes of an address, most significant first.
func addressBytes(_ address: DeviceAddress) -> [UInt8] {
    stride(from: 40, through: 0, by: -8).map { UInt8(truncatingIfNeeded: address.value >> UInt64($0)) }
}
