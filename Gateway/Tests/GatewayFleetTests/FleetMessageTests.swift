import Testing

@testable import GatewayFleet

struct FleetMessageTests {
    private static let text = """
        {"time": "2026-11-24T16:48:19.375Z", "gateway": "hall", "address": "C0:DE:00:00:00:02", "name": "Demo \\"x\\"", \
        "rssi": -20, "format": "bthome_v2", "counter": 7, "sequence": 12, "boot": "0a1B2c3d", \
        "readings": {"packet_id": {"value": 1}, "temperature": {"value": 20.6, "unit": "°C"}}}
        """

    private func decode(_ text: String) throws(FleetMessageError) -> FleetMessage {
        try FleetMessage(gateway: "hall", address: 0xC0DE_0000_0002, payload: text)
    }

    /// A message with another field.
    private func with(_ field: String) -> String {
        "{\"time\": \"2026-11-24T16:48:19Z\", \"format\": \"atc1441\", \"readings\": {}\(field.isEmpty ? "" : ", ")\(field)}"
    }

    @Test func allFieldsAreDecoded() throws {
        let expected = FleetMessage(
            gateway: "hall",
            number: .init(boot: 0x0A1B_2C3D, sequence: 12),
            address: 0xC0DE_0000_0002,
            time: "2026-11-24T16:48:19.375Z",
            rssi: -20,
            format: "bthome_v2",
            counter: 7,
            readings: "{\"packet_id\": {\"value\": 1}, \"temperature\": {\"value\": 20.6, \"unit\": \"°C\"}}"
        )
        #expect(try decode(Self.text) == expected)
    }

    @Test func optionalFieldsCanBeMissing() throws {
        let message = try decode(with(""))
        #expect(message.number == nil && message.rssi == nil && message.counter == nil)
    }

    @Test(
        arguments: [
            ("\"rssi\": 200", "rssi"), ("\"rssi\": -1.5", "rssi"), ("\"rssi\": \"x\"", "rssi"),
            ("\"counter\": -1", "counter"), ("\"counter\": 1e400", "counter"),
            ("\"sequence\": 18446744073709551616, \"boot\": \"00000000\"", "sequence"),
            ("\"boot\": \"0\", \"sequence\": 1", "boot"), ("\"boot\": \"0000000g\", \"sequence\": 1", "boot"),
            ("\"boot\": \"+0000001\", \"sequence\": 1", "boot"), ("\"time\": \"2026\"", "time"),
            ("\"format\": \"x\"", "format"), ("\"readings\": {}", "readings"),
        ]
    )
    func invalidAndRepeatedFieldsAreRefused(field: String, name: String) {
        #expect(throws: FleetMessageError.invalid(name)) { try decode(with(field)) }
    }

    @Test func numberNeedsBootAndSequence() {
        #expect(throws: FleetMessageError.missing("boot")) { try decode(with("\"sequence\": 1")) }
        #expect(throws: FleetMessageError.missing("sequence")) { try decode(with("\"boot\": \"00000001\"")) }
        #expect(throws: FleetMessageError.missing("time")) { try decode("{}") }
    }

    @Test(
        arguments: [
            "", "{", "}", "\"", "{\"a\"", "{\"a\":", "{\"a\": 1,}", "{\"a\": 1} x", "{\"a\": 01}", "{\"a\": -}",
            "{\"a\": 1.}", "{\"a\": 1e}", "{\"a\": tru}", "{\"a\": \"\\x\"}", "{\"a\": \"\\u12g4\"}", "{\"a\": \"\\u1",
            "{\"a\": \"\u{1B}[2J\"}", "{\"a\": \"\u{9B}2J\"}", "{\"a\": [1 2]}", "{\"a\": {1: 2}}", "{'a': 1}",
            "{\"a\": NaN}", "{\"a\": +1}", "{\"a\": .5}", "{\"a\" 1}", "[1,]",
        ]
    )
    func malformedTextIsRefused(text: String) {
        var scanner = JSONScanner(Array(text.utf8))
        let isValid = scanner.value() != nil && scanner.isAtEnd()
        #expect(!isValid)
    }

    @Test(
        arguments: [
            "{}", "[]", "null", "[true, false]", "-0.5e+3", "\"\\u00e9\\n\"", "{\"a\": {\"b\": [1, {}]}}",
            " [ 1 , 2 ] ",
            "\"°C\"",
        ]
    )
    func validTextIsTaken(text: String) {
        var scanner = JSONScanner(Array(text.utf8))
        let isValid = scanner.value() != nil && scanner.isAtEnd()
        #expect(isValid)
    }

    @Test func readingsAreWrittenInOneLine() throws {
        let text =
            "{\"time\": \"2026-11-24T16:48:19Z\", \"format\": \"x\", \"readings\":\n{\"a\":\r\n\t{\"value\": 1}}}"
        #expect(try decode(text).readings == "{\"a\":   {\"value\": 1}}")
    }

