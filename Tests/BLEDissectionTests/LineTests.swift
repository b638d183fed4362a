import BLEByteCoding
import BLECapture
import BLEDissection
import BluetoothTypes
import Testing

@Suite("Lines about packets")
struct LineTests {
    @Test(
        "Messages of the monitor channel show the kernel's events of adapters and programs",
        arguments: [
            ("0000 0200 1000 00 01 0504030201F0 6863693200000000", "hci2 = New Index: \"hci2\", F0:01:02:03:04:05"),
            ("0100 0200 0000", "hci2 = Delete Index"),
            ("0A00 0200 0800 0504030201F0 0200", "hci2 = Index Information: F0:01:02:03:04:05, Intel Corp."),
            (
                "0E00 0200 1E00 01000000 0100 021600 00000000 10 626C6500000000000000000000000000",
                "hci2 = Control Open: \"ble\", user channel, cookie 0x00000001"
            ),
            ("0F00 0200 0400 01000000", "hci2 = Control Close: cookie 0x00000001"),
            ("0C00 FFFF 0400 4C696E00", "    - = System Note: \"Lin\""),
            ("0200 0200 0300 030C00", "hci2 < Command Reset"),
            ("0200 0200 0400 030C00", "[malformed note: truncated: 4 bytes needed, 3 left]"),
        ]
    )
    func monitorMessagesShowAdaptersAndPrograms(digits: String, expected: String) throws {
        let message = try #require([UInt8](hexadecimal: digits.filter { $0 != " " }))
        let time = CaptureTime(seconds: 0, nanoseconds: 0)
        let record = CaptureRecord(monitorMessage: message.rawSpan, number: 1, time: time)
        let packet = Dissector().dissect(record)
        var text = TextBuffer()
        packet.appendLine(to: &text)
        let line = String(decoding: text.bytes, as: UTF8.self)
        #expect(line.hasPrefix("     1 00:00:00.000000") && line.hasSuffix(expected), "\(line)")
        var json = TextBuffer()
        packet.appendJSON(to: &json)
        #expect(repeatedMembers(ofJSON: json.bytes).isEmpty)
    }

    @Test(
        "The earliest and the latest time are shown",
        arguments: [
            (Int64.min, "19:59:05.224192", "-290308-12-21T19:59:05.224192Z"),
            (Int64.max, "04:00:54.775807", "294247-01-10T04:00:54.775807Z"),
        ]
    )
    func earliestAndLatestTimesAreShown(seconds: Int64, clock: String, time: String) {
        let message: [UInt8] = [0x01, 0x00, 0x02, 0x00, 0x00, 0x00]
        let recordTime = CaptureTime(seconds: seconds, nanoseconds: 0)
        let record = CaptureRecord(monitorMessage: message.rawSpan, number: 1, time: recordTime)
        let packet = Dissector().dissect(record)
        var text = TextBuffer()
        packet.appendLine(to: &text)
        #expect(String(decoding: text.bytes, as: UTF8.self) == "     1 \(clock) hci2 = Delete Index")
        var json = TextBuffer()
        packet.appendJSON(to: &json)
        #expect(String(decoding: json.bytes, as: UTF8.self).contains("\"time\":\"\(time)\""))
    }

