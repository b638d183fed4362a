extension CharacteristicSample {
    static let health: [CharacteristicSample] = [
        .init(0x2A37, "0048", "heart rate 72 bpm"),
        .init(0x2A37, "012c01", "heart rate 300 bpm"),
        .init(0x2A37, "0448", "contact not detected, heart rate 72 bpm"),
        .init(0x2A37, "06 48", "contact detected, heart rate 72 bpm"),
        .init(0x2A37, "08481400", "heart rate 72 bpm, energy 20 kJ"),
        // 1024 and 768 of 1/1024 s.
        .init(
            0x2A37,
            "1f4800140000040003",
            "contact detected, heart rate 72 bpm, energy 20 kJ, RR interval 1000, 750 ms",
            isOpenEnded: true
        ),
        .init(0x2A38, "01", "chest"),
        // 365 · 10^-1.
        .init(0x2A1C, "006d0100ff", "temperature 36.5 °C"),
        .init(0x2A1C, "01da0300ff", "temperature 98.6 °F"),
        .init(0x2A1C, "02 6d0100ff ea070b1b130026", "temperature 36.5 °C, time 2026-11-27 19:00:38"),
        .init(0x2A1E, "04 6d0100ff 03", "temperature 36.5 °C, location ear"),
        .init(0x2A1C, "00ffff7f00", "temperature not a number"),
        .init(0x2A1C, "0000008000", "temperature not at this resolution"),
        .init(0x2A1C, "00feff7f00", "temperature +infinity"),
        .init(0x2A1C, "0002008000", "temperature -infinity"),
        .init(0x2A1C, "0001008000", "temperature reserved"),
        .init(0x2A1D, "06", "mouth"),
        .init(
            0x2A35,
            "00 7800 5000 5d00",
            "systolic 120 mmHg, diastolic 80 mmHg, mean arterial pressure 93 mmHg"
        ),
        // Unit, time, pulse rate, user and status; 160, 107 and 124 · 10^-1 kPa.
        .init(
            0x2A35,
            "1f a0f0 6bf0 7cf0 ea070b1b130026 4800 02 2d00",
            "systolic 16 kPa, diastolic 10.7 kPa, mean arterial pressure 12.4 kPa, time 2026-11-27 19:00:38, "
                + "pulse rate 72 bpm, user 2, status body movement and irregular pulse, "
                + "pulse rate range above the upper limit, position improper"
        ),
        .init(
            0x2A35,
            "00 ff07 0008 fe07",
            "systolic not a number, diastolic not at this resolution, mean arterial pressure +infinity"
        ),
        // 2047 · 10^-1. The mantissa is that of a special value, whose exponent is 0.
        .init(
            0x2A35,
            "00 fff7 5000 5d00",
            "systolic 204.7 mmHg, diastolic 80 mmHg, mean arterial pressure 93 mmHg"
        ),
        .init(0x2A36, "00 5a00 ff07 ff07", "cuff pressure 90 mmHg"),
        .init(0x2A9D, "00 3039", "weight 73.2 kg"),
        .init(0x2A9D, "01 983a", "weight 150 lb"),
        .init(
            0x2A9D,
            "0e 3039 ea070b1b130026 03 e100 0807",
            "weight 73.2 kg, time 2026-11-27 19:00:38, user 3, BMI 22.5 kg/m², height 1.8 m"
        ),
        .init(0x2A9D, "09 983a e100 c602", "weight 150 lb, BMI 22.5 kg/m², height 71 in"),
        .init(0x2A9D, "04 ffff ff", "weight measurement failed, user unknown"),
        .init(
            0x2A9E,
            "1f010000",
            "features time and several users and BMI, weight resolution 0.1 kg, height resolution 0.005 m"
        ),
        .init(0x2A9C, "0000 c800", "body fat 20 %"),
        .init(
            0x2A9C,
            "fe1f c800 ea070b1b130026 01 7017 9001 204e 204e 204e 204e 8813 3039 0807",
            "packets several, body fat 20 %, time 2026-11-27 19:00:38, user 1, basal metabolism 6000 kJ, "
                + "muscle percentage 40 %, muscle mass 100 kg, fat free mass 100 kg, soft lean mass 100 kg, "
                + "body water mass 100 kg, impedance 500 Ω, weight 73.2 kg, height 1.8 m"
        ),
        .init(
            0x2A9C,
            "210c c800 983a 983a c602",
            "body fat 20 %, muscle mass 150 lb, weight 150 lb, height 71 in"
        ),
        .init(0x2A18, "00 0500 ea070b1b130026", "sequence number 5, time 2026-11-27 19:00:38"),
        // 100 · 10^-5 kg/L, type 1, location 1.
        .init(
            0x2A18,
            "1b 0500 ea070b1b130026 c4ff 64b0 11 0100",
            "context follows, sequence number 5, time 2026-11-27 19:00:38, time offset -60 min, glucose 100 mg/dL, "
                + "sample capillary whole blood, location finger, status battery low"
        ),
        .init(
            0x2A18,
            "01 0500 ea070b1b130026 ff7f",
            "sequence number 5, time 2026-11-27 19:00:38, time offset overrun"
        ),
        .init(
            0x2A18,
            "01 0500 ea070b1b130026 0080",
            "sequence number 5, time 2026-11-27 19:00:38, time offset underrun"
        ),
        // 55 · 10^-4 mol/L.
        .init(
            0x2A18,
            "06 0500 ea070b1b130026 37c0 f9",
            "sequence number 5, time 2026-11-27 19:00:38, glucose 5.5 mmol/L, sample interstitial fluid, "
                + "location unknown"
        ),
        .init(0x2A5E, "10 6200 4800", "clock not set, SpO2 98 %, pulse rate 72 bpm"),
        .init(
            0x2A5E,
            "0f 6200 4800 ea070b1b130026 2000 010000 0af0",
            "SpO2 98 %, pulse rate 72 bpm, time 2026-11-27 19:00:38, measurement status 0x0020, "
                + "sensor status 0x000001, pulse amplitude index 1 %"
        ),
        .init(
            0x2A5F,
            "1f 6200 4800 6100 4900 6000 4a00 2000 010000 0af0",
            "SpO2 98 %, pulse rate 72 bpm, fast SpO2 97 %, fast pulse rate 73 bpm, slow SpO2 96 %, "
                + "slow pulse rate 74 bpm, measurement status 0x0020, sensor status 0x000001, pulse amplitude index 1 %"
        ),
    ]

    static let sport: [CharacteristicSample] = [
        .init(0x2A5B, "01 e8030000 0004", "wheel revolutions 1000, wheel event time 1 s"),
        .init(0x2A5B, "02 6400 0002", "crank revolutions 100, crank event time 0.5 s"),
        .init(
            0x2A5B,
            "03 e8030000 0004 6400 0002",
            "wheel revolutions 1000, wheel event time 1 s, crank revolutions 100, crank event time 0.5 s"
        ),
        .init(0x2A5C, "0300", "wheel revolutions and crank revolutions"),
        .init(0x2A5D, "05", "left crank"),
        .init(0x2A53, "00 0003 aa", "status walking, speed 3 m/s, cadence 170 1/min"),
        .init(
            0x2A53,
            "07 0003 aa 7800 10270000",
            "status running, speed 3 m/s, cadence 170 1/min, stride length 1.2 m, distance 1000 m"
        ),
        .init(0x2A54, "0500", "stride length and walking or running"),
        .init(0x2A63, "0000 fa00", "power 250 W"),
        .init(0x2A63, "0000 9cff", "power -100 W"),
        .init(0x2A63, "0500 fa00 62 4000", "power 250 W, pedal balance 49 %, wheel torque 2 N·m"),
        .init(
            0x2A63,
            "ff1f fa00 62 4000 e8030000 0008 6400 0002 2c01 9cff 4000 e0ff 5a a011 5a00 0e01 3200",
            "compensation indicated, power 250 W, left pedal balance 49 %, crank torque 2 N·m, wheel revolutions 1000, "
                + "wheel event time 1 s, crank revolutions 100, crank event time 0.5 s, maximum force 300 N, "
                + "minimum force -100 N, maximum torque 2 N·m, minimum torque -1 N·m, maximum angle 90 °, "
                + "minimum angle 282 °, top dead spot 90 °, bottom dead spot 270 °, energy 50 kJ"
        ),
        .init(0x2A67, "8000", "position ok"),
        .init(
            0x2A67,
            "ff00 2c01 102700 00f5511f d5c6fd07 a00f00 2823 05 ea070b1b130026",
            "position ok, speed 3 m/s, distance 1000 m, latitude 52.5464832 °, longitude 13.4072021 °, elevation 40 m, "
                + "heading 90 °, rolling time 5 s, time 2026-11-27 19:00:38"
        ),
        .init(0x2A7E, "78", "120 bpm"), .init(0x2A80, "2a", "42 years"), .init(0x2A85, "c6070c1f", "1990-12-31"),
        .init(0x2A87, "614062", "\"a@b\"", isOpenEnded: true), .init(0x2A8C, "01", "female"),
        .init(0x2A8E, "b400", "1.8 m"), .init(0x2A98, "3039", "73.2 kg"), .init(0x2A96, "2d", "45 mL/(kg·min)"),
        .init(0x2A99, "01000000", "1"), .init(0x2A9A, "ff", "unknown"),
    ]
}
