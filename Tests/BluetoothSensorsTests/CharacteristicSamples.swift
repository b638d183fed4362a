import Testing

/// A value of a characteristic or a descriptor, with the text that it must give.
struct CharacteristicSample: Sendable, CustomTestStringConvertible {
    var uuid: UInt16
    var bytes: String
    var text: String
    /// Whether shorter values are valid too, because the value is a text, a set or a list.
    var isOpenEnded = false

    var testDescription: String { "\(String(uuid, radix: 16)) \(bytes)" }

    init(_ uuid: UInt16, _ bytes: String, _ text: String, isOpenEnded: Bool = false) {
        self.uuid = uuid
        self.bytes = bytes
        self.text = text
        self.isOpenEnded = isOpenEnded
    }

    static let all = general + clock + environment + health + sport

    static let general: [CharacteristicSample] = [
        .init(0x2A00, "4772c3b6c39f65", "\"Größe\"", isOpenEnded: true),
        .init(0x2A01, "0003", "Thermometer (0x0300)"),
        .init(0x2A01, "ffff", "0xFFFF"),
        .init(0x2A02, "01", "enabled"),
        // 6 · 1.25 ms, 3200 · 1.25 ms, 4, 600 · 10 ms.
        .init(
            0x2A04,
            "0600800c04005802",
            "minimum interval 7.5 ms, maximum interval 4000 ms, latency 4, supervision timeout 6000 ms"
        ),
        .init(
            0x2A04,
            "ffffffff0000ffff",
            "minimum interval not specific, maximum interval not specific, latency 0, supervision timeout not specific"
        ),
        .init(0x2A05, "0a00ffff", "first handle 0x000A, last handle 0xFFFF"),
        .init(0x2A06, "02", "high alert"),
        .init(0x2A06, "03", "reserved (3)"),
        .init(0x2A07, "f4", "-12 dBm"),
        .init(0x2AA6, "01", "supported"),
        .init(0x2AC9, "00", "only resolvable private addresses are used"),
        .init(0x2B29, "05", "robust caching and multiple notifications", isOpenEnded: true),
        .init(0x2B29, "00", "none", isOpenEnded: true),
        .init(0x2B29, "0002", "reserved bit 9", isOpenEnded: true),
        .init(0x2B2A, "000102030405060708090a0b0c0d0e0f", "000102030405060708090a0b0c0d0e0f"),
        .init(0x2B3A, "01", "enhanced ATT bearers", isOpenEnded: true),
        .init(0x2A23, "9a78563412dd1b00", "manufacturer identifier 0x123456789A, OUI 0x001BDD"),
        .init(0x2A29, "41636d65", "\"Acme\"", isOpenEnded: true),
        .init(
            0x2A50,
            "014c003412 3001",
            "vendor source Bluetooth SIG, vendor Apple, Inc. (0x004C), product 0x1234, version 1.3.0"
        ),
        .init(0x2A50, "026d0415c0 1312", "vendor source USB-IF, vendor 0x046D, product 0xC015, version 12.1.3"),
        .init(0x2A4A, "11010002", "HID version 1.1.1, country code 0, features normally connectable"),
        .init(0x2A4E, "01", "report protocol"),
        .init(0x2A4F, "10000800", "scan interval 10 ms, scan window 5 ms"),
        .init(0x2900, "0300", "reliable write and writable auxiliaries"),
        .init(0x2901, "4f7574736964650a", "\"Outside\u{FFFD}\"", isOpenEnded: true),
        .init(0x2902, "0000", "none"),
        .init(0x2902, "0300", "notifications and indications"),
        .init(0x2903, "0100", "broadcasts"),
        .init(
            0x2904,
            "0efe2f27010000",
            "format sint16, exponent -2, unit Celsius temperature (degree Celsius), namespace Bluetooth SIG"
        ),
        .init(0x2904, "04000027010100", "format uint8, unit unitless, namespace Bluetooth SIG, description 1"),
        .init(0x2905, "0a000b00", "format handle 0x000A, 0x000B", isOpenEnded: true),
        .init(0x2908, "0103", "report identifier 1, report type feature"),
        .init(0x2909, "08", "8"),
        .init(
            0x290C,
            "00000210000003000001ff",
            "sampling function arithmetic mean, measurement period 16 s, update interval 3 s, application 1"
        ),
        .init(0x2A19, "63", "99 %"),
        // Identifier, level and status; a present battery that is charged by wire with constant current.
        .init(
            0x2BED,
            "07a3023412 4b05",
            "battery present yes, wired power yes, wireless power no, charge state charging, charge level good, "
                + "charging type constant current, identifier 0x1234, battery 75 %, service required yes, battery fault yes"
        ),
        .init(
            0x2BED,
            "004170",
            "battery present yes, wired power no, wireless power no, charge state discharging, charge level unknown, "
                + "charging fault battery and external power and other"
        ),
    ]

