import BLEByteCoding
import BluetoothTypes
import Testing

@Suite("UUIDs")
struct BluetoothUUIDTests {
    @Test("The three forms of one UUID are equal, have equal hashes and keep their width")
    func threeFormsOfOneUUIDAreEqualAndKeepTheirWidth() {
        let forms: [BluetoothUUID] = ["180D", "0000180D", "0000180d-0000-1000-8000-00805f9b34fb"]
        #expect(Set(forms).count == 1)
        #expect(forms.map(\.width) == [.bits16, .bits32, .bits128])
        #expect(forms.map(\.description) == ["180D", "0000180D", "0000180D-0000-1000-8000-00805F9B34FB"])
        #expect(forms.allSatisfy { $0.shortValue == 0x180D && $0.attributeForm.width == .bits16 })
        #expect(BluetoothUUID(0x0001_180D as UInt32).shortValue == nil)
        #expect(BluetoothUUID(0x0001_180D as UInt32).attributeForm.width == .bits128)
    }

    @Test(
        "Invalid texts are no UUIDs",
        arguments: [
            "", "18", "180", "180DX", "18 0D", "0x18", "180D0", "0000180D-0000-1000-8000-00805F9B34F",
            "0000180D-0000-1000-8000-00805F9B34FBA", "0000180D00001000800000805F9B34FB",
            "0000180D-0000-1000-80000-0805F9B34FB",
            "0000180D_0000_1000_8000_00805F9B34FB", "ÄÖÜß", "180\u{301}",
        ]
    )
    func invalidTextIsNoUUID(text: String) {
        #expect(BluetoothUUID(text) == nil)
    }

    @Test("Bytes are least significant first, and every width decodes to its original")
    func uuidBytesAreLeastSignificantFirstAndDecodeToTheOriginal() throws {
        let long: BluetoothUUID = "00112233-4455-6677-8899-aabbccddeeff"
        #expect(
            PacketBuffer.bytes { long.encode(into: &$0) }
                == [0xFF, 0xEE, 0xDD, 0xCC, 0xBB, 0xAA, 0x99, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 0x00]
        )
        for uuid in [long, "2A37", "12345678"] {
            let bytes = PacketBuffer.bytes { uuid.encode(into: &$0) }
            let decoded = try BluetoothUUID(decoding: bytes.rawSpan)
            #expect(decoded == uuid && decoded.width == uuid.width)
        }
        for length in [0, 1, 3, 5, 15, 17] {
            let bytes = [UInt8](repeating: 0, count: length)
            #expect((try? BluetoothUUID(decoding: bytes.rawSpan)) == nil)
        }
    }

    @Test("Assigned numbers have their names")
    func assignedNumbersHaveTheirNames() {
        #expect(BluetoothUUID("180D").name == "Heart Rate")
        #expect(BluetoothUUID("2A37").name == "Heart Rate Measurement")
        #expect(BluetoothUUID("00002902-0000-1000-8000-00805F9B34FB").name == "Client Characteristic Configuration")
        #expect(BluetoothUUID("00112233-4455-6677-8899-aabbccddeeff").name == nil)
        #expect(CompanyIdentifier(rawValue: 0x004C).name == "Apple, Inc.")
        #expect(CompanyIdentifier(rawValue: 0xFFFE).name == nil)
    }
}

@Suite("Addresses, numbers and times")
struct DeviceAddressTests {
    @Test("An address is read and written with its most significant byte first")
    func addressIsReadAndWrittenMostSignificantByteFirst() throws {
        let address = try #require(DeviceAddress("f0:12:34:56:78:9A", isRandom: true))
        #expect(address.value == 0xF012_3456_789A)
        #expect(address.description == "F0:12:34:56:78:9A")
        #expect(DeviceAddress(1, isRandom: false).description == "00:00:00:00:00:01")
    }

    @Test("A literal is a random address, or a public one with the suffix /P")
    func literalIsARandomAddressOrAPublicOneWithASuffix() {
        let random: DeviceAddress = "F0:12:34:56:78:9a"
        #expect(random == DeviceAddress(0xF012_3456_789A, isRandom: true))
        let `public`: DeviceAddress = "00:1A:7D:DA:71:13/P"
        #expect(`public` == DeviceAddress(0x001A_7DDA_7113, isRandom: false))
        for text in ["F0:12:34:56:78:9A/p", "F0:12:34:56:78:9A/R", "F0:12:34:56:78:9A/", "F0:12:34:56:78/P", "/P"] {
            #expect(DeviceAddress(String(text)) == nil)
        }
    }

