import BLEProfiles
import BluetoothTypes
import Testing

@testable import BLETool

@Suite("Arguments")
struct ArgumentTests {
    @Test(
        "A target is an address in either case, a service or a name",
        arguments: [
            ("f0:12:34:56:78:9a", .address(0xF012_3456_789A)),
            ("F0:12:34:56:78:9A", .address(0xF012_3456_789A)),
            ("service:180D", .service("180D")),
            ("Thermo: cellar", .name("Thermo: cellar")),
            ("cafe", .name("cafe")),
        ] as [(String, Target)]
    )
    func targetIsAnAddressAServiceOrAName(text: String, target: Target) throws {
        #expect(try Target(argument: text) == target)
    }

    @Test(
        "A target that can only be a mistyped one is refused",
        arguments: [
            ("", "the target is empty; give an address, a name or service:UUID"),
            (
                "F0:12:34:56:78",
                "\"F0:12:34:56:78\" is not an address: it has six pairs of digits, as in F0:12:34:56:78:9A"
            ),
            ("F0:12:34", "\"F0:12:34\" is not an address: it has six pairs of digits, as in F0:12:34:56:78:9A"),
            ("service:18", "\"18\" is not a UUID: use 4 or 8 hexadecimal digits, or 32 as 8-4-4-4-12"),
        ]
    )
    func mistypedTargetIsRefused(text: String, problem: String) {
        #expect(throws: ArgumentProblem(problem)) { try Target(argument: text) }
    }

    @Test("A target matches by address of either type, by name in any case, or by service")
    func targetMatchesByAddressNameOrService() {
        let address = DeviceAddress(0xF012_3456_789A, isRandom: true)
        let data = AdvertisingData([.completeLocalName("Thermo"), .serviceUUIDs(["180D"], isComplete: false)])
        #expect(Target.address(0xF012_3456_789A).matches(address, data))
        #expect(!Target.address(0xF012_3456_789B).matches(address, data))
        #expect(Target.name("thermo").matches(address, data))
        #expect(!Target.name("therm").matches(address, data))
        #expect(Target.service("0000180D-0000-1000-8000-00805F9B34FB").matches(address, data))
        #expect(!Target.service("180F").matches(address, data))
    }

    @Test(
        "A characteristic is chosen by UUID, by service and UUID, or by handle",
        arguments: [
            ("2a19", .uuid("2A19", service: nil)),
            ("180F/2A19", .uuid("2A19", service: "180F")),
            ("#12", .handle(12)),
            ("#0x000c", .handle(12)),
        ] as [(String, CharacteristicSelector)]
    )
    func characteristicIsChosenByUUIDServiceOrHandle(text: String, selector: CharacteristicSelector) throws {
        #expect(try CharacteristicSelector(argument: text) == selector)
    }

    @Test(
        "A selector that names nothing is refused",
        arguments: [
            ("", "\"\" is not a UUID: use 4 or 8 hexadecimal digits, or 32 as 8-4-4-4-12"),
            ("battery", "\"battery\" is not a UUID: use 4 or 8 hexadecimal digits, or 32 as 8-4-4-4-12"),
            ("1/2/3", "\"1/2/3\" names no characteristic: use UUID, SERVICE/UUID or #HANDLE"),
            ("#0", "\"0\" is not a handle: use 1 to 65535, or 0x0001 to 0xFFFF"),
            ("#0x", "\"0x\" is not a handle: use 1 to 65535, or 0x0001 to 0xFFFF"),
            ("#70000", "\"70000\" is not a handle: use 1 to 65535, or 0x0001 to 0xFFFF"),
            ("#+3", "\"+3\" is not a handle: use 1 to 65535, or 0x0001 to 0xFFFF"),
        ]
    )
    func selectorThatNamesNothingIsRefused(text: String, problem: String) {
        #expect(throws: ArgumentProblem(problem)) { try CharacteristicSelector(argument: text) }
    }

    private let candidates: [CharacteristicSelector.Candidate] = [
        .init(service: "180F", uuid: "2A19", valueHandle: 3),
        .init(service: "1234", uuid: "2A19", valueHandle: 0x10),
        .init(service: "180D", uuid: "2A37", valueHandle: 6),
    ]