    static let clock: [CharacteristicSample] = [
        .init(0x2A08, "ea070b1b130026", "2026-11-27 19:00:38"),
        .init(0x2A08, "00000000000000", "????-??-?? 00:00:00"),
        .init(0x2A09, "05", "Friday"),
        .init(0x2A0A, "ea070b1b13002605", "time 2026-11-27 19:00:38, day of week Friday"),
        .init(0x2A0C, "ea070b1b1300260580", "time 2026-11-27 19:00:38, day of week Friday, fraction 0.5 s"),
        .init(0x2A0D, "04", "+1 h"),
        .init(0x2A0E, "ec", "UTC-05:00"),
        .init(0x2A0F, "1604", "time zone UTC+05:30, DST offset +1 h"),
        .init(0x2A0F, "80ff", "time zone unknown, DST offset unknown"),
        .init(0x2A11, "ea070b1b13002600", "time 2026-11-27 19:00:38, DST offset standard time"),
        .init(0x2A12, "04", "0.5 s"),
        .init(0x2A12, "fe", "worse than 31.625 s"),
        .init(0x2A13, "02", "GPS"),
        .init(
            0x2A14,
            "01020305",
            "source network time protocol, accuracy 0.25 s, days since update 3 d, hours since update 5 h"
        ),
        .init(0x2A17, "0104", "state update pending, result timeout"),
        .init(0x2A21, "3c00", "60 s"),
        .init(0x2A21, "0000", "no periodic measurement"),
        .init(
            0x2A2B,
            "ea070b1b130026054009",
            "time 2026-11-27 19:00:38, day of week Friday, fraction 0.25 s, "
                + "adjust reason manual update and DST change"
        ),
        .init(0x2A2B, "ea070b1b130026050000", "time 2026-11-27 19:00:38, day of week Friday, fraction 0 s"),
    ]

    static let environment: [CharacteristicSample] = [
        .init(0x2A2C, "e803", "10 °"),
        .init(0x2A6C, "18fcff", "-10 m"),
        .init(0x2A6D, "cd8b0f00", "1018.829 hPa"),
        .init(0x2A6E, "6608", "21.5 °C"),
        .init(0x2A6E, "9cff", "-1 °C"),
        .init(0x2A6E, "0080", "unknown"),
        .init(0x2A6F, "5613", "49.5 %"),
        .init(0x2A6F, "ffff", "unknown"),
        .init(0x2A70, "2c01", "3 m/s"), .init(0x2A71, "2823", "90 °"),
        .init(0x2A72, "0100", "0.01 m/s"), .init(0x2A73, "01 00", "0.01 °"),
        .init(0x2A74, "0f", "1.5"), .init(0x2A75, "00 0001", "65536 1/m³"), .init(0x2A76, "07", "7"),
        .init(0x2A77, "1500", "2.1 W/m²"), .init(0x2A78, "0500", "5 mm"), .init(0x2A79, "f6", "-10 °C"),
        .init(0x2A7A, "23", "35 °C"), .init(0x2A7A, "fb", "-5 °C"), .init(0x2A7B, "fe", "-2 °C"),
        .init(0x2AA0, "0a00f6ff", "magnetic flux density x 1 µT, magnetic flux density y -1 µT"),
        .init(
            0x2AA1,
            "0a00f6ff0100",
            "magnetic flux density x 1 µT, magnetic flux density y -1 µT, magnetic flux density z 0.1 µT"
        ),
        .init(0x2AA3, "09", "steady"),
        .init(0x2BE4, "2a", "42 dB"), .init(0x2BE4, "fe", "254 dB or more"),
        .init(0x2B8C, "a401", "420 ppm"), .init(0x2B8C, "feff", "65534 ppm or more"),
        .init(0x2BE7, "e803", "1000 ppb"), .init(0x2BD1, "d007", "2000 ppb"),
        // 12 · 10^-8 and 3 · 10^-8 kg/m³.
        .init(0x2BD0, "0c80", "0.12 mg/m³"), .init(0x2BD6, "0380", "30 µg/m³"), .init(0x2BD5, "ff07", "not a number"),
        .init(0x2AEE, "e100", "2.25 A"), .init(0x2AEF, "0a001400", "minimum current 0.1 A, maximum current 0.2 A"),
        .init(0x2AF2, "2a0000", "42 kWh"), .init(0x2B05, "fd0800", "230.1 W"), .init(0x2B05, "feffff", "not valid"),
        .init(0x2B18, "d300", "3.297 V"), .init(0x2B8A, "0a0000", "1 VA"),
        .init(0x2AE9, "8c0a", "2700 K"), .init(0x2AFB, "15cd5b", "60162.77 lx"), .init(0x2AFB, "ffffff", "unknown"),
        .init(0x2AFC, "0a00", "1 lm/W"), .init(0x2AFF, "2003", "800 lm"), .init(0x2B01, "0a00", "10 cd"),
        .init(0x2AE2, "01", "true"), .init(0x2AEA, "0100", "1"), .init(0x2AEB, "010000", "1"),
        .init(0x2B04, "63", "49.5 %"), .init(0x2B0D, "d5", "-21.5 °C"),
        .init(0x2B10, "18fc2823", "minimum temperature -10 °C, maximum temperature 90 °C"),
        .init(0x2B14, "010000", "1 h"), .init(0x2B15, "e80300", "1000 ms"), .init(0x2B16, "3c00", "60 s"),
        .init(0x2B17, "3c", "60 s"), .init(0x2AF8, "6f6b000000000000", "\"ok\"", isOpenEnded: true),
    ]
}