    @Test(
        "HCI packets show their name and their important parameters",
        arguments: [
            Sample(.command, .hostToController, "030C00", "Command Reset"),
            Sample(.command, .hostToController, "0C20020101", "Command LE Set Scan Enable: enabled, filtered"),
            Sample(
                .command,
                .hostToController,
                "0D2019 6000 6000 00 01 0504030201F0 00 1800 2800 0000 F401 0000 0000",
                "Command LE Create Connection: F0:01:02:03:04:05 (random), connection interval min 30 ms, "
                    + "supervision timeout 5 s"
            ),
            Sample(
                .command,
                .hostToController,
                "0604034000 13",
                "Command Disconnect: 0x0040, Remote User Terminated Connection"
            ),
            Sample(.command, .hostToController, "01FC020A0B", "Command Vendor Command 0xFC01: 0a0b"),
            Sample(.event, .controllerToHost, "0E0401030C00", "Event Command Complete: Reset"),
            Sample(
                .event,
                .controllerToHost,
                "0F040C010D20",
                "Event Command Status: Command Disallowed, LE Create Connection"
            ),
            Sample(
                .event,
                .controllerToHost,
                "0504004000 13",
                "Event Disconnection Complete: 0x0040, Remote User Terminated Connection"
            ),
            Sample(
                .event,
                .controllerToHost,
                "1305014000 0200",
                "Event Number Of Completed Packets: [0x0040, num completed packets 2]"
            ),
            Sample(
                .event,
                .controllerToHost,
                "13050104F0 0100",
                "Event Number Of Completed Packets: [0x0004, reserved bits 0xF, num completed packets 1]"
            ),
            Sample(
                .event,
                .controllerToHost,
                "3E13 01 00 4000 00 01 0504030201F0 1800 0000 F401 00",
                "Event LE Connection Complete: 0x0040, central, F0:01:02:03:04:05 (random), connection interval 30 ms, "
                    + "peripheral latency 0, supervision timeout 5 s"
            ),
            Sample(
                .event,
                .controllerToHost,
                "3E16 02 01 00 01 0504030201F0 09 020106 0509416C6D61 D0 00",
                "Event LE Advertising Report: [ADV_IND, F0:01:02:03:04:05 (random), [\"Alma\"], RSSI -48 dBm] "
                    + "[malformed event: 1 bytes after the end of the packet]"
            ),
            Sample(
                .event,
                .controllerToHost,
                "3E15 02 01 00 01 0504030201F0 09 020106 0509416C6D61 D0",
                "Event LE Advertising Report: [ADV_IND, F0:01:02:03:04:05 (random), [\"Alma\"], RSSI -48 dBm]"
            ),
            Sample(.event, .controllerToHost, "1A0100", "Event Data Buffer Overflow: synchronous"),
            Sample(.event, .controllerToHost, "1A0102", "Event Data Buffer Overflow: ISO"),
            Sample(.event, .controllerToHost, "FF020102", "Event Vendor Specific: 0102"),
            Sample(.event, .controllerToHost, "3E02FE00", "Event LE subevent 0xFE: 00"),
        ]
    )
    func hciPacketsShowTheirNameAndImportantParameters(sample: Sample) {
        #expect(line(of: [sample]) == sample.line)
    }

    @Test(
        "Commands of Core 6 show their important parameters",
        arguments: [
            (
                "8020 05 03 01 02 AABB",
                "LE Set Decision Data: advertising handle 3, decision type flags resolvable tag, aabb"
            ),
            (
                "8120 13 01 03 07 B0000000000000000000000000000000",
                "LE Set Decision Instructions: [test flags new group + pass if check passes, RSSI]"
            ),
            ("8720 00", "LE Read All Local Supported Features"),
            ("8820 03 4000 02", "LE Read All Remote Features: 0x0040, pages requested 2"),
            ("9720 03 4101 01", "LE Set Host Feature [v2]: bit number 321, enabled"),
            (
                "9820 0A 01 9A78563412F0 B0 C4 05",
                "LE Add Device To Monitored Advertisers List: F0:12:34:56:78:9A (random), RSSI threshold low -80 dBm, "
                    + "RSSI threshold high -60 dBm, timeout 5 s"
            ),
            (
                "9920 07 00 EF3207DC1B00",
                "LE Remove Device From Monitored Advertisers List: 00:1B:DC:07:32:EF (public)"
            ),
            ("9A20 00", "LE Clear Monitored Advertisers List"),
            ("9B20 00", "LE Read Monitored Advertisers List Size"),
            ("9C20 01 01", "LE Enable Monitoring Advertisers: enabled"),
            (
                "9D20 09 4000 0000 9600 03 1300",
                "LE Frame Space Update: 0x0040, frame space min 0 ms, frame space max 0.15 ms, PHYs LE 1M + LE 2M, "
                    + "spacing types T_IFS_ACL_CP + T_IFS_ACL_PC + T_MSS_CIS"
            ),
            (
                "9E20 04 E001 8403",
                "LE Set Resolvable Private Address Timeout [v2]: RPA timeout min 480 s, RPA timeout max 900 s"
            ),
            (
                "4D20 04 00FB 0005",
                "LE Write RF Path Compensation: RF TX path compensation -1280, RF RX path compensation 1280"
            ),
        ]
    )
    func commandsOfCore6ShowTheirParameters(digits: String, expected: String) {
        #expect(line(of: [Sample(.command, .hostToController, digits, "")]) == "Command " + expected)
    }

