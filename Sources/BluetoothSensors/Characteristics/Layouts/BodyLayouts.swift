extension CharacteristicLayout {
    /// The characteristics of the services Weight Scale and Body Composition (GATT Specification Supplement, "Weight
    /// Measurement", "Body Composition Measurement"). Bit 0 of the flags selects pounds and inches.
    static let weight: [UInt16: CharacteristicLayout] = [
        // The other bits of the flags: 1 time, 2 user, 3 BMI and height.
        0x2A9D: CharacteristicLayout(
            [.flags(.uint8)] + mass("weight") + [
                .time("time").when(1),
                .number("user", .uint8, unknown: 255).when(2),
                .number("bmi", .uint16, exponent: -1, "kg/m²").when(3),
                .number("height", .uint16, exponent: -3, "m").when(3, not: 0),
                .number("height", .uint16, exponent: -1, "in").when(3, and: 0),
            ]
        ),
        0x2A9E: CharacteristicLayout(
            .packed(
                .uint32,
                .set("features", 0..<3, ["time", "several users", "BMI"]),
                .names(
                    "weight_resolution",
                    3..<7,
                    ["", "0.5 kg", "0.2 kg", "0.1 kg", "0.05 kg", "0.02 kg", "0.01 kg", "0.005 kg"]
                ),
                .names("height_resolution", 7..<10, ["", "0.01 m", "0.005 m", "0.001 m"])
            )
        ),
        0x2A9C: CharacteristicLayout(
            [
                .flags(.uint16, .set("packets", 12..<13, ["several"])),
                .number("body_fat", .uint16, exponent: -1, "%", special: [0xFFFF: "measurement failed"]),
                .time("time").when(1),
                .number("user", .uint8, unknown: 255).when(2),
                .number("basal_metabolism", .uint16, "kJ").when(3),
                .number("muscle_percentage", .uint16, exponent: -1, "%").when(4),
            ] + mass("muscle_mass", 5) + mass("fat_free_mass", 6) + mass("soft_lean_mass", 7)
                + mass("body_water_mass", 8) + [
                    .number("impedance", .uint16, exponent: -1, "Ω").when(9)
                ] + mass("weight", 10) + [
                    .number("height", .uint16, exponent: -3, "m").when(11, not: 0),
                    .number("height", .uint16, exponent: -1, "in").when(11, and: 0),
                ]
        ),
    ]

    /// A mass in 0.005 kg, or in 0.01 lb. It is present if the bit of the flags is set.
    private static func mass(_ name: String, _ bit: Int? = nil) -> [LayoutField] {
        let failure: [UInt64: String] = [0xFFFF: "measurement failed"]
        let metric = LayoutField.number(name, .uint16, times: 5, exponent: -3, "kg", special: failure)
        let imperial = LayoutField.number(name, .uint16, exponent: -2, "lb", special: failure)
        guard let bit else { return [metric.unless(0), imperial.when(0)] }
        return [metric.when(bit, not: 0), imperial.when(bit, and: 0)]
    }

    /// Glucose Measurement (GATT Specification Supplement). The bits of the flags: 0 time offset, 1 concentration, type
    /// and location, 2 mol/L instead of kg/L, 3 status, 4 a context follows.
    static let glucose: [UInt16: CharacteristicLayout] = [
        0x2A18: CharacteristicLayout(
            .flags(.uint8, .set("context", 4..<5, ["follows"])),
            .number("sequence_number", .uint16),
            .time("time"),
            .number("time_offset", .sint16, "min", special: [0x7FFF: "overrun", 0x8000: "underrun"]).when(0),
            .medfloat16("glucose", "mg/dL", shift: 5).when(1, not: 2),
            .medfloat16("glucose", "mmol/L", shift: 3).when(1, and: 2),
            .packed(
                .uint8,
                .names(
                    "sample",
                    0..<4,
                    [
                        "reserved (0)", "capillary whole blood", "capillary plasma", "venous whole blood",
                        "venous plasma", "arterial whole blood", "arterial plasma", "undetermined whole blood",
                        "undetermined plasma", "interstitial fluid", "control solution",
                    ]
                ),
                LayoutPart(
                    name: "location",
                    bits: 4..<8,
                    meaning: .names([
                        1: "finger", 2: "alternate site", 3: "earlobe", 4: "control solution", 15: "unknown",
                    ])
                )
            )
            .when(1),
            .set(
                "status",
                .uint16,
                [
                    "battery low", "sensor malfunction", "sample too small", "strip insertion error",
                    "strip type incorrect", "result too high", "result too low", "temperature too high",
                    "temperature too low", "read interrupted", "general fault", "time fault",
                ]
            )
            .when(3)
        )
    ]
}
