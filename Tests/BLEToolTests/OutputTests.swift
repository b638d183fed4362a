import BLEATT
import BLEProfiles
import BluetoothTypes
import Glibc
import Testing

@testable import BLETool

@Suite("Output")
struct OutputTests {
    private let address = DeviceAddress(0xF012_3456_789A, isRandom: true)

    private var sighting: Sighting {
        Sighting(
            address: address,
            rssi: -60,
            isConnectable: true,
            data: AdvertisingData([
                .completeLocalName("Thermo"),
                .serviceUUIDs(["180F", "12345678-1234-5678-1234-56789ABCDEF0"], isComplete: true),
                .serviceData("1809", [0x01, 0x02]),
                .manufacturerData(CompanyIdentifier(rawValue: 0x0002), [0xFF]),
                .txPowerLevel(4),
            ])
        )
    }

    private var silent: Sighting {
        Sighting(
            address: DeviceAddress(0x0012_3456_789A, isRandom: false),
            rssi: nil,
            isConnectable: false,
            data: AdvertisingData()
        )
    }

    @Test("An advertisement is a line of JSON")
    func advertisementIsALineOfJSON() {
        #expect(
            sighting.json.description == #"{"event":"advertisement","address":"F0:12:34:56:78:9A","#
                + #""addressType":"random","name":"Thermo","rssi":-60,"connectable":true,"serviceUUIDs":["180F"],"#
                + #""serviceData":{"1809":"0102"},"manufacturerData":{"0002":"ff"},"txPower":4}"#
        )
        #expect(
            silent.json.description == #"{"event":"advertisement","address":"00:12:34:56:78:9A","#
                + #""addressType":"public","name":null,"rssi":null,"connectable":false,"serviceUUIDs":[],"#
                + #""serviceData":{},"manufacturerData":{},"txPower":null}"#
        )
    }

    @Test("An advertisement is a line of text")
    func advertisementIsALineOfText() {
        #expect(
            sighting.line
                == "F0:12:34:56:78:9A  random  -60  dBm  Thermo  Battery, 1809=0102, Intel Corp.=ff"
        )
        #expect(silent.line == "00:12:34:56:78:9A  public  ?    dBm  -  (not connectable)")
    }

    @Test("A name received over the air cannot control the terminal")
    func receivedNameCannotControlTheTerminal() {
        #expect(terminalSafe("a\u{1B}[2Jb\u{202E}c\n") == "a\u{FFFD}[2Jb\u{FFFD}c\u{FFFD}")
        #expect(terminalSafe("Grüße 👩‍🔬") == "Grüße 👩‍🔬")
    }

    @Test(
        "A value is shown as digits, and as text if it is text",
        arguments: [
            ([], "(empty)"), ([0x64], "64 \"d\""), ([0x00, 0x01], "0001"),
            (Array("Größe".utf8), "4772c3b6c39f65 \"Größe\""),
            ([0xFF], "ff"), ([0x41, 0x1B], "411b"),
        ] as [([UInt8], String)]
    )
    func valueIsShownAsDigitsAndAsTextIfItIsText(value: [UInt8], text: String) {
        #expect(readable(value) == text)
    }

    @Test("A long value can be cut")
    func longValueIsCutAtTheLimit() {
        #expect(readable([0x01, 0x02, 0x03], greatestCount: 2) == "0102… (3 bytes)")
    }

    @Test("Columns are as wide as needed, and lines not wider than the terminal")
    func columnsAreAsWideAsNeededWithinTheTerminal() {
        let table = TextTable(header: ["A", "LONG"], rows: [["温度", "x"], ["b", "yyyyyyyy"]])
        #expect(table.lines() == ["A     LONG", "温度  x", "b     yyyyyyyy"])
        #expect(table.lines(width: 8) == ["A     L…", "温度  x", "b     y…"])
    }

    @Test("The scan's table lists the strongest advertisers first, and counts those without room")
    func scanTableListsTheStrongestAdvertisersFirst() {
        var table = ScanTable()
        table.note(silent)
        table.note(sighting)
        #expect(
            table.lines(width: 60, height: 24) == [
                "ADDRESS            TYPE    RSSI  NAME    SERVICES AND DATA",
                "F0:12:34:56:78:9A  random  -60   Thermo  Battery, 1809=0102…",
                "00:12:34:56:78:9A  public  ?     -",
                "2 found; Ctrl-C ends",
            ]
        )
        #expect(table.lines(width: 40, height: 3).last == "… and 1 more; Ctrl-C ends")
        table.noteDropped(2)
        #expect(table.lines(width: 60, height: 24).last == "2 found; 2 advertisements were dropped; Ctrl-C ends")
    }

    @Test("The scan's table drops the advertiser that was silent for longest when it is full")
    func fullScanTableDropsTheAdvertiserThatWasSilentForLongest() {
        var table = ScanTable()
        for value in 0...UInt64(ScanTable.capacity) {
            table.note(
                Sighting(
                    address: DeviceAddress(value, isRandom: true),
                    rssi: value == 0 ? -1 : -50,
                    isConnectable: true,
                    data: AdvertisingData()
                )
            )
        }
        #expect(table.count == ScanTable.capacity)
        #expect(!table.lines(width: 80, height: 2000).contains { $0.hasPrefix("00:00:00:00:00:00") })
    }

    private var exploration: Exploration {
        Exploration(
            address: address,
            mtu: 517,
            services: [
                .init(
                    uuid: "180F",
                    isPrimary: true,
                    handle: 1,
                    endHandle: 4,
                    includes: [5],
                    characteristics: [
                        .init(
                            uuid: "2A19",
                            handle: 3,
                            valueHandle: 4,
                            properties: [.read, .notify],
                            value: .value([0x64]),
                            descriptors: [
                                .init(uuid: "2902", handle: 5, value: .value([0, 0])),
                                .init(uuid: "2901", handle: 6, value: .failed(.readNotPermitted)),
                            ]
                        )
                    ]
                ),
                .init(
                    uuid: "12345678-1234-5678-1234-56789ABCDEF0",
                    isPrimary: false,
                    handle: 7,
                    endHandle: 9,
                    includes: [],
                    characteristics: [
                        .init(
                            uuid: "FFF1",
                            handle: 8,
                            valueHandle: 9,
                            properties: [.write],
                            value: nil,
                            descriptors: []
                        ),
                        .init(
                            uuid: "FFF2",
                            handle: 10,
                            valueHandle: 11,
                            properties: [.read],
                            value: .failed(.insufficientEncryption),
                            descriptors: []
                        ),
                    ]
                ),
            ]
        )
    }

    @Test("An explored peer is one object of JSON")
    func exploredPeerIsOneObjectOfJSON() {
        #expect(
            exploration.json.description == #"{"address":"F0:12:34:56:78:9A","mtu":517,"services":["#
                + #"{"uuid":"180F","name":"Battery","primary":true,"handle":1,"endHandle":4,"includes":[5],"#
                + #""characteristics":[{"uuid":"2A19","name":"Battery Level","handle":3,"valueHandle":4,"#
                + #""properties":["read","notify"],"value":"64","text":"100 %","#
                + #""fields":{"battery":{"value":100,"unit":"%"}},"descriptors":["#
                + #"{"uuid":"2902","handle":5,"value":"0000","text":"none","fields":{"subscription":{"value":"none"}}},"#
                + #"{"uuid":"2901","handle":6,"error":"readNotPermitted"}]}]},"#
                + #"{"uuid":"12345678-1234-5678-1234-56789ABCDEF0","name":null,"primary":false,"handle":7,"endHandle":9,"#
                + #""includes":[],"characteristics":["#
                + #"{"uuid":"FFF1","name":null,"handle":8,"valueHandle":9,"properties":["write"],"descriptors":[]},"#
                + #"{"uuid":"FFF2","name":null,"handle":10,"valueHandle":11,"properties":["read"],"#
                + #""error":"insufficientEncryption","descriptors":[]}]}]}"#
        )
    }

    @Test("An explored peer is a tree")
    func exploredPeerIsATree() {
        #expect(
            exploration.tree == [
                "F0:12:34:56:78:9A  MTU 517",
                "├── 0x0001-0x0004  Battery 180F",
                "│   ├── includes the service at 0x0005",
                "│   └── 0x0004  Battery Level 2A19  [read, notify]  64 (100 %)",
                "│       ├── 0x0005  Client Characteristic Configuration 2902  0000 (none)",
                "│       └── 0x0006  Characteristic User Description 2901  (Read Not Permitted)",
                "└── 0x0007-0x0009  12345678-1234-5678-1234-56789ABCDEF0  (secondary)",
                "    ├── 0x0009  FFF1  [write]",
                "    └── 0x000B  FFF2  [read]  (Insufficient Encryption)",
            ]
        )
    }

    @Test(
        "An attribute error is one word",
        arguments: [
            (.insufficientEncryption, "insufficientEncryption"), (.invalidPDU, "invalidPDU"),
            (.databaseOutOfSync, "databaseOutOfSync"), (.cccdImproperlyConfigured, "cccdImproperlyConfigured"),
            (.procedureAlreadyInProgress, "procedureAlreadyInProgress"),
            (ATTErrorCode(rawValue: 0x80), "applicationError0x80"), (ATTErrorCode(rawValue: 0xA0), "error0xA0"),
        ] as [(ATTErrorCode, String)]
    )
    func attributeErrorIsOneWord(error: ATTErrorCode, identifier: String) {
        #expect(error.identifier == identifier)
    }

    @Test("A notification is a line of JSON or of text")
    func notificationIsALineOfJSONOrText() {
        let delivery = Delivery(
            characteristic: "2A37",
            handle: 6,
            value: [0x06, 0x48],
            isIndication: false,
            time: 1_763_704_000_123_456
        )
        #expect(
            delivery.json.description
                == #"{"event":"notification","characteristic":"2A37","handle":6,"value":"0648","#
                + #""text":"contact detected, heart rate 72 bpm","fields":{"contact":{"value":"detected"},"#
                + #""heart_rate":{"value":72,"unit":"bpm"}},"time":1763704000.123456}"#
        )
        #expect(delivery.line == "05:46:40.123  0648 (contact detected, heart rate 72 bpm)")
    }

    @Test("Instants are converted to times of day")
    func instantsAreConvertedToTimesOfDay() {
        var clock = WallClock()
        #expect(clock.microseconds(at: Instant(nanoseconds: 5_000_000), now: 1000) == 1000)
        #expect(clock.microseconds(at: Instant(nanoseconds: 7_500_000), now: 9_999_999) == 3500)
        #expect(clock.microseconds(at: Instant(nanoseconds: 4_000_000), now: 9_999_999) == 0)
    }

    private var controller: ControllerDescription {
        ControllerDescription(
            adapter: "hci0",
            publicAddress: nil,
            identityAddress: address,
            hciVersion: "5.3",
            hciSubversion: 1,
            linkLayerVersion: "5.2",
            linkLayerSubversion: 2,
            manufacturer: CompanyIdentifier(rawValue: 0x0002),
            features: 1 << 8 | 1 << 63,
            aclDataLength: 251,
            aclPacketCount: 3,
            usesExtendedCommands: false,
            advertisingSets: 1,
            advertisingDataLength: 31,
            filterAcceptListSize: 8,
            resolvingListSize: 0,
            supportedStates: 0x3FF
        )
    }

    @Test(
        "A version that cannot be printed is an error",
        arguments: [(ENOSPC, EXIT_FAILURE), (EPIPE, 128 + SIGPIPE)] as [(Int32, Int32)]
    )
    func versionThatCannotBePrintedIsAnError(errno: Int32, status: Int32) throws {
        let error = #expect(throws: (any Error).self) { try BLECommand.parseAsRoot(["--version"]) }
        let result = Main.report(try #require(error), Interruption()) { _ throws(OutputError) in
            throw OutputError(errno: errno)
        }
        #expect(result == status)
    }

    @Test func controllerIsOneObjectOfJSONOrAList() {
        #expect(
            controller.json.description == #"{"adapter":"hci0","publicAddress":null,"address":"F0:12:34:56:78:9A","#
                + #""addressType":"random","hciVersion":"5.3","hciSubversion":1,"linkLayerVersion":"5.2","#
                + #""linkLayerSubversion":2,"manufacturer":"0002","manufacturerName":"Intel Corp.","#
                + #""features":["LE 2M PHY","Feature 63"],"aclDataLength":251,"aclPacketCount":3,"#
                + #""extendedCommands":false,"advertisingSets":1,"advertisingDataLength":31,"filterAcceptListSize":8,"#
                + #""resolvingListSize":0,"supportedStates":"3ff"}"#
        )
        #expect(
            controller.lines == [
                "Adapter         hci0",
                "Address         F0:12:34:56:78:9A (random)",
                "Public address  none",
                "Manufacturer    Intel Corp. (0002)",
                "HCI             5.3, subversion 1",
                "Link Layer      5.2, subversion 2",
                "ACL buffers     3 of 251 bytes",
                "Commands        legacy advertising and scanning",
                "Advertising     1 set, up to 31 bytes",
                "Lists           8 to accept, 0 to resolve",
                "Features        LE 2M PHY",
                "                Feature 63",
            ]
        )
    }
}
