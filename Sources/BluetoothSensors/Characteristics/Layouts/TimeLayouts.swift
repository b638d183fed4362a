extension CharacteristicLayout {
    /// The characteristics of the services Current Time, Reference Time Update and Next DST Change (GATT Specification
    /// Supplement, sections of the same names as the characteristics).
    static let time: [UInt16: CharacteristicLayout] = [
        // Date Time.
        0x2A08: CharacteristicLayout(.time("time")),
        // Day of Week.
        0x2A09: CharacteristicLayout(dayOfWeek),
        // Day Date Time.
        0x2A0A: CharacteristicLayout(.time("time"), dayOfWeek),
        // Exact Time 256.
        0x2A0C: CharacteristicLayout(.time("time"), dayOfWeek, fraction),
        // DST Offset.
        0x2A0D: CharacteristicLayout(dstOffset),
        // Time Zone.
        0x2A0E: CharacteristicLayout(timeZone),
        // Local Time Information.
        0x2A0F: CharacteristicLayout(timeZone, dstOffset),
        // Time with DST.
        0x2A11: CharacteristicLayout(.time("time"), dstOffset),
        // Time Accuracy.
        0x2A12: CharacteristicLayout(accuracy),
        // Time Source.
        0x2A13: CharacteristicLayout(source),
        // Reference Time Information.
        0x2A14: CharacteristicLayout(
            source,
            accuracy,
            .number("days_since_update", .uint8, "d", special: [0xFF: "255 or more"]),
            .number("hours_since_update", .uint8, "h", special: [0xFF: "255 days or more"])
        ),
        // Time Update State.
        0x2A17: CharacteristicLayout(
            .names("state", ["idle", "update pending"]),
            .names(
                "result",
                ["successful", "canceled", "no connection", "error response", "timeout", "not attempted after reset"]
            )
        ),
        // Measurement Interval.
        0x2A21: CharacteristicLayout(.number("interval", .uint16, "s", special: [0: "no periodic measurement"])),
        // Current Time.
        0x2A2B: CharacteristicLayout(
            .time("time"),
            dayOfWeek,
            fraction,
            .set(
                "adjust_reason",
                .uint8,
                ["manual update", "external reference update", "time zone change", "DST change"]
            )
        ),
    ]

    private static let dayOfWeek = LayoutField.names(
        "day_of_week",
        ["unknown", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
    )
    private static let fraction = LayoutField.number("fraction", .uint8, binary: 8, "s")
    private static let dstOffset = LayoutField.names(
        "dst_offset",
        [0: "standard time", 2: "+0.5 h", 4: "+1 h", 8: "+2 h", 255: "unknown"]
    )
    private static let accuracy = LayoutField.number(
        "accuracy",
        .uint8,
        binary: 3,
        "s",
        unknown: 255,
        special: [254: "worse than 31.625 s"]
    )
    private static let source = LayoutField.names(
        "source",
        [
            "unknown", "network time protocol", "GPS", "radio time signal", "manual", "atomic clock",
            "cellular network", "not synchronized",
        ]
    )
    /// In quarters of an hour from UTC, -48 to 56; -128 if it is not known.
    private static let timeZone = LayoutField.formatted("time_zone", .sint8) { raw in
        let quarters = Int(Int8(truncatingIfNeeded: raw))
        if quarters == -128 { return "unknown" }
        return (-48...56).contains(quarters) ? ClockFields.offset(quarters: quarters) : nil
    }
}
