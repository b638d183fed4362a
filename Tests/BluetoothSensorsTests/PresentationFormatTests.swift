import BluetoothTypes
import Testing

@testable import BluetoothSensors

/// Values of attributes that only their Characteristic Presentation Format describes.
@Suite struct PresentationFormatTests {
    @Test(
        arguments: [
            (0x01, 0, 0x2700, "01", "true"), (0x01, 0, 0x2700, "02", nil),
            (0x02, 0, 0x2700, "03", "3"), (0x02, 0, 0x2700, "04", nil),
            (0x03, 0, 0x2700, "0f", "15"), (0x04, 0, 0x27AD, "63", "99 %"),
            (0x05, 0, 0x2700, "ff0f", "4095"), (0x05, 0, 0x2700, "ff1f", nil),
            (0x06, -1, 0x2728, "e700", "23.1 V"), (0x07, 3, 0x2725, "010000", "1000 J"),
            (0x08, 0, 0x27FF, "ffffffff", "4294967295"), (0x09, 0, 0x2700, "ffffffffffff", "281474976710655"),
            (0x0A, 0, 0x2700, "ffffffffffffffff", "18446744073709551615"),
            (
                0x0B, 0, 0x2700, "ffffffffffffffffffffffffffffffff", "340282366920938463463374607431768211455"
            ),
            (0x0C, 0, 0x272F, "f6", "-10 °C"), (0x0D, 0, 0x2700, "ff0f", "-1"), (0x0D, 0, 0x2700, "ff07", "2047"),
            (0x0E, -2, 0x272F, "6608", "21.5 °C"), (0x0F, 0, 0x2701, "ffffff", "-1 m"),
            (0x10, 0, 0x2700, "00000080", "-2147483648"), (0x11, 0, 0x2700, "000000000080", "-140737488355328"),
            (0x12, 0, 0x2700, "0000000000000080", "-9223372036854775808"),
            (
                0x13, 0, 0x2700, "00000000000000000000000000000080", "-170141183460469231731687303715884105728"
            ),
            (0x14, 0, 0x2726, "0000c03f", "1.5 W"), (0x14, 0, 0x2726, "0000c07f", "not a number"),
            (0x15, 0, 0x2726, "000000000000f83f", "1.5 W"), (0x15, 0, 0x2726, "000000000000f07f", "not a number"),
            (0x16, 0, 0x272F, "6df1", "36.5 °C"), (0x17, 0, 0x272F, "6d0100ff", "36.5 °C"),
            (0x16, 0, 0x272F, "ff07", "not a number"), (0x19, 0, 0x2700, "6f6b", "\"ok\""),
            (0x16, 0, 0x272F, "fff7", "204.7 °C"), (0x16, 0, 0x272F, "00f8", "-204.8 °C"),
            (0x17, 0, 0x272F, "ffff7fff", "838860.7 °C"),
            (0x19, 0, 0x2700, "ff", nil), (0x1A, 0, 0x2700, "6f00", nil), (0x1B, 0, 0x2700, "6f00", nil),
            (0x1C, 0, 0x2700, "6f00", nil), (0x06, 0, 0x2700, "00", nil), (0x06, 0, 0x2700, "000000", nil),
            (0x04, 127, 0x2700, "01", "1e+127"), (0x04, 0, 0x2784, "01", "1 area (barn)"),
            (0x04, 0, 0x27BC, "1e", "30 strokes/min"),
        ] as [(UInt8, Int8, UInt16, String, String?)]
    )
    func valueHasFormatExponentAndUnit(
        format: UInt8,
        exponent: Int8,
        unit: UInt16,
        digits: String,
        text: String?
    ) throws {
        let descriptor = [format, UInt8(bitPattern: exponent), UInt8(unit & 0xFF), UInt8(unit >> 8), 1, 0, 0]
        let presentation = try #require(PresentationFormat(decoding: descriptor))
        let bytes = try #require([UInt8](hexadecimal: digits))
        #expect(CharacteristicValue(decoding: bytes, of: "FFF1", format: presentation)?.text == text)
    }

    @Test func symbolsAreOfAssignedUnits() {
        for unit in UnitSymbol.symbols.keys {
            #expect(BluetoothUUID(unit).name != nil, "\(BluetoothUUID(unit))")
        }
    }

    @Test func descriptorHasSevenBytes() {
        #expect(PresentationFormat(decoding: [0x04, 0, 0, 0x27, 1, 0]) == nil)
        #expect(PresentationFormat(decoding: [0x04, 0, 0, 0x27, 1, 0, 0, 0]) == nil)
        #expect(PresentationFormat(decoding: [0xFF, 0, 0, 0x27, 1, 0, 0])?.format == nil)
    }

    @Test func assignedLayoutTakesPrecedence() {
        let format = PresentationFormat(decoding: [0x04, 3, 0x28, 0x27, 1, 0, 0])
        #expect(CharacteristicValue(decoding: [0x63], of: "2A19", format: format)?.text == "99 %")
        // The format is used if the value does not match the layout.
        #expect(CharacteristicValue(decoding: [0xFF], of: "2A19", format: format)?.text == "255000 V")
    }
}
