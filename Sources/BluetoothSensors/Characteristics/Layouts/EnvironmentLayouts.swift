extension CharacteristicLayout {
    /// The characteristics of the service Environmental Sensing (GATT Specification Supplement, sections of the same
    /// names as the characteristics).
    static let environment: [UInt16: CharacteristicLayout] = [
        // Magnetic Declination.
        0x2A2C: CharacteristicLayout(.number("magnetic_declination", .uint16, exponent: -2, "°")),
        // Elevation.
        0x2A6C: CharacteristicLayout(.number("elevation", .sint24, exponent: -2, "m")),
        // Pressure, in 0.1 Pa.
        0x2A6D: CharacteristicLayout(.number("pressure", .uint32, exponent: -3, "hPa")),
        // Temperature.
        0x2A6E: CharacteristicLayout(.number("temperature", .sint16, exponent: -2, "°C", unknown: 0x8000)),
        // Humidity.
        0x2A6F: CharacteristicLayout(
            .number("humidity", .uint16, exponent: -2, "%", maximum: 10_000, unknown: 0xFFFF)
        ),
        // True Wind Speed, True Wind Direction.
        0x2A70: CharacteristicLayout(.number("wind_speed", .uint16, exponent: -2, "m/s")),
        0x2A71: CharacteristicLayout(.number("wind_direction", .uint16, exponent: -2, "°")),
        // Apparent Wind Speed, Apparent Wind Direction.
        0x2A72: CharacteristicLayout(.number("apparent_wind_speed", .uint16, exponent: -2, "m/s")),
        0x2A73: CharacteristicLayout(.number("apparent_wind_direction", .uint16, exponent: -2, "°")),
        // Gust Factor.
        0x2A74: CharacteristicLayout(.number("gust_factor", .uint8, exponent: -1)),
        // Pollen Concentration.
        0x2A75: CharacteristicLayout(.number("pollen_concentration", .uint24, "1/m³")),
        // UV Index.
        0x2A76: CharacteristicLayout(.number("uv_index", .uint8)),
        // Irradiance.
        0x2A77: CharacteristicLayout(.number("irradiance", .uint16, exponent: -1, "W/m²")),
        // Rainfall.
        0x2A78: CharacteristicLayout(.number("rainfall", .uint16, "mm")),
        // Wind Chill, Heat Index, Dew Point.
        0x2A79: CharacteristicLayout(.number("wind_chill", .sint8, "°C")),
        0x2A7A: CharacteristicLayout(.number("heat_index", .sint8, "°C")),
        0x2A7B: CharacteristicLayout(.number("dew_point", .sint8, "°C")),
        // Magnetic Flux Density - 2D, Magnetic Flux Density - 3D, in 0.1 µT.
        0x2AA0: CharacteristicLayout(
            .number("magnetic_flux_density_x", .sint16, exponent: -1, "µT"),
            .number("magnetic_flux_density_y", .sint16, exponent: -1, "µT")
        ),
        0x2AA1: CharacteristicLayout(
            .number("magnetic_flux_density_x", .sint16, exponent: -1, "µT"),
            .number("magnetic_flux_density_y", .sint16, exponent: -1, "µT"),
            .number("magnetic_flux_density_z", .sint16, exponent: -1, "µT")
        ),
        // Barometric Pressure Trend.
        0x2AA3: CharacteristicLayout(
            .names(
                "pressure_trend",
                [
                    "unknown", "continuously falling", "continuously rising", "falling, then steady",
                    "rising, then steady", "falling before a lesser rise", "falling before a greater rise",
                    "rising before a greater fall", "rising before a lesser fall", "steady",
                ]
            )
        ),
        // Noise.
        0x2BE4: CharacteristicLayout(
            .number("sound_pressure", .uint8, "dB", unknown: 0xFF, special: [0xFE: "254 dB or more"])
        ),
    ]

    /// Concentrations in air (GATT Specification Supplement, sections of the same names as the characteristics). Those
    /// in kg/m³ are given in the usual units.
    static let airQuality: [UInt16: CharacteristicLayout] = [
        // CO2 Concentration.
        0x2B8C: CharacteristicLayout(
            .number("carbon_dioxide", .uint16, "ppm", unknown: 0xFFFF, special: [0xFFFE: "65534 ppm or more"])
        ),
        // VOC Concentration.
        0x2BE7: CharacteristicLayout(
            .number(
                "volatile_organic_compounds",
                .uint16,
                "ppb",
                unknown: 0xFFFF,
                special: [0xFFFE: "65534 ppb or more"]
            )
        ),
        // Ammonia, Carbon Monoxide, Methane, Nitrogen Dioxide Concentration.
        0x2BCF: CharacteristicLayout(.medfloat16("ammonia", "mg/m³", shift: 6)),
        0x2BD0: CharacteristicLayout(.medfloat16("carbon_monoxide", "mg/m³", shift: 6)),
        0x2BD1: CharacteristicLayout(.medfloat16("methane", "ppb")),
        0x2BD2: CharacteristicLayout(.medfloat16("nitrogen_dioxide", "µg/m³", shift: 9)),
        // Non-Methane Volatile Organic Compounds, Ozone Concentration.
        0x2BD3: CharacteristicLayout(.medfloat16("volatile_organic_compounds", "µg/m³", shift: 9)),
        0x2BD4: CharacteristicLayout(.medfloat16("ozone", "µg/m³", shift: 9)),
        // Particulate Matter - PM1, PM2.5, PM10 Concentration.
        0x2BD5: CharacteristicLayout(.medfloat16("pm1", "µg/m³", shift: 9)),
        0x2BD6: CharacteristicLayout(.medfloat16("pm25", "µg/m³", shift: 9)),
        0x2BD7: CharacteristicLayout(.medfloat16("pm10", "µg/m³", shift: 9)),
        // Sulfur Dioxide, Sulfur Hexafluoride Concentration.
        0x2BD8: CharacteristicLayout(.medfloat16("sulfur_dioxide", "µg/m³", shift: 9)),
        0x2BD9: CharacteristicLayout(.medfloat16("sulfur_hexafluoride", "µg/m³", shift: 9)),
    ]
}
