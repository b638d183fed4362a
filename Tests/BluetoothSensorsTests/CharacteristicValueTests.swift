import BluetoothTypes
import Testing

@testable import BluetoothSensors

/// Values of assigned attributes. The samples follow from the layouts of the GATT Specification Supplement.
@Suite struct CharacteristicValueTests {
    private func bytes(_ text: String) throws -> [UInt8] {
        try #require([UInt8](hexadecimal: text.filter { $0 != " " }))
    }

    @Test(arguments: CharacteristicSample.all)
    func sampleHasText(sample: CharacteristicSample) throws {
        let value = CharacteristicValue(decoding: try bytes(sample.bytes), of: BluetoothUUID(sample.uuid))
        #expect(value?.text == sample.text)
    }

    @Test(arguments: CharacteristicSample.all)
    func truncatedOrLongerSampleIsNotDecoded(sample: CharacteristicSample) throws {
        let bytes = try bytes(sample.bytes)
        let uuid = BluetoothUUID(sample.uuid)
        for count in bytes.indices {
            let value = CharacteristicValue(decoding: Array(bytes.prefix(count)), of: uuid)
            #expect(value == nil || sample.isOpenEnded && count > 0, "\(count) bytes")
        }
        #expect(CharacteristicValue(decoding: bytes + [0x80], of: uuid) == nil || sample.isOpenEnded)
    }

    @Test func everyLayoutHasSampleOrIsSingleNumber() {
        let sampled = Set(CharacteristicSample.all.map(\.uuid))
        for (uuid, layout) in CharacteristicLayout.assigned where !sampled.contains(uuid) {
            #expect(layout.isSingle, "\(BluetoothUUID(uuid)) has no sample")
        }
    }

    @Test func layoutsHaveAssignedNames() {
        for uuid in CharacteristicLayout.assigned.keys {
            #expect(BluetoothUUID(uuid).name != nil, "\(BluetoothUUID(uuid))")
        }
    }

    @Test func hostileValuesOfAllAttributesAreHandled() {
        var generator = SplitMix(state: 0x2A37)
        let formats = (0...40).map {
            PresentationFormat(decoding: [$0, UInt8.random(in: 0...255, using: &generator), 0x2F, 0x27, 1, 0, 0])
        }
        let lengths = [0, 1, 2, 3, 4, 5, 7, 8, 11, 16, 20, 100, 512, 513]
        for uuid in Array(CharacteristicLayout.assigned.keys) + [0xFFF1] {
            for length in lengths {
                for fill in [nil, 0x00, 0xFF, 0x7F, 0x80] as [UInt8?] {
                    let value = (0..<length).map { _ in fill ?? UInt8.random(in: 0...255, using: &generator) }
                    check(CharacteristicValue(decoding: value, of: BluetoothUUID(uuid)))
                    guard uuid == 0xFFF1 else { continue }
                    for format in formats {
                        check(CharacteristicValue(decoding: value, of: BluetoothUUID(uuid), format: format))
                    }
                }
            }
        }
    }

    /// Texts have no control characters, numbers are finite, and names are unique.
    private func check(_ value: CharacteristicValue?) {
        guard let value else { return }
        #expect(!value.text.isEmpty)
        #expect(!value.text.unicodeScalars.contains { $0.properties.generalCategory == .control })
        #expect(Set(value.fields.map(\.name)).count == value.fields.count)
        for field in value.fields {
            if case .number(let number) = field.value { #expect(number.isFinite) }
        }
    }

    @Test func fieldsHaveNamesValuesAndUnits() throws {
        let value = try #require(CharacteristicValue(decoding: try bytes("1e 48 1400 0004 0003"), of: "2A37"))
        #expect(value.fields.map(\.name) == ["contact", "heart_rate", "energy", "rr_interval_1", "rr_interval_2"])
        #expect(value.fields[1].value == .number(72))
        #expect(value.fields[1].unit == "bpm")
        #expect(value.fields[1].deviceClass == .heartRate)
        #expect(value.fields[3].value == .number(1000))
        #expect(value.fields[4].deviceClass == SensorDeviceClass(rawValue: "rr_interval"))
    }

    @Test(
        arguments: [
            (0x2A6E, "0080"), (0x2A1C, "00ffff7f00"), (0x2A0C, ""), (0x2BE7, "ffff"),
        ] as [(UInt16, String)]
    )
    func unknownValueIsNoField(uuid: UInt16, digits: String) throws {
        #expect(CharacteristicValue(decoding: try bytes(digits), of: BluetoothUUID(uuid))?.fields.isEmpty ?? true)
    }

    @Test(arguments: ["ff7f", "0080"])
    func glucoseTimeOffsetOutOfRangeIsNoField(digits: String) throws {
        let value = CharacteristicValue(decoding: try bytes("01 0500 ea070b1b130026 \(digits)"), of: "2A18")
        #expect(value?.fields.map(\.name) == ["sequence_number", "time"])
    }

    @Test(
        "A value out of range is not decoded",
        arguments: [
            (0x2A19, "65"), (0x2A6F, "1127"), (0x2A08, "ea070d01000000"), (0x2A08, "ea070b1b180000"),
            (0x2A08, "2d060101000000"), (0x2A85, "ea070b20"), (0x2A0E, "40"), (0x2A37, "1048"), (0x2A00, "ff"),
        ] as [(UInt16, String)]
    )
    func valueOutOfRangeIsNotDecoded(uuid: UInt16, digits: String) throws {
        #expect(CharacteristicValue(decoding: try bytes(digits), of: BluetoothUUID(uuid)) == nil)
    }

    @Test func textOfDeviceCannotControlTerminal() {
        let text = "a\u{1B}[2J\u{202E}b\u{200B}\u{9B}\u{2028}c"
        let value = CharacteristicValue(decoding: Array(text.utf8), of: "2A29")
        #expect(value?.text == "\"a\u{FFFD}[2J\u{FFFD}b\u{FFFD}\u{FFFD}\u{FFFD}c\"")
        #expect(value?.fields.first?.value == .text("a\u{FFFD}[2J\u{FFFD}b\u{FFFD}\u{FFFD}\u{FFFD}c"))
    }

    @Test func otherUUIDsAreNotDecoded() {
        #expect(CharacteristicValue(decoding: [0x64], of: "FFF1") == nil)
        #expect(CharacteristicValue(decoding: [0x64], of: "00002A19-1234-1234-1234-123456789ABC") == nil)
        #expect(CharacteristicValue.isKnown("2A19"))
        #expect(!CharacteristicValue.isKnown("FFF1"))
    }
}

/// Numbers that are the same in each run.
private struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}