    @Test(
        "Events of Core 6 show their important parameters",
        arguments: [
            (
                "3EFE 2B 00 4000 03 02" + String(repeating: "00", count: 248),
                "LE Read All Remote Features Complete: 0x0040, max remote page 3, max valid page 2"
            ),
            (
                "3E09 34 01 9A78563412F0 01",
                "LE Monitored Advertisers Report: F0:12:34:56:78:9A (random), RSSI at high threshold"
            ),
            (
                "3E0A 35 00 4000 02 6400 02 0C00",
                "LE Frame Space Update Complete: 0x0040, peer, frame space 0.1 ms, PHYs LE 2M, "
                    + "spacing types T_MCES + T_IFS_CIS"
            ),
            (
                "0EFD 01 8720 00 01" + String(repeating: "00", count: 248),
                "Command Complete: LE Read All Local Supported Features, max page 1"
            ),
            ("0E05 01 9B20 00 08", "Command Complete: LE Read Monitored Advertisers List Size, number 8"),
        ]
    )
    func eventsOfCore6ShowTheirParameters(digits: String, expected: String) {
        #expect(line(of: [Sample(.event, .controllerToHost, digits, "")]) == "Event " + expected)
    }

    @Test(
        "The list of what failed is not malformed, whatever its count",
        arguments: [
            (
                "3E13 1D 3D 01 000000 00000000 0000 0000 00 60006100",
                "LE BIG Sync Established: Connection Terminated due to MIC Failure, BIG handle 1, ISO interval 0 ms"
            ),
            (
                "3E13 1B 0D 01 000000 000000 00 00000000 0000 0000 02",
                "LE Create BIG Complete: Connection Rejected due to Limited Resources, BIG handle 1, ISO interval 0 ms"
            ),
            ("0E06 01 6220 0C 01 02", "Command Complete: LE Set CIG Parameters, Command Disallowed, CIG ID 1"),
            (
                "3E13 1D 00 01 000000 00000000 0000 0000 00 60006100",
                "LE BIG Sync Established: BIG handle 1, ISO interval 0 ms "
                    + "[malformed event: 4 bytes after the end of the packet]"
            ),
        ]
    )
    func listOfWhatFailedIsNotMalformed(digits: String, expected: String) {
        #expect(line(of: [Sample(.event, .controllerToHost, digits, "")]) == "Event " + expected)
    }

    @Test(
        "Frames of a link show the content of their protocol",
        arguments: [
            ("0300 0400 0A0300", "ATT Read Request: 0x0003"),
            ("0300 0400 022000", "ATT Exchange MTU Request: MTU 32"),
            ("0700 0400 1B2A00 48656C6C", "ATT Handle Value Notification: 0x002A, 48656c6c \"Hell\""),
            ("0500 0400 52030001 FF", "ATT Write Command: 0x0003, 01ff"),
            ("0500 0400 010A030002", "ATT Error Response: Read Request, 0x0003, Read Not Permitted"),
            ("0200 0400 1900", "ATT Execute Write Response [malformed att: 1 bytes after the end of the packet]"),
            ("0100 0400 1A", "ATT PDU 0x1A [malformed att: an unknown opcode]"),
            (
                "0C00 0500 12010800 1800280000 00F401",
                "L2CAP Connection Parameter Update Request CID 0x0005, 12 bytes: "
                    + "[interval min 30 ms, interval max 50 ms, latency 0, timeout 5 s]"
            ),
            (
                "0200 0500 1201",
                "L2CAP Connection Parameter Update Request CID 0x0005, 2 bytes "
                    + "[malformed l2cap: truncated: 2 bytes needed, 0 left]"
            ),
            (
                "0800 0500 1602040040000A00",
                "L2CAP Flow Control Credit Indication CID 0x0005, 8 bytes: [CID 0x0040, credits 10]"
            ),
            (
                "0700 0600 01 04 00 0D 10 03 03",
                "SMP Pairing Request: KeyboardDisplay, AuthReq bonding + MITM + SC, maximum encryption key size 16, "
                    + "initiator key distribution EncKey + IdKey, responder key distribution EncKey + IdKey"
            ),
            ("0200 0600 0505", "SMP Pairing Failed: Pairing Not Supported"),
            (
                "1100 0600 03 0F0E0D0C0B0A09080706050403020100",
                "SMP Pairing Confirm: confirm value 000102030405060708090A0B0C0D0E0F"
            ),
            ("0100 4000 AA", "L2CAP frame CID 0x0040, 1 bytes"),
        ]
    )
    func framesOfALinkShowTheContentOfTheirProtocol(digits: String, line expected: String) throws {
        let frame = try #require([UInt8](hexadecimal: digits.filter { $0 != " " }))
        let length = UInt8(frame.count)
        let acl = Sample(.acl, .controllerToHost, "4020" + [length, 0].hexadecimal + frame.hexadecimal, "")
        #expect(line(of: [acl]) == "ACL 0x0040 " + expected)
    }