    @Test func everyPrefixOfAMessageIsRefused() {
        let bytes = Array(Self.text.utf8)
        for count in 0..<bytes.count {
            #expect(throws: FleetMessageError.self) { try decode(String(decoding: bytes[..<count], as: UTF8.self)) }
        }
    }

    @Test func changedBytesNeverTrapAndWhatIsTakenIsWrittenAsJSON() throws {
        var generator = SplitMix(state: 7)
        let bytes = Array(Self.text.utf8)
        var taken = 0
        for _ in 0..<5000 {
            var changed = bytes
            for _ in 0..<Int.random(in: 1...3, using: &generator) {
                changed[Int.random(in: 0..<changed.count, using: &generator)] = .random(in: 0...255, using: &generator)
            }
            guard let message = try? decode(String(decoding: changed, as: UTF8.self)) else { continue }
            taken += 1
            var fleet = FleetWindow()
            _ = fleet.receive(message, at: .zero)
            let json = fleet.finish(at: .zero)[0].json
            var scanner = JSONScanner(Array(json.utf8))
            let isValid = scanner.value() != nil && scanner.isAtEnd()
            #expect(isValid, "\(json)")
            #expect(!json.unicodeScalars.contains { $0.properties.generalCategory == .control })
        }
        #expect(taken > 200)
    }

    @Test func depthSizeAndReadingsAreBounded() {
        let nested = String(repeating: "[", count: 5000) + String(repeating: "]", count: 5000)
        #expect(throws: FleetMessageError.self) { try decode(with("\"x\": \(nested)")) }
        let long = with("\"x\": \"\(String(repeating: "a", count: FleetMessage.sizeLimit))\"")
        #expect(throws: FleetMessageError.tooLong(long.utf8.count)) { try decode(long) }
        func readings(_ count: Int) -> String {
            let members = (0..<count).map { "\"r\($0)\": {\"value\": 1}" }.joined(separator: ", ")
            return "{\"time\": \"2026-11-24T16:48:19Z\", \"format\": \"x\", \"readings\": {\(members)}}"
        }
        #expect(throws: Never.self) { try decode(readings(FleetMessage.readingLimit)) }
        #expect(throws: FleetMessageError.invalid("readings")) { try decode(readings(FleetMessage.readingLimit + 1)) }
    }

    @Test func freeSlotsAreRead() throws {
        #expect(try FreeSlots.decode(#"{"free": 3, "limit": 20}"#) == 3)
        #expect(try FreeSlots.decode(#" {"x": {"free": 1}, "free":0} "#) == 0)
    }

    @Test(arguments: [
        (#"{"limit": 20}"#, FleetMessageError.missing("free")), (#"{"free": -1}"#, .invalid("free")),
        (#"{"free": "1"}"#, .invalid("free")), (#"{"free": 1, "free": 2}"#, .invalid("free")),
        (#"{"free": 1.5}"#, .invalid("free")), (#"{"free": 99999999999999999999}"#, .invalid("free")),
        ("3", .malformed(at: 0)), (#"{"free": 1} x"#, .malformed(at: 12)), ("", .malformed(at: 0)),
    ])
    func freeSlotsThatAreNotValidAreRefused(payload: String, error: FleetMessageError) {
        #expect(throws: error) { try FreeSlots.decode(payload) }
    }

    @Test func topicsSayWhatTheyAreAbout() {
        let topics = FleetTopics(prefix: "home/ble")
        #expect(
            topics.subject(of: "home/ble/sensors/C0DE00000002/hall")
                == .readings(address: 0xC0DE_0000_0002, gateway: "hall")
        )
        #expect(topics.subject(of: "home/ble/gateways/hall/status") == .status(gateway: "hall"))
        #expect(topics.subject(of: "home/ble/gateways/hall/connections") == .connections(gateway: "hall"))
        for topic in [
            "home/ble/sensors/C0DE00000002", "home/ble/sensors/C0DE0000002/hall", "home/ble/sensors/+0DE00000002/hall",
            "home/ble/sensors/C0DE00000002/ha\"ll", "home/ble/sensors/C0DE00000002/", "home/ble/gateways/hall/other",
            "home/blesensors/C0DE00000002/hall", "home/ble/sensors/C0DE00000002/hall/x", "", "home/ble",
        ] {
            #expect(topics.subject(of: topic) == nil, "\(topic)")
        }
        #expect(topics.observations(of: 2) == "home/ble/fleet/sensors/000000000002")
        #expect(topics.election(of: 0xC0DE_0000_0002) == "home/ble/fleet/gateways/C0DE00000002")
    }
}

/// A generator of random numbers that gives the same ones each time.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}