    @Test(
        "A selector finds the characteristic that it names",
        arguments: [("2A37", 6), ("180F/2A19", 3), ("#0x10", 0x10)] as [(String, AttributeHandle)]
    )
    func selectorFindsTheCharacteristicThatItNames(text: String, handle: AttributeHandle) throws {
        #expect(try CharacteristicSelector(argument: text).choose(among: candidates).valueHandle == handle)
    }

    @Test(
        "A selector that matches none or several is refused with the reason",
        arguments: [
            (
                "2A19",
                "2A19 (Battery Level) stands for 2 characteristics; name one by its handle: #0x0003, #0x0010"
            ),
            (
                "180F/2A37",
                "there is no characteristic 180F/2A37 (Heart Rate Measurement); `ble explore` lists those there are"
            ),
            ("#99", "there is no characteristic #0x0063; `ble explore` lists those there are"),
        ]
    )
    func selectorThatMatchesNoneOrSeveralIsRefused(text: String, problem: String) {
        #expect(throws: ArgumentProblem(problem)) {
            try CharacteristicSelector(argument: text).choose(among: candidates)
        }
    }

    @Test(
        "Hexadecimal values are read in either case, with 0x or without",
        arguments: [("", []), ("00fF", [0x00, 0xFF]), ("0x0a", [0x0A])] as [(String, [UInt8])]
    )
    func hexadecimalIsReadInEitherCase(text: String, value: [UInt8]) throws {
        #expect(try [UInt8](argument: text) == value)
    }

    @Test(
        "Text that is not hexadecimal is refused",
        arguments: [
            ("0G", "\"0G\" is not hexadecimal: \"G\" is no digit"),
            ("12 34", "\"12 34\" is not hexadecimal: \" \" is no digit"),
            ("123", "\"123\" has an odd number of hexadecimal digits; a byte takes two"),
            ("\u{1B}[2J", "\"\u{FFFD}[2J\" is not hexadecimal: \"\u{FFFD}\" is no digit"),
        ]
    )
    func textThatIsNotHexadecimalIsRefused(text: String, problem: String) {
        #expect(throws: ArgumentProblem(problem)) { try [UInt8](argument: text) }
    }

    @Test(
        "Times are read in seconds or with a unit",
        arguments: [
            ("10", .seconds(10), "10 s"), ("2.5", .milliseconds(2500), "2.5 s"), ("3s", .seconds(3), "3 s"),
            ("250ms", .milliseconds(250), "0.25 s"), ("2min", .seconds(120), "120 s"),
        ] as [(String, Duration, String)]
    )
    func timesAreReadInSecondsOrWithAUnit(text: String, duration: Duration, description: String) throws {
        let seconds = try Seconds(argument: text)
        #expect(seconds.duration == duration)
        #expect(seconds.description == description)
    }

    @Test(
        "Invalid and senseless times are refused",
        arguments: [
            ("", "\"\" is not a time: use seconds, as in 10 or 2.5, or 500ms, 2min"),
            ("soon", "\"soon\" is not a time: use seconds, as in 10 or 2.5, or 500ms, 2min"),
            ("-1", "\"-1\" is not a time: use seconds, as in 10 or 2.5, or 500ms, 2min"),
            ("nan", "\"nan\" is not a time: use seconds, as in 10 or 2.5, or 500ms, 2min"),
            ("0", "\"0\" is out of range: use a time from 1ms to a year"),
            ("99999999999", "\"99999999999\" is out of range: use a time from 1ms to a year"),
        ]
    )
    func invalidOrSenselessTimeIsRefused(text: String, problem: String) {
        #expect(throws: ArgumentProblem(problem)) { try Seconds(argument: text) }
    }

    @Test(
        "Parameters of a connection that are out of range are refused with the option and the range",
        arguments: [
            (["--interval", "5ms"], "--interval: 0.005 s is out of range; use 7.5ms to 4s"),
            (["--interval", "5"], "--interval: 5 s is out of range; use 7.5ms to 4s"),
            (["--interval", "100ms", "--latency", "500"], "--latency: 500 is out of range; use 0 to 499"),
            (
                ["--interval", "100ms", "--supervision-timeout", "50ms"],
                "--supervision-timeout: 0.05 s is out of range; use 100ms to 32s"
            ),
            (
                ["--interval", "4s", "--supervision-timeout", "8s"],
                "--supervision-timeout: 8 s is too short; with this interval, latency and subrate, use more than 8 s"
            ),
            (
                ["--interval", "100ms", "--subrate", "10", "--supervision-timeout", "2s"],
                "--supervision-timeout: 2 s is too short; with this interval, latency and subrate, use more than 2 s"
            ),
        ]
    )
    func connectionParametersOutOfRangeAreRefused(options: [String], problem: String) throws {
        let error = #expect(throws: (any Error).self) { try Link.parse(["Lamp"] + options) }
        #expect(Link.message(for: try #require(error)) == problem)
    }

    @Test("Parameters of a connection in their ranges are accepted")
    func connectionParametersInRangeAreAccepted() throws {
        for options in [["--interval", "7.5ms"], ["--interval", "100ms", "--latency", "4"], ["--subrate", "2-10"]] {
            #expect(throws: Never.self) { try Link.parse(["Lamp"] + options) }
        }
    }

    @Test(
        "Data on standard input exclude pairing that needs answers or data there",
        arguments: [
            (
                ["write", "Lamp", "FFE1", "-", "--io", "keyboard"],
                "standard input has the values, so it cannot have the answers for --io keyboard; give --passkey, "
                    + "or give a value as an argument; or pair first with `ble pair`"
            ),
            (
                ["write", "Lamp", "FFE1", "-", "--io", "displayYesNo"],
                "standard input has the values, so it cannot have the answers for --io displayYesNo; "
                    + "give a value as an argument; or pair first with `ble pair`"
            ),
            (
                ["write", "Lamp", "FFE1", "-", "--oob", "-"],
                "standard input has the values, so --oob - cannot read it; name a file"
            ),
            (
                ["channel", "open", "Lamp", "0x80", "--io", "keyboardDisplay"],
                "standard input has the data to send, so it cannot have the answers for --io keyboardDisplay; "
                    + "give --io keyboard with --passkey, or name a file with --input; or pair first with `ble pair`"
            ),
            (
                ["serve", "-", "--io", "displayYesNo"],
                "standard input has the profile, so it cannot have the answers for --io displayYesNo; "
                    + "name a file for the profile"
            ),
            (
                ["serve", "-", "--oob", "-"],
                "standard input has the profile, so --oob - cannot read it; name a file"
            ),
        ]
    )
    func dataOnStandardInputExcludeAnswersThere(arguments: [String], problem: String) throws {
        let error = #expect(throws: (any Error).self) { try BLECommand.parseAsRoot(arguments) }
        #expect(BLECommand.message(for: try #require(error)) == problem)
    }

    @Test(
        "Data on standard input are accepted if pairing asks nothing",
        arguments: [
            ["write", "Lamp", "FFE1", "-"], ["write", "Lamp", "FFE1", "-", "--io", "display"],
            ["write", "Lamp", "FFE1", "-", "--io", "keyboard", "--passkey", "012345"],
            ["write", "Lamp", "FFE1", "00", "--io", "keyboard"],
            ["channel", "open", "Lamp", "0x80", "--io", "keyboard", "--input", "data"],
        ]
    )
    func dataOnStandardInputAreAcceptedWithoutQuestions(arguments: [String]) {
        #expect(throws: Never.self) { try BLECommand.parseAsRoot(arguments) }
    }

    @Test("A summary is about all packets, so it excludes filters")
    func summaryExcludesFilters() {
        #expect(throws: (any Error).self) { try Decode.parse(["a.btsnoop", "--summary", "--filter", "layer=att"]) }
        #expect(throws: Never.self) { try Decode.parse(["a.btsnoop", "--filter", "layer=att"]) }
    }

    @Test(
        "A wrong command line names the help of its command",
        arguments: [
            (["bonds", "remove"], "ble bonds remove --help"), (["bonds", "--json"], "ble bonds --help"),
            (["read", "bonds"], "ble read --help"), (["raed"], "ble --help"), ([], "ble --help"),
        ] as [([String], String)]
    )
    func wrongCommandLineNamesTheHelpOfItsCommand(arguments: [String], help: String) {
        #expect(BLECommand.helpCommand(for: arguments) == help)
    }
}