    @Test("The reserved bits of two handles are two members of JSON")
    func reservedBitsOfTwoHandlesAreTwoMembersOfJSON() throws {
        let request = Sample(.event, .controllerToHost, "3E07 1A 40F0 6010 01 02", "")
        #expect(
            line(of: [request])
                == "Event LE CIS Request: ACL connection handle 0x0040, ACL connection handle reserved bits 0xF, "
                + "CIS connection handle 0x0060, CIS connection handle reserved bits 0x1, CIG ID 1, CIS ID 2"
        )
        let packet = try #require(descriptions(of: [request]).last)
        var text = TextBuffer()
        packet.appendJSON(to: &text)
        #expect(repeatedMembers(ofJSON: text.bytes).isEmpty)
        let json = String(decoding: text.bytes, as: UTF8.self)
        #expect(json.contains(#""aclConnectionHandle":64,"aclConnectionHandleReservedBits":15,"#))
        #expect(json.contains(#""cisConnectionHandle":96,"cisConnectionHandleReservedBits":1,"#))
    }

    @Test("Packets that the recorder has lost are shown at the next packet, and counted in the summary")
    func lostPacketsAreShownAndCounted() throws {
        let reset = Sample(.command, .hostToController, "030C00", "")
        let samples = [reset, reset.afterDrops(1), reset.afterDrops(1), reset.afterDrops(4)]
        #expect(line(of: Array(samples.prefix(2))) == "Command Reset [1 packet dropped before]")
        #expect(line(of: Array(samples.prefix(3))) == "Command Reset")
        #expect(line(of: samples) == "Command Reset [3 packets dropped before]")
        let dissector = Dissector(summarizing: true)
        let packets = descriptions(of: samples, by: dissector)
        #expect(packets.map(\.dropped) == [0, 1, 0, 3])
        let members = packets.map { packet in
            var text = TextBuffer()
            packet.appendJSON(to: &text)
            return String(decoding: text.bytes, as: UTF8.self).split(separator: ",").last
        }
        #expect(members[1] == #""dropped":1}"# && members[3] == #""dropped":3}"#)
        #expect(members[0] == members[2])
        let summary = try #require(dissector.summary)
        var text = TextBuffer()
        summary.appendText(to: &text)
        #expect(String(decoding: text.bytes, as: UTF8.self).contains(": 4 command, 0 malformed, 4 dropped\n"))
        var json = TextBuffer()
        summary.appendJSON(to: &json)
        #expect(String(decoding: json.bytes, as: UTF8.self).contains(#""malformed":0,"dropped":4,"#))
    }

    @Test("Fragments are marked, and the last one shows the frame")
    func fragmentsAreMarkedAndTheLastOneShowsTheFrame() {
        let first = Sample(.acl, .controllerToHost, "4020 0500 0700 0400 1B", "")
        let second = Sample(.acl, .controllerToHost, "4010 0600 2A00 01020304", "")
        #expect(line(of: [first]) == "ACL 0x0040 fragment: 5 bytes")
        #expect(line(of: [first, second]) == "ACL 0x0040 ATT Handle Value Notification: 0x002A, 01020304")
        #expect(line(of: [second])?.hasSuffix("[malformed l2cap: a continuing fragment of no frame]") == true)
    }
}
