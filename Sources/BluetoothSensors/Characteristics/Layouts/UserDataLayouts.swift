extension CharacteristicLayout {
    /// The characteristics of the service User Data (GATT Specification Supplement, sections of the same names as the
    /// characteristics).
    static let userData: [UInt16: CharacteristicLayout] = [
        // Aerobic Heart Rate Lower Limit, Aerobic Threshold, Anaerobic Heart Rate Lower and Upper Limit, Anaerobic
        // Threshold, Aerobic Heart Rate Upper Limit.
        0x2A7E: CharacteristicLayout(.number("heart_rate", .uint8, "bpm")),
        0x2A7F: CharacteristicLayout(.number("heart_rate", .uint8, "bpm")),
        0x2A81: CharacteristicLayout(.number("heart_rate", .uint8, "bpm")),
        0x2A82: CharacteristicLayout(.number("heart_rate", .uint8, "bpm")),
        0x2A83: CharacteristicLayout(.number("heart_rate", .uint8, "bpm")),
        0x2A84: CharacteristicLayout(.number("heart_rate", .uint8, "bpm")),
        // Fat Burn Heart Rate Lower and Upper Limit, Heart Rate Max, Maximum Recommended and Resting Heart Rate.
        0x2A88: CharacteristicLayout(.number("heart_rate", .uint8, "bpm")),
        0x2A89: CharacteristicLayout(.number("heart_rate", .uint8, "bpm")),
        0x2A8D: CharacteristicLayout(.number("heart_rate", .uint8, "bpm")),
        0x2A91: CharacteristicLayout(.number("heart_rate", .uint8, "bpm")),
        0x2A92: CharacteristicLayout(.number("heart_rate", .uint8, "bpm")),
        0x2A80: CharacteristicLayout(.number("age", .uint8, "years")),
        // Date of Birth, Date of Threshold Assessment.
        0x2A85: CharacteristicLayout(.date("date")),
        0x2A86: CharacteristicLayout(.date("date")),
        // Email Address, First Name, Last Name, Middle Name, Language.
        0x2A87: CharacteristicLayout(.text("email_address")),
        0x2A8A: CharacteristicLayout(.text("first_name")),
        0x2A90: CharacteristicLayout(.text("last_name")),
        0x2B48: CharacteristicLayout(.text("middle_name")),
        0x2AA2: CharacteristicLayout(.text("language")),
        0x2A8C: CharacteristicLayout(.names("gender", ["male", "female", "unspecified"])),
        // Height, Hip Circumference, Waist Circumference, Weight.
        0x2A8E: CharacteristicLayout(.number("height", .uint16, exponent: -2, "m")),
        0x2A8F: CharacteristicLayout(.number("hip_circumference", .uint16, exponent: -2, "m")),
        0x2A97: CharacteristicLayout(.number("waist_circumference", .uint16, exponent: -2, "m")),
        0x2A98: CharacteristicLayout(.number("weight", .uint16, times: 5, exponent: -3, "kg")),
        // VO2 Max.
        0x2A96: CharacteristicLayout(.number("vo2_max", .uint8, "mL/(kg·min)")),
        // Database Change Increment, User Index.
        0x2A99: CharacteristicLayout(.number("database_change_increment", .uint32)),
        0x2A9A: CharacteristicLayout(.number("user", .uint8, unknown: 0xFF)),
    ]
}
