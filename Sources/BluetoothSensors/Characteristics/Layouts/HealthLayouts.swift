extension CharacteristicLayout {
    /// The characteristics of the service Heart Rate (GATT Specification Supplement, "Heart Rate Measurement", "Body
    /// Sensor Location").
    ///
    /// | bit of the flags | meaning |
    /// |---|---|
    /// | 0 | the heart rate has 2 bytes |
    /// | 1, 2 | contact of the sensor: 2 not detected, 3 detected |
    /// | 3 | the energy is present |
    /// | 4 | RR intervals are present, in 1/1024 s |
    static let heart: [UInt16: CharacteristicLayout] = [
        0x2A37: CharacteristicLayout(
            .flags(.uint8, .names("contact", 1..<3, ["", "", "not detected", "detected"])),
            .number("heart_rate", .uint8, "bpm").unless(0),
            .number("heart_rate", .uint16, "bpm").when(0),
            .number("energy", .uint16, "kJ").when(3),
            .number("rr_interval", .uint16, times: 1000, binary: 10, "ms").when(4).repeated
        ),
        0x2A38: CharacteristicLayout(
            .names("location", ["other", "chest", "wrist", "finger", "hand", "ear lobe", "foot"])
        ),
    ]

    /// The characteristics of the service Health Thermometer (GATT Specification Supplement, "Temperature
    /// Measurement", "Temperature Type"). The bits of the flags: 0 Fahrenheit, 1 time, 2 type.
    static let thermometer: [UInt16: CharacteristicLayout] = [
        // Temperature Measurement, Intermediate Temperature.
        0x2A1C: temperatureMeasurement,
        0x2A1E: temperatureMeasurement,
        0x2A1D: CharacteristicLayout(temperatureType),
    ]

    private static let temperatureMeasurement = CharacteristicLayout(
        .flags(.uint8),
        .medfloat32("temperature", "°C").unless(0),
        .medfloat32("temperature", "°F").when(0),
        .time("time").when(1),
        temperatureType.when(2)
    )
    private static let temperatureType = LayoutField.names(
        "location",
        [
            "reserved (0)", "armpit", "body", "ear", "finger", "gastrointestinal tract", "mouth", "rectum", "toe",
            "eardrum",
        ]
    )

    /// The characteristics of the service Blood Pressure (GATT Specification Supplement, "Blood Pressure Measurement",
    /// "Intermediate Cuff Pressure"). The bits of the flags: 0 kPa, 1 time, 2 pulse rate, 3 user, 4 status.
    static let bloodPressure: [UInt16: CharacteristicLayout] = [
        0x2A35: CharacteristicLayout(
            [.flags(.uint8)] + pressures(["systolic", "diastolic", "mean_arterial_pressure"]) + pressureContext
        ),
        // In the place of the second and the third pressure are numbers without a meaning.
        0x2A36: CharacteristicLayout(
            [.flags(.uint8)] + pressures(["cuff_pressure"]) + [.unused(4)] + pressureContext
        ),
    ]

    private static func pressures(_ names: [String]) -> [LayoutField] {
        names.flatMap { [.medfloat16($0, "mmHg").unless(0), .medfloat16($0, "kPa").when(0)] }
    }

    private static let pressureContext: [LayoutField] = [
        .time("time").when(1),
        .medfloat16("pulse_rate", "bpm").when(2),
        .number("user", .uint8, unknown: 255).when(3),
        .packed(
            .uint16,
            .set("status", 0..<3, ["body movement", "cuff too loose", "irregular pulse"]),
            .names("pulse_rate_range", 3..<5, ["", "above the upper limit", "below the lower limit"]),
            .set("position", 5..<6, ["improper"])
        )
        .when(4),
    ]

    /// The characteristics of the service Pulse Oximeter (GATT Specification Supplement, "PLX Spot-Check Measurement",
    /// "PLX Continuous Measurement").
    static let oximeter: [UInt16: CharacteristicLayout] = [
        // The bits of the flags: 0 time, 1 measurement status, 2 sensor status, 3 pulse amplitude index.
        0x2A5E: CharacteristicLayout(
            .flags(.uint8, .set("clock", 4..<5, ["not set"])),
            .medfloat16("spo2", "%"),
            .medfloat16("pulse_rate", "bpm"),
            .time("time").when(0),
            .hexadecimal("measurement_status", .uint16).when(1),
            .hexadecimal("sensor_status", .uint24).when(2),
            .medfloat16("pulse_amplitude_index", "%").when(3)
        ),
        // 0 fast values, 1 slow values, 2 measurement status, 3 sensor status, 4 pulse amplitude index.
        0x2A5F: CharacteristicLayout(
            .flags(.uint8),
            .medfloat16("spo2", "%"),
            .medfloat16("pulse_rate", "bpm"),
            .medfloat16("fast_spo2", "%").when(0),
            .medfloat16("fast_pulse_rate", "bpm").when(0),
            .medfloat16("slow_spo2", "%").when(1),
            .medfloat16("slow_pulse_rate", "bpm").when(1),
            .hexadecimal("measurement_status", .uint16).when(2),
            .hexadecimal("sensor_status", .uint24).when(3),
            .medfloat16("pulse_amplitude_index", "%").when(4)
        ),
    ]
}
