import BluetoothTypes

extension CharacteristicLayout {
    /// The characteristics of the services Device Information and Human Interface Device (GATT Specification
    /// Supplement, sections of the same names as the characteristics).
    static let deviceInformation: [UInt16: CharacteristicLayout] = [
        // System ID: the bytes of an EUI-64, least significant first.
        0x2A23: CharacteristicLayout(.hexadecimal("manufacturer_identifier", .uint40), .hexadecimal("oui", .uint24)),
        0x2A24: CharacteristicLayout(.text("model_number")),
        0x2A25: CharacteristicLayout(.text("serial_number")),
        0x2A26: CharacteristicLayout(.text("firmware_revision")),
        0x2A27: CharacteristicLayout(.text("hardware_revision")),
        0x2A28: CharacteristicLayout(.text("software_revision")),
        0x2A29: CharacteristicLayout(.text("manufacturer_name")),
        // PnP ID. The source of the vendor says whose numbers they are.
        0x2A50: CharacteristicLayout(
            .flags(.uint8, .names("vendor_source", 0..<8, ["reserved (0)", "Bluetooth SIG", "USB-IF"])),
            .formatted("vendor", .uint16, companyText).with(.equal(1)),
            .hexadecimal("vendor", .uint16).with(.notEqual(1)),
            .hexadecimal("product", .uint16),
            .formatted("version", .uint16, versionText)
        ),
        // HID Information.
        0x2A4A: CharacteristicLayout(
            .formatted("hid_version", .uint16, versionText),
            .number("country_code", .uint8),
            .set("features", .uint8, ["remote wake", "normally connectable"])
        ),
        // Protocol Mode.
        0x2A4E: CharacteristicLayout(.names("protocol_mode", ["boot protocol", "report protocol"])),
        // Scan Interval Window.
        0x2A4F: CharacteristicLayout(
            .number("scan_interval", .uint16, times: 625, exponent: -3, "ms"),
            .number("scan_window", .uint16, times: 625, exponent: -3, "ms")
        ),
    ]

    /// The company of an identifier of the Bluetooth SIG.
    private static func companyText(_ raw: UInt64) -> String? {
        let number = hexadecimalNumber(raw, size: 2)
        return CompanyIdentifier(rawValue: UInt16(truncatingIfNeeded: raw)).name.map { "\($0) (\(number))" } ?? number
    }

    /// A version 0xJJMN, with the major number JJ, the minor number M and the sub-minor number N.
    private static func versionText(_ raw: UInt64) -> String? {
        "\(String(raw >> 8 & 0xFF, radix: 16)).\(raw >> 4 & 0xF).\(raw & 0xF)"
    }
}
