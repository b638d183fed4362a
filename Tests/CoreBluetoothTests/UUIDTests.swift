import CoreBluetooth
import Testing

@Suite("CBUUID")
struct UUIDTests {
    static let forms: [(text: String, octets: [UInt8], printed: String)] = [
        ("180d", [0x18, 0x0D], "180D"),
        ("0000180D", [0x00, 0x00, 0x18, 0x0D], "0000180D"),
        (
            "0000180d-0000-1000-8000-00805f9b34fb",
            [0, 0, 0x18, 0x0D, 0, 0, 0x10, 0, 0x80, 0, 0, 0x80, 0x5F, 0x9B, 0x34, 0xFB],
            "0000180D-0000-1000-8000-00805F9B34FB"
        ),
        (
            "908D66AF-2751-4483-BD8E-8E99A92CC2F3",
            [
                0x90, 0x8D, 0x66, 0xAF, 0x27, 0x51, 0x44, 0x83, 0xBD, 0x8E, 0x8E, 0x99, 0xA9, 0x2C, 0xC2, 0xF3,
            ],
            "908D66AF-2751-4483-BD8E-8E99A92CC2F3"
        ),
    ]

    @Test("Text and bytes give the same UUID, which keeps its width", arguments: forms)
    func textAndBytesGiveTheSameUUID(text: String, octets: [UInt8], printed: String) {
        let uuid = CBUUID(string: text)
        #expect(uuid.data == Data(octets))
        #expect(uuid.data.first == octets.first)
        #expect(uuid.uuidString == printed)
        #expect(CBUUID(data: Data(octets)) == uuid)
        #expect(CBUUID(data: Data([0xFF] + octets).dropFirst()) == uuid)
    }

    @Test("All forms of a UUID over the base UUID are equal and have equal hashes")
    func allFormsOfAUUIDAreEqual() {
        let forms = [
            CBUUID(string: "180D"), CBUUID(string: "0000180D"),
            CBUUID(string: "0000180D-0000-1000-8000-00805F9B34FB"),
            CBUUID(nsuuid: UUID(uuidString: "0000180D-0000-1000-8000-00805F9B34FB")!),
        ]
        #expect(Set(forms).count == 1)
        #expect(Set(forms.map(\.hash)).count == 1)
        #expect(forms.allSatisfy { $0.isEqual(forms[0]) && forms[0] == $0 })
        #expect(CBUUID(string: "180D") != CBUUID(string: "180F"))
        #expect(CBUUID(string: "180D") != CBUUID(string: "0001180D"))
        #expect(!CBUUID(string: "180D").isEqual("180D"))
        #expect([CBUUID(string: "180D"): 1][forms[2]] == 1)
    }

    @Test("UUIDs of Foundation and Core Foundation are accepted")
    @available(*, deprecated)
    func uuidsOfFoundationAreAccepted() {
        let text = "06BBE1E1-100E-430D-A62B-7B2421810813"
        #expect(CBUUID(nsuuid: UUID(uuidString: text)!).uuidString == text)
        let octets: [UInt8] = [
            0x06, 0xBB, 0xE1, 0xE1, 0x10, 0x0E, 0x43, 0x0D, 0xA6, 0x2B, 0x7B, 0x24, 0x21, 0x81, 0x08, 0x13,
        ]
        let reference = CFUUIDCreateWithBytes(
            nil,
            octets[0],
            octets[1],
            octets[2],
            octets[3],
            octets[4],
            octets[5],
            octets[6],
            octets[7],
            octets[8],
            octets[9],
            octets[10],
            octets[11],
            octets[12],
            octets[13],
            octets[14],
            octets[15]
        )
        #expect(CBUUID(cfuuid: reference!).uuidString == text)
    }

    @Test(
        "A UUID that the SIG defines is described by its name, others by their digits",
        arguments: [
            ("180D", "Heart Rate"), ("180A", "Device Information"), ("2A37", "Heart Rate Measurement"),
            ("0000180D-0000-1000-8000-00805F9B34FB", "Heart Rate"), ("FFF0", "FFF0"), ("FEF5", "FEF5"),
            ("908d66af-2751-4483-bd8e-8e99a92cc2f3", "908D66AF-2751-4483-BD8E-8E99A92CC2F3"),
        ]
    )
    func definedUUIDIsDescribedByItsName(text: String, expected: String) {
        #expect("\(CBUUID(string: text))" == expected)
    }

    @Test("A copy is the object itself")
    func copyIsTheObjectItself() {
        let uuid = CBUUID(string: "180D")
        #expect(uuid.copy() as? CBUUID === uuid)
    }

    @Test("An invalid UUID ends the process")
    func invalidUUIDEndsTheProcess() async {
        await #expect(processExitsWith: .failure) { _ = CBUUID(string: "180") }
        await #expect(processExitsWith: .failure) { _ = CBUUID(string: "908D66AF27514483BD8E8E99A92CC2F3") }
        await #expect(processExitsWith: .failure) { _ = CBUUID(data: Data([1, 2, 3])) }
    }
}