    @Test("An invalid literal of an address or a UUID stops the program")
    func invalidLiteralStopsTheProgram() async {
        await #expect(processExitsWith: .failure) { _ = "F0-12-34-56-78-9A" as DeviceAddress }
        await #expect(processExitsWith: .failure) { _ = "180DX" as BluetoothUUID }
    }

    @Test(
        "Invalid texts are no addresses",
        arguments: [
            "", "F0:12:34:56:78", "F0:12:34:56:78:9A:", "F0-12-34-56-78-9A", "F012:34:56:78:9A", "G0:12:34:56:78:9A",
            "F0:12:34:56:78:9A:BC", "F:012:34:56:78:9A",
        ]
    )
    func invalidTextIsNoAddress(text: String) {
        #expect(DeviceAddress(text, isRandom: false) == nil)
    }

    @Test("The two highest bits distinguish the kinds of random addresses")
    func twoHighestBitsDistinguishRandomAddresses() {
        #expect(DeviceAddress(0xC000_0000_0000, isRandom: true).kind == .randomStatic)
        #expect(DeviceAddress(0x4000_0000_0000, isRandom: true).kind == .resolvablePrivate)
        #expect(DeviceAddress(0x3FFF_FFFF_FFFF, isRandom: true).kind == .nonResolvablePrivate)
        #expect(DeviceAddress(0x8000_0000_0000, isRandom: true).kind == .reserved)
        #expect(DeviceAddress(0xC000_0000_0000, isRandom: false).kind == .public)
        #expect(DeviceAddress.randomStatic(from: 0xFFFF_0000_0000_0001).description == "C0:00:00:00:00:01")
        #expect(DeviceAddress.randomStatic(from: 1 << 46 - 2).description == "FF:FF:FF:FF:FF:FE")
        #expect(DeviceAddress(1, isRandom: true) != DeviceAddress(1, isRandom: false))
    }

    @Test(
        "The random part of a static random address is neither all zeros nor all ones",
        arguments: [0, 1 << 46, 1 << 46 - 1, .max] as [UInt64]
    )
    func randomPartIsNeitherAllZerosNorAllOnes(random: UInt64) {
        #expect(DeviceAddress.randomStatic(from: random).description == "C0:00:00:00:00:01")
    }

    @Test("Handles do not increase beyond the last one")
    func handlesDoNotIncreaseBeyondTheLast() {
        #expect(AttributeHandle(0xFFFE).next == .last && AttributeHandle.last.next == nil)
        #expect("\(AttributeHandle(0x2A))" == "0x002A")
        #expect(ConnectionHandle(0xFEEF).rawValue == 0x0EEF)
    }

    @Test("Times saturate at both ends of the clock")
    func timesSaturateAtBothEndsOfTheClock() {
        let start = Instant(nanoseconds: 5)
        #expect((start + .nanoseconds(7)) - start == .nanoseconds(7))
        #expect((start + .seconds(-1)).nanoseconds == 0)
        #expect((Instant(nanoseconds: .max) + .seconds(1)).nanoseconds == .max)
        #expect(start - (start + .nanoseconds(7)) == .nanoseconds(-7))
        #expect(Instant(nanoseconds: .max) - start == .nanoseconds(Int64.max))
        #expect(start - Instant(nanoseconds: .max) == .nanoseconds(-Int64.max))
        #expect(Instant(nanoseconds: 1 << 63) - Instant(nanoseconds: 0) == .nanoseconds(Int64.max))
        #expect(Duration.seconds(Int64.max).wholeNanoseconds == .max)
        #expect(Duration.seconds(Int64.min).wholeNanoseconds == .min)
    }

    @Test("Hexadecimal text is read in either case and written in lower case")
    func hexadecimalIsReadInEitherCaseAndWrittenInLowerCase() {
        #expect([UInt8](hexadecimal: "00fFA5") == [0, 255, 0xA5])
        #expect([UInt8](hexadecimal: "") == [])
        #expect(
            [UInt8](hexadecimal: "0") == nil && [UInt8](hexadecimal: "0g") == nil && [UInt8](hexadecimal: "é0") == nil
        )
        #expect(([0, 255, 0xA5] as [UInt8]).hexadecimal == "00ffa5")
    }

    @Test func hexadecimalDigitsBeginWithZeros() {
        #expect(hexadecimalDigits(0xAB as UInt16, count: 4) == "00AB")
        #expect(hexadecimalDigits(0xAB as UInt128, count: 4, uppercase: false) == "00ab")
        #expect(hexadecimalDigits(0xAB_CDEF as UInt32, count: 4) == "ABCDEF")
        #expect(hexadecimalDigits(0 as UInt8, count: 2) == "00")
    }
}
