extension CharacteristicLayout {
    /// The characteristics of the services Cycling Speed and Cadence and Cycling Power (GATT Specification Supplement,
    /// "CSC Measurement", "CSC Feature", "Sensor Location", "Cycling Power Measurement").
    static let cycling: [UInt16: CharacteristicLayout] = [
        // The bits of the flags: 0 wheel, 1 crank.
        0x2A5B: CharacteristicLayout(
            .flags(.uint8),
            .number("wheel_revolutions", .uint32).when(0),
            .number("wheel_event_time", .uint16, binary: 10, "s").when(0),
            .number("crank_revolutions", .uint16).when(1),
            .number("crank_event_time", .uint16, binary: 10, "s").when(1)
        ),
        0x2A5C: CharacteristicLayout(
            .set("features", .uint16, ["wheel revolutions", "crank revolutions", "several sensor locations"])
        ),
        0x2A5D: CharacteristicLayout(
            .names(
                "location",
                [
                    "other", "top of shoe", "in shoe", "hip", "front wheel", "left crank", "right crank", "left pedal",
                    "right pedal", "front hub", "rear dropout", "chainstay", "rear wheel", "rear hub", "chest",
                    "spider", "chain ring",
                ]
            )
        ),
        // The bits of the flags: 0 and 1 pedal balance, 2 and 3 torque, 4 wheel, 5 crank, 6 forces, 7 torques,
        // 8 angles, 9 top and 10 bottom dead spot, 11 energy, 12 compensation.
        0x2A63: CharacteristicLayout(
            .flags(.uint16, .set("compensation", 12..<13, ["indicated"])),
            .number("power", .sint16, "W"),
            .number("pedal_balance", .uint8, times: 5, exponent: -1, "%").when(0, not: 1),
            .number("left_pedal_balance", .uint8, times: 5, exponent: -1, "%").when(0, and: 1),
            .number("wheel_torque", .uint16, binary: 5, "N·m").when(2, not: 3),
            .number("crank_torque", .uint16, binary: 5, "N·m").when(2, and: 3),
            .number("wheel_revolutions", .uint32).when(4),
            .number("wheel_event_time", .uint16, binary: 11, "s").when(4),
            .number("crank_revolutions", .uint16).when(5),
            .number("crank_event_time", .uint16, binary: 10, "s").when(5),
            .number("maximum_force", .sint16, "N").when(6),
            .number("minimum_force", .sint16, "N").when(6),
            .number("maximum_torque", .sint16, binary: 5, "N·m").when(7),
            .number("minimum_torque", .sint16, binary: 5, "N·m").when(7),
            .packed(.uint24, .number("maximum_angle", 0..<12, "°"), .number("minimum_angle", 12..<24, "°")).when(8),
            .number("top_dead_spot", .uint16, "°").when(9),
            .number("bottom_dead_spot", .uint16, "°").when(10),
            .number("energy", .uint16, "kJ").when(11)
        ),
    ]

    /// The characteristics of the service Running Speed and Cadence (GATT Specification Supplement, "RSC Measurement",
    /// "RSC Feature"). The bits of the flags: 0 stride length, 1 distance, 2 running.
    static let running: [UInt16: CharacteristicLayout] = [
        0x2A53: CharacteristicLayout(
            .flags(.uint8, .names("status", 2..<3, ["walking", "running"])),
            .number("speed", .uint16, binary: 8, "m/s"),
            .number("cadence", .uint8, "1/min"),
            .number("stride_length", .uint16, exponent: -2, "m").when(0),
            .number("distance", .uint32, exponent: -1, "m").when(1)
        ),
        0x2A54: CharacteristicLayout(
            .set(
                "features",
                .uint16,
                ["stride length", "distance", "walking or running", "calibration", "several sensor locations"]
            )
        ),
    ]

    /// Location and Speed (GATT Specification Supplement). The bits of the flags: 0 speed, 1 distance, 2 location,
    /// 3 elevation, 4 heading, 5 rolling time, 6 UTC time, 7 and 8 position status.
    static let location: [UInt16: CharacteristicLayout] = [
        0x2A67: CharacteristicLayout(
            .flags(.uint16, .names("position", 7..<9, ["no position", "ok", "estimated", "last known"])),
            .number("speed", .uint16, exponent: -2, "m/s").when(0),
            .number("distance", .uint24, exponent: -1, "m").when(1),
            .number("latitude", .sint32, exponent: -7, "°").when(2),
            .number("longitude", .sint32, exponent: -7, "°").when(2),
            .number("elevation", .sint24, exponent: -2, "m").when(3),
            .number("heading", .uint16, exponent: -2, "°").when(4),
            .number("rolling_time", .uint8, "s").when(5),
            .time("time").when(6)
        )
    ]
}
