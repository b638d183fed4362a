import BLEByteCoding
import BluetoothTypes

/// Xiaomi MiBeacon versions 2 to 5: service data 0xFE95
/// (https://iot.mi.com/new/doc/accesses/direct-access/embedded-development/ble/ble-mibeacon).
///
/// | field | bytes | meaning |
/// |---|---|---|
/// | frame control | 2 | bits 3: encrypted, 4: address, 5: capability, 6: objects, 7: mesh, 12 to 15: version |
/// | product | 2 | the device model |
/// | frame counter | 1 | |
/// | address | 6 | if included; least significant byte first |
/// | capability | 1 | if included; bit 5: one more byte follows |
/// | objects | n | each a type (2), a length (1) and a value; see `MiBeaconObject` |
/// | extended counter | 3 | if encrypted; the upper bytes of the frame counter |
/// | tag | 4 | if encrypted |
///
/// The nonce of versions 4 and 5 is the reversed address, the product and both counters. The encryption of versions 2
/// and 3, which has a tag of one byte or none, is not supported.
enum MiBeacon {
    static let serviceUUID: UInt16 = 0xFE95

    static func frame(_ data: RawSpan, from address: DeviceAddress) -> KeyedFrame? {
        var reader = ByteReader(data)
        return try? frame(&reader, data, address)
    }

    private static func frame(
        _ reader: inout ByteReader,
        _ data: RawSpan,
        _ address: DeviceAddress
    ) throws(PacketDecodingError) -> KeyedFrame? {
        let control = try reader.readUInt16()
        let product = try reader.readUInt16()
        let counter = try reader.readUInt8()
        let version = control >> 12
        let isEncrypted = control & 0x08 != 0
        guard control & 0x80 == 0, (2...5).contains(version) else { return nil }
        if control & 0x10 != 0 {
            guard try reader.readUInt48() == address.value else { return nil }
        }
        if control & 0x20 != 0, try reader.readUInt8() & 0x20 != 0 { try reader.skip(1) }
        guard control & 0x40 != 0 else { return nil }
        var report = SensorReport(
            format: .mibeacon,
            model: MiBeaconProduct.model(product),
            firmware: "Xiaomi (MiBeacon V\(version)\(isEncrypted ? " encrypted" : ""))",
            counter: UInt32(counter)
        )
        guard isEncrypted else {
            guard reader.remaining >= 3 else { return nil }
            let content = [UInt8](copying: reader.readRemaining())
            return KeyedFrame(kind: .mibeacon, report: report, content: .plain(content))
        }
        guard version >= 4 else { return KeyedFrame(kind: .mibeacon, report: report, content: .unsupported) }
        guard reader.remaining >= 9 else { return nil }
        let ciphertext = [UInt8](copying: try reader.readBytes(count: reader.remaining - 7))
        let extended = try reader.readUInt24()
        report.counter = extended << 8 | UInt32(counter)
        let productAndCounter = [product, product >> 8, UInt16(counter)].map { UInt8(truncatingIfNeeded: $0) }
        let extendedBytes = [extended, extended >> 8, extended >> 16].map { UInt8(truncatingIfNeeded: $0) }
        let sealed = SealedContent(
            nonce: addressBytes(address).reversed() + productAndCounter + extendedBytes,
            additionalData: [0x11],
            ciphertext: ciphertext,
            tag: [UInt8](copying: reader.readRemaining())
        )
        return KeyedFrame(kind: .mibeacon, report: report, content: .sealed(sealed, .bits32))
    }

    /// Decodes objects up to the first that is truncated. Unknown objects are skipped.
    static func decode(_ content: RawSpan, into report: inout SensorReport) {
        var reader = ByteReader(content)
        while let type = try? reader.readUInt16(), let length = try? reader.readUInt8(),
            let value = try? reader.readBytes(count: Int(length))
        {
            MiBeaconObject.decode(type, value, into: &report)
        }
        report.readings.numberEqualNames()
    }
}
