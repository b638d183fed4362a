extension CharacteristicLayout {
    /// The characteristics of the service Battery (GATT Specification Supplement, "Battery Level", "Battery Level
    /// Status").
    static let battery: [UInt16: CharacteristicLayout] = [
        // Battery Level.
        0x2A19: CharacteristicLayout(.number("battery", .uint8, "%", maximum: 100)),
        // Battery Level Status. The flags tell which fields follow the power state.
        0x2BED: CharacteristicLayout(
            .flags(.uint8),
            .packed(
                .uint16,
                .names("battery_present", 0..<1, ["no", "yes"]),
                .names("wired_power", 1..<3, ["no", "yes", "unknown"]),
                .names("wireless_power", 3..<5, ["no", "yes", "unknown"]),
                .names("charge_state", 5..<7, ["unknown", "charging", "discharging", "idle"]),
                .names("charge_level", 7..<9, ["unknown", "good", "low", "critical"]),
                .names("charging_type", 9..<12, ["", "constant current", "constant voltage", "trickle", "float"]),
                .set("charging_fault", 12..<15, ["battery", "external power", "other"])
            ),
            .hexadecimal("identifier", .uint16).when(0),
            .number("battery", .uint8, "%", maximum: 100).when(1),
            .packed(
                .uint8,
                .names("service_required", 0..<2, ["no", "yes", "unknown"]),
                .names("battery_fault", 2..<3, ["no or unknown", "yes"])
            )
            .when(2)
        ),
    ]
}
