extension CharacteristicLayout {
    /// Electrical values (GATT Specification Supplement, sections of the same names as the characteristics).
    static let electricity: [UInt16: CharacteristicLayout] = [
        // Electric Current, Electric Current Range.
        0x2AEE: CharacteristicLayout(.number("current", .uint16, exponent: -2, "A", unknown: 0xFFFF)),
        0x2AEF: CharacteristicLayout(
            .number("minimum_current", .uint16, exponent: -2, "A", unknown: 0xFFFF),
            .number("maximum_current", .uint16, exponent: -2, "A", unknown: 0xFFFF)
        ),
        // Energy.
        0x2AF2: CharacteristicLayout(.number("energy", .uint24, "kWh", unknown: 0xFF_FFFF)),
        // Power.
        0x2B05: CharacteristicLayout(
            .number("power", .uint24, exponent: -1, "W", unknown: 0xFF_FFFF, special: [0xFF_FFFE: "not valid"])
        ),
        // Voltage.
        0x2B18: CharacteristicLayout(.number("voltage", .uint16, binary: 6, "V", unknown: 0xFFFF)),
        // Apparent Power.
        0x2B8A: CharacteristicLayout(
            .number(
                "apparent_power",
                .uint24,
                exponent: -1,
                "VA",
                unknown: 0xFF_FFFF,
                special: [0xFF_FFFE: "not valid"]
            )
        ),
    ]

    /// Light (GATT Specification Supplement, sections of the same names as the characteristics).
    static let light: [UInt16: CharacteristicLayout] = [
        // Correlated Color Temperature.
        0x2AE9: CharacteristicLayout(.number("color_temperature", .uint16, "K", unknown: 0xFFFF)),
        // Illuminance.
        0x2AFB: CharacteristicLayout(.number("illuminance", .uint24, exponent: -2, "lx", unknown: 0xFF_FFFF)),
        // Luminous Efficacy.
        0x2AFC: CharacteristicLayout(.number("luminous_efficacy", .uint16, exponent: -1, "lm/W", unknown: 0xFFFF)),
        // Luminous Flux.
        0x2AFF: CharacteristicLayout(.number("luminous_flux", .uint16, "lm", unknown: 0xFFFF)),
        // Luminous Intensity.
        0x2B01: CharacteristicLayout(.number("luminous_intensity", .uint16, "cd", unknown: 0xFFFF)),
    ]

    /// Values without a particular use (GATT Specification Supplement, sections of the same names as the
    /// characteristics).
    static let generic: [UInt16: CharacteristicLayout] = [
        // Boolean.
        0x2AE2: CharacteristicLayout(.names("state", ["false", "true"])),
        // Count 16, Count 24.
        0x2AEA: CharacteristicLayout(.number("count", .uint16, unknown: 0xFFFF)),
        0x2AEB: CharacteristicLayout(.number("count", .uint24, unknown: 0xFF_FFFF)),
        // Percentage 8.
        0x2B04: CharacteristicLayout(
            .number("percentage", .uint8, times: 5, exponent: -1, "%", maximum: 200, unknown: 0xFF)
        ),
        // Temperature 8.
        0x2B0D: CharacteristicLayout(.number("temperature", .sint8, times: 5, exponent: -1, "°C", unknown: 0x7F)),
        // Temperature Range.
        0x2B10: CharacteristicLayout(
            .number("minimum_temperature", .sint16, exponent: -2, "°C", unknown: 0x8000),
            .number("maximum_temperature", .sint16, exponent: -2, "°C", unknown: 0x8000)
        ),
        // Time Hour 24, Time Millisecond 24, Time Second 16, Time Second 8.
        0x2B14: CharacteristicLayout(.number("duration", .uint24, "h", unknown: 0xFF_FFFF)),
        0x2B15: CharacteristicLayout(.number("duration", .uint24, "ms", unknown: 0xFF_FFFF)),
        0x2B16: CharacteristicLayout(.number("duration", .uint16, "s", unknown: 0xFFFF)),
        0x2B17: CharacteristicLayout(.number("duration", .uint8, "s", unknown: 0xFF)),
        // Fixed String 16, 24, 36 and 8.
        0x2AF5: CharacteristicLayout(.text("text")),
        0x2AF6: CharacteristicLayout(.text("text")),
        0x2AF7: CharacteristicLayout(.text("text")),
        0x2AF8: CharacteristicLayout(.text("text")),
    ]
}
