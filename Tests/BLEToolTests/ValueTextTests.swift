import BLEProfiles
import BluetoothSensors
import BluetoothTypes
import Testing

@testable import BLETool

@Suite("The meaning of values")
struct ValueTextTests {
    private let celsius = PresentationFormat(decoding: [0x0E, 0xFE, 0x2F, 0x27, 0x01, 0x00, 0x00])

    @Test func knownValueHasItsMeaning() {
        #expect(readable([0x63], of: "2A19") == "63 (99 %)")
        #expect(readable(Array("Größe".utf8), of: "2A00") == "4772c3b6c39f65 \"Größe\"")
        #expect(readable([0x66, 0x08], of: "FFF1", format: celsius) == "6608 (21.5 °C)")
    }

    @Test func otherValueIsShownAsBefore() {
        #expect(readable([0x65], of: "2A19") == "65 \"e\"")
        #expect(readable([0x66, 0x08], of: "FFF1") == "6608")
        #expect(readable([0x63], of: nil) == "63 \"c\"")
        #expect(readable([], of: "2A19") == "(empty)")
        let hash = [UInt8](repeating: 0xAB, count: 16)
        #expect(readable(hash, of: "2B2A") == hash.hexadecimal)
    }

    @Test func longValueIsCutButKeepsItsMeaning() {
        #expect(readable(Array("abc".utf8), of: "2A00", greatestCount: 2) == "6162… (3 bytes) \"abc\"")
    }

    @Test func valueOfDeviceCannotControlTerminal() {
        let name = Array("a\u{1B}[2J\u{202E}\n".utf8)
        let text = readable(name, of: "2A00")
        #expect(text.hasSuffix("\"a\u{FFFD}[2J\u{FFFD}\u{FFFD}\""))
        let json = JSON.object(.value(name, of: "2A00")).description
        #expect(!json.unicodeScalars.contains { $0.value < 0x20 || $0 == "\u{202E}" })
    }

    @Test func valueInJSONHasTextAndFieldsIfItIsKnown() {
        #expect(
            JSON.object(.value([0x66, 0x08], of: "2A6E")).description
                == #"{"value":"6608","text":"21.5 °C","fields":{"temperature":{"value":21.5,"unit":"°C"}}}"#
        )
        #expect(JSON.object(.value([0x66, 0x08], of: "FFF1")).description == #"{"value":"6608"}"#)
        #expect(
            JSON.object(.value([0x66, 0x08], of: "FFF1", format: celsius)).description
                == #"{"value":"6608","text":"21.5 °C","fields":{"value":{"value":21.5,"unit":"°C"}}}"#
        )
        // The device does not know the temperature.
        #expect(
            JSON.object(.value([0x00, 0x80], of: "2A6E")).description
                == #"{"value":"0080","text":"unknown","fields":{}}"#
        )
    }

    private func characteristic(formats: [[UInt8]]) -> Exploration.Characteristic {
        .init(
            uuid: "FFF1",
            handle: 1,
            valueHandle: 2,
            properties: [.read],
            value: .value([0x66, 0x08]),
            descriptors: formats.map { .init(uuid: "2904", handle: 3, value: .value($0)) }
        )
    }

    @Test func exploredValueIsShownByItsPresentationFormat() {
        let format: [UInt8] = [0x0E, 0xFE, 0x2F, 0x27, 0x01, 0x00, 0x00]
        #expect(characteristic(formats: [format]).format == celsius)
        // Several formats belong to an aggregate, whose parts have other lengths.
        #expect(characteristic(formats: [format, format]).format == nil)
        #expect(characteristic(formats: [[0x0E]]).format == nil)
        #expect(characteristic(formats: []).format == nil)
    }
}
