import BLEByteCoding
import BluetoothTypes
import Testing

@Suite("Advertising data")
struct AdvertisingDataTests {
    static let samples: [(AdvertisingData.Structure, [UInt8])] = [
        (.flags([.generalDiscoverable, .brEdrNotSupported]), [0x02, 0x01, 0x06]),
        (.serviceUUIDs(["180D", "180F"], isComplete: true), [0x05, 0x03, 0x0D, 0x18, 0x0F, 0x18]),
        (.serviceUUIDs(["180D"], isComplete: false), [0x03, 0x02, 0x0D, 0x18]),
        (.serviceUUIDs(["12345678"], isComplete: true), [0x05, 0x05, 0x78, 0x56, 0x34, 0x12]),
        (
            .serviceUUIDs(["00112233-4455-6677-8899-aabbccddeeff"], isComplete: true),
            [
                0x11, 0x07, 0xFF, 0xEE, 0xDD, 0xCC, 0xBB, 0xAA, 0x99, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
                0x00,
            ]
        ),
        (.solicitedServiceUUIDs(["1812"]), [0x03, 0x14, 0x12, 0x18]),
        (.serviceData("FEAA", [1, 2]), [0x05, 0x16, 0xAA, 0xFE, 1, 2]),
        (.serviceData("12345678", [9]), [0x06, 0x20, 0x78, 0x56, 0x34, 0x12, 9]),
        (.completeLocalName("Ünï"), [0x06, 0x09, 0xC3, 0x9C, 0x6E, 0xC3, 0xAF]),
        (.shortenedLocalName("Ab"), [0x03, 0x08, 0x41, 0x62]),
        (.txPowerLevel(-4), [0x02, 0x0A, 0xFC]),
        (.manufacturerData(CompanyIdentifier(rawValue: 0x004C), [0x02, 0x15]), [0x05, 0xFF, 0x4C, 0x00, 0x02, 0x15]),
        (.appearance(Appearance(rawValue: 0x0341)), [0x03, 0x19, 0x41, 0x03]),
        (.advertisingInterval(0x0320), [0x03, 0x1A, 0x20, 0x03]),
        (.advertisingInterval(0x01_0203), [0x04, 0x2F, 0x03, 0x02, 0x01]),
        (.advertisingInterval(0x0102_0304), [0x05, 0x2F, 0x04, 0x03, 0x02, 0x01]),
        (.peripheralConnectionIntervalRange(6, 0xFFFF), [0x05, 0x12, 0x06, 0x00, 0xFF, 0xFF]),
        (.targetAddress(DeviceAddress(0x0102_0304_0506, isRandom: true)), [0x07, 0x18, 6, 5, 4, 3, 2, 1]),
        (.leRole(.peripheralPreferred), [0x02, 0x1C, 0x02]),
        (.uri("\u{16}//a.b"), [0x07, 0x24, 0x16, 0x2F, 0x2F, 0x61, 0x2E, 0x62]),
        (.raw(ADType(rawValue: 0x3D), [1, 2, 3]), [0x04, 0x3D, 1, 2, 3]),
    ]

    @Test("Each structure has the bytes of the specification", arguments: samples)
    func structureHasTheBytesOfTheSpecification(structure: AdvertisingData.Structure, bytes: [UInt8]) {
        #expect(AdvertisingData([structure]).bytes == bytes)
    }

