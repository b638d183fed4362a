import BLEByteCoding
import BLEHCI
import BluetoothTypes
import Testing

@testable import BLEDissection

@Suite("Layouts of parameters")
struct LayoutTests {
    @Test(
        "Every line of the tables is a layout",
        arguments: [
            CommandLayouts.parameters.problems, CommandLayouts.returns.problems, EventLayouts.events.problems,
            EventLayouts.leEvents.problems, SignalingLayouts.commands.problems, SecurityLayouts.commands.problems,
        ]
    )
    func everyLineOfTheTablesIsALayout(problems: [String]) {
        #expect(problems.isEmpty)
    }

    @Test func tablesAreLargeAndEveryCommandHasAName() {
        #expect(CommandLayouts.parameters.numbers.count > 150)
        #expect(EventLayouts.events.numbers.count > 40)
        #expect(EventLayouts.leEvents.numbers.count > 25)
        for number in CommandLayouts.parameters.numbers {
            #expect(HCIOpcode(rawValue: number).knownTitle != nil, "0x\(String(number, radix: 16)) has no name")
        }
    }

    @Test(
        "A layout reads what its line says",
        arguments: [
            ("A:u8! B:u16*1250us", "07 1800", "a 7"),
            ("A:u8! B:u16*1250us!", "07 1800", "a 7, b 30 ms"),
            ("Interval:u24*625us!", "A00000", "interval 100 ms"),
            ("Timeout:u16*10ms!", "F401", "timeout 5 s"),
            ("Power:i8dBm!", "D0", "power -48 dBm"),
            ("Offset:i16! Change:i8! Error:i24!", "00FB D0 FFFFFF", "offset -1280, change -48, error -1"),
            ("Address_Type:@addressType! Address:address!", "01 0504030201F0", "F0:01:02:03:04:05 (random)"),
            ("Role:@role!", "07", "role 0x07"),
            ("Key:u128!", "0F0E0D0C0B0A09080706050403020100", "key 000102030405060708090A0B0C0D0E0F"),
            ("Num:count Groups{ Handle:handle! }", "02 4000 4110", "[0x0040; 0x0041, reserved bits 0x1]"),
            (
                "First:handle! Second:handle!",
                "4010 41F0",
                "first 0x0040, first reserved bits 0x1, second 0x0041, second reserved bits 0xF"
            ),
            ("PHYs:phys Groups{ Interval:u16! }", "05 0100 0200", "[interval 1; interval 2]"),
            ("Name:text4!", "416C0000", "\"Al\""),
            ("Value:u16! Detail?{ Data:u8! }", "0100", "value 1"),
            ("Value:u16! Detail?{ Data:u8! }", "0100 02", "value 1, data 2"),
        ]
    )
    func layoutReadsWhatItsLineSays(layout text: String, digits: String, line: String) throws {
        let layout = try #require(ParameterLayout(parsing: text))
        let bytes = try #require([UInt8](hexadecimal: digits.filter { $0 != " " }))
        var reader = ByteReader(bytes.rawSpan)
        var fields: [Field] = []
        let error = layout.read(&reader, into: &fields)
        #expect(error == nil)
        var words = TextBuffer()
        fields.appendLine(to: &words)
        #expect(String(decoding: words.bytes, as: UTF8.self) == line)
    }

    @Test func policiesAndBitsOfCore6HaveNames() {
        let scan = NamedValues.all["scanFilter"]
        #expect(scan?[0x07] == "extended filtered, all PDUs" && scan?[0x08] == nil)
        #expect(scan?[0x0C] == "basic unfiltered, decision PDUs")
        let initiator = NamedValues.all["initiatorFilter"]
        #expect(initiator?[0x03] == "accept list, all PDUs" && initiator?[0x04] == "decision PDUs or accept list")
        #expect(
            FlagNames.all["leEventMask"]?.names(in: 1 << 42 | 1 << 51 | 1 << 52) == [
                "Read All Remote Features Complete", "Monitored Advertisers Report", "Frame Space Update Complete",
            ]
        )
        #expect(
            FlagNames.all["leFeatures"]?.names(in: 1 << 42 | 1 << 45 | 1 << 48 | 1 << 63) == [
                "Decision-Based Advertising Filtering", "Unsegmented Framed Mode",
                "Channel Sounding Tone Quality Indication", "LL Extended Feature Set",
            ]
        )
        #expect(
            FlagNames.all["extendedProperties"]?.names(in: 0x0380) == [
                "decision", "include AdvA in all decision PDUs", "include ADI in all decision PDUs",
            ]
        )
    }

    @Test("Missing and excess bytes are reported", arguments: ["A:u16! B:u8", "N:count G{ A:u16 }"])
    func missingAndExcessBytesAreReported(layout text: String) throws {
        let layout = try #require(ParameterLayout(parsing: text))
        let whole: [UInt8] = [1, 2, 3]
        for count in 0..<3 {
            let part = Array(whole.prefix(count))
            var reader = ByteReader(part.rawSpan)
            var fields: [Field] = []
            let error = layout.read(&reader, into: &fields)
            #expect(error != nil, "\(count) bytes")
        }
        let more = whole + [4]
        var reader = ByteReader(more.rawSpan)
        var fields: [Field] = []
        let error = layout.read(&reader, into: &fields)
        #expect(error == .trailingBytes(count: 1))
    }

    @Test("An invalid line is refused", arguments: ["A", "A:u7", "A:@nothing", "G{ A:u8", "}", "A:#nothing"])
    func invalidLineIsRefused(text: String) {
        #expect(ParameterLayout(parsing: text) == nil)
    }

    @Test(
        "Names become members of JSON and words",
        arguments: [
            ("Connection_Handle", "connectionHandle", "connection handle"),
            ("RSSI", "rssi", "RSSI"),
            ("LE_Scan_Type", "leScanType", "LE scan type"),
            ("TX_PHYs", "txPHYs", "TX PHYs"),
            ("Num HCI Command Packets", "numHCICommandPackets", "num HCI command packets"),
        ]
    )
    func namesBecomeMembersOfJSONAndWords(text: String, key: String, words: String) {
        let name = FieldName(text)
        #expect(name.key == key)
        #expect(name.words == words)
    }
}
