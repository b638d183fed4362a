import BluetoothTypes

extension CharacteristicLayout {
    /// Descriptors (Vol 3, Part G, 3.3.3; GATT Specification Supplement, "Descriptors").
    static let descriptors: [UInt16: CharacteristicLayout] = [
        // Characteristic Extended Properties.
        0x2900: CharacteristicLayout(.set("properties", .uint16, ["reliable write", "writable auxiliaries"])),
        // Characteristic User Description.
        0x2901: CharacteristicLayout(.text("description")),
        // Client Characteristic Configuration.
        0x2902: CharacteristicLayout(.set("subscription", .uint16, ["notifications", "indications"])),
        // Server Characteristic Configuration.
        0x2903: CharacteristicLayout(.set("configuration", .uint16, ["broadcasts"])),
        // Characteristic Presentation Format.
        0x2904: CharacteristicLayout(
            .formatted("format", .uint8) { raw in
                PresentationFormat.Format(rawValue: UInt8(truncatingIfNeeded: raw)).map { "\($0)" }
                    ?? "reserved (\(raw))"
            },
            .number("exponent", .sint8, special: [0: ""]),
            .formatted("unit", .uint16) { raw in
                BluetoothUUID(UInt16(truncatingIfNeeded: raw)).name ?? hexadecimalNumber(raw, size: 2)
            },
            .names("namespace", [0: "", 1: "Bluetooth SIG"]),
            .number("description", .uint16, special: [0: ""])
        ),
        // Characteristic Aggregate Format: the handles of presentation formats.
        0x2905: CharacteristicLayout(.hexadecimal("format_handle", .uint16).repeated),
        // Report Reference.
        0x2908: CharacteristicLayout(
            .number("report_identifier", .uint8),
            .names("report_type", ["reserved (0)", "input", "output", "feature"])
        ),
        // Number of Digitals.
        0x2909: CharacteristicLayout(.number("digitals", .uint8)),
        // Environmental Sensing Measurement.
        0x290C: CharacteristicLayout(
            .set("flags", .uint16, []),
            .names(
                "sampling_function",
                [
                    "unspecified", "instantaneous", "arithmetic mean", "root mean square", "maximum", "minimum",
                    "accumulated", "count",
                ]
            ),
            .number("measurement_period", .uint24, "s", special: [0: ""]),
            .number("update_interval", .uint24, "s", special: [0: ""]),
            .number("application", .uint8),
            .number("uncertainty", .uint8, exponent: -1, "%", special: [0xFF: ""])
        ),
    ]
}