    @Test("Built data is read back")
    func builtDataIsReadBack() {
        let data = AdvertisingData(Self.samples.map(\.0))
        #expect(data.flags == [.generalDiscoverable, .brEdrNotSupported])
        #expect(
            data.serviceUUIDs
                == ["180D", "180F", "180D", "12345678", "00112233-4455-6677-8899-aabbccddeeff"]
        )
        #expect(data.solicitedServiceUUIDs == ["1812"])
        #expect(data.serviceData == ["FEAA": [1, 2], "12345678": [9]])
        #expect(data.localName == "Ünï" && data.isNameComplete)
        #expect(data.txPower == -4)
        #expect(
            data.manufacturerData == [.init(company: CompanyIdentifier(rawValue: 0x004C), data: [0x02, 0x15])]
        )
        #expect(data.appearance == Appearance(rawValue: 0x0341))
        #expect(data.advertisingInterval == 0x0320)
        #expect(data.length == Self.samples.reduce(0) { $0 + $1.1.count })
    }

    @Test("Lists of mixed UUIDs become one structure for each width")
    func mixedUUIDsBecomeOneStructureForEachWidth() {
        let structures = AdvertisingData.Structure.lists(
            of: ["180D", "00112233-4455-6677-8899-aabbccddeeff", "180F"])
        #expect(
            structures == [
                .serviceUUIDs(["180D", "180F"], isComplete: true),
                .serviceUUIDs(["00112233-4455-6677-8899-aabbccddeeff"], isComplete: true),
            ]
        )
    }

    @Test("A structure beyond the end is an error after those before it; a length of zero is the end")
    func structureBeyondTheEndIsAnErrorAndZeroLengthIsTheEnd() throws {
        let bytes: [UInt8] = [0x02, 0x01, 0x06, 0x05, 0x09, 0x41]
        var iterator = ADStructureIterator(bytes.rawSpan)
        let first = try iterator.next()
        #expect(first?.type == .flags)
        var failure: PacketDecodingError?
        do throws(PacketDecodingError) { _ = try iterator.next() } catch { failure = error }
        #expect(failure == .truncated(needed: 5, available: 2))
        let isOver = try iterator.next() == nil
        #expect(isOver)
        #expect(AdvertisingData(decoding: bytes).flags == [.generalDiscoverable, .brEdrNotSupported])
        #expect(AdvertisingData(decoding: [0x00, 0x02, 0x01, 0x06]).flags == nil)
        #expect(AdvertisingData(decoding: [0x01, 0x09]).localName == "")
        #expect(AdvertisingData(decoding: [0x03, 0x09, 0xFF, 0xFE]).localName?.count == 2)
    }

    @Test("Every truncation and every flipped bit is read without a trap")
    func truncationsAndFlippedBitsAreReadWithoutATrap() {
        let whole = AdvertisingData(Self.samples.map(\.0)).bytes
        func readAll(_ bytes: [UInt8]) -> Int {
            let data = AdvertisingData(decoding: bytes)
            return (data.localName?.count ?? 0) + data.serviceUUIDs.count + data.solicitedServiceUUIDs.count
                + data.serviceData.count + data.manufacturerData.count + Int(data.txPower ?? 0)
                + Int(data.advertisingInterval ?? 0) + Int(data.appearance?.rawValue ?? 0)
        }
        for length in 0..<whole.count { _ = readAll(Array(whole.prefix(length))) }
        for position in whole.indices {
            for bit in 0..<8 {
                var bytes = whole
                bytes[position] ^= 1 << UInt8(bit)
                _ = readAll(bytes)
            }
        }
        #expect(readAll(whole) > 0)
    }

    @Test("A list that does not fit is cut after a whole UUID and is not complete")
    func listThatDoesNotFitIsCutAfterAWholeUUID() {
        let uuids = (0..<16).map { BluetoothUUID(UInt128($0) << 96) }
        for isComplete in [true, false] {
            let data = AdvertisingData([.serviceUUIDs(uuids, isComplete: isComplete)])
            #expect(Array(data.bytes.prefix(2)) == [0xF1, 0x06] && data.length == 2 + 240)
            #expect(data.serviceUUIDs == Array(uuids.prefix(15)))
        }
        #expect(AdvertisingData([.serviceUUIDs(Array(uuids.prefix(15)), isComplete: true)]).bytes[1] == 0x07)
        let solicited = AdvertisingData([.solicitedServiceUUIDs(uuids)])
        #expect(Array(solicited.bytes.prefix(2)) == [0xF1, 0x15] && solicited.length == 2 + 240)
        let short = Array(repeating: BluetoothUUID("180D"), count: 128)
        #expect(Array(AdvertisingData([.serviceUUIDs(short, isComplete: true)]).bytes.prefix(2)) == [0xFF, 0x02])
        #expect(AdvertisingData([.serviceUUIDs(Array(short.dropLast()), isComplete: true)]).bytes[1] == 0x03)
    }

    @Test("A name that does not fit is cut after a whole character and is a shortened name")
    func nameThatDoesNotFitIsCutAfterAWholeCharacter() {
        let data = AdvertisingData([.completeLocalName(String(repeating: "€", count: 85))])
        #expect(Array(data.bytes.prefix(2)) == [0xFD, 0x08] && data.length == 2 + 252)
        #expect(data.localName == String(repeating: "€", count: 84))
        let whole = AdvertisingData([.completeLocalName(String(repeating: "a", count: 254))])
        #expect(Array(whole.bytes.prefix(2)) == [0xFF, 0x09] && whole.length == 256)
        let uri = AdvertisingData([.uri(String(repeating: "€", count: 85))])
        #expect(Array(uri.bytes.prefix(2)) == [0xFD, 0x24] && uri.length == 2 + 252)
    }

    @Test("A structure has at most 254 bytes of data")
    func structureHasAtMost254BytesOfData() {
        let data = AdvertisingData([.raw(ADType(rawValue: 0x3D), Array(repeating: 1, count: 400))])
        #expect(data.length == 256 && data.bytes[0] == 255)
    }
}
