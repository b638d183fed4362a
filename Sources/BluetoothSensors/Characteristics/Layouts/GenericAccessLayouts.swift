import BluetoothTypes

extension CharacteristicLayout {
    /// The characteristics of the services GAP (Vol 3, Part C, 12) and GATT (Vol 3, Part G, 7), and of the proximity
    /// profiles (GATT Specification Supplement, "Alert Level", "Tx Power Level").
    static let genericAccess: [UInt16: CharacteristicLayout] = [
        // Device Name.
        0x2A00: CharacteristicLayout(.text("name")),
        // Appearance.
        0x2A01: CharacteristicLayout(
            .formatted("appearance", .uint16) { raw in
                let number = hexadecimalNumber(raw, size: 2)
                return Appearance(rawValue: UInt16(truncatingIfNeeded: raw)).name.map { "\($0) (\(number))" } ?? number
            }
        ),
        // Peripheral Privacy Flag.
        0x2A02: CharacteristicLayout(.names("privacy", ["disabled", "enabled"])),
        // Peripheral Preferred Connection Parameters.
        0x2A04: CharacteristicLayout(
            .number("minimum_interval", .uint16, times: 125, exponent: -2, "ms", special: [0xFFFF: "not specific"]),
            .number("maximum_interval", .uint16, times: 125, exponent: -2, "ms", special: [0xFFFF: "not specific"]),
            .number("latency", .uint16),
            .number("supervision_timeout", .uint16, times: 10, "ms", special: [0xFFFF: "not specific"])
        ),
        // Service Changed.
        0x2A05: CharacteristicLayout(.hexadecimal("first_handle", .uint16), .hexadecimal("last_handle", .uint16)),
        // Alert Level.
        0x2A06: CharacteristicLayout(.names("alert_level", ["no alert", "mild alert", "high alert"])),
        // Tx Power Level.
        0x2A07: CharacteristicLayout(.number("tx_power", .sint8, "dBm")),
        // Central Address Resolution.
        0x2AA6: CharacteristicLayout(.names("address_resolution", ["not supported", "supported"])),
        // Resolvable Private Address Only.
        0x2AC9: CharacteristicLayout(.names("private_addresses", ["only resolvable private addresses are used"])),
        // Client Supported Features.
        0x2B29: CharacteristicLayout(
            .bits("features", ["robust caching", "enhanced ATT bearers", "multiple notifications"])
        ),
        // Database Hash.
        0x2B2A: CharacteristicLayout(.bytes("hash", 16)),
        // Server Supported Features.
        0x2B3A: CharacteristicLayout(.bits("features", ["enhanced ATT bearers"])),
    ]
}
