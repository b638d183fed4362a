import BLEByteCoding
import BluetoothTypes
import Testing

@testable import BluetoothSensors

/// Reports of given bytes, with the examples of the formats' documentation.
@Suite struct SensorDecoderTests {
    private let address = DeviceAddress(0x5448_E68F_80A5, isRandom: false)
    private let key = BindKey(hexadecimal: "231d39c1d7cc1ab1aee224cd096db932")!

    private func decode(
        _ text: String,
        _ decoder: inout SensorDecoder,
        at seconds: UInt64 = 0
    ) -> SensorReport? {
        let bytes = [UInt8](hexadecimal: text)!
        let now = Instant(nanoseconds: seconds * 1_000_000_000)
        return decoder.decode(bytes.rawSpan, from: address, at: now).first
    }

    private func number(_ name: String, _ report: SensorReport?) -> Double? {
        for reading in report?.readings ?? [] where reading.name == name {
            if case .number(let number) = reading.value { return number }
        }
        return nil
    }

    /// The example of https://bthome.io/encryption.
    private let sealed = "1216d2fc41a47266c95f730011223378237214"

    @Test func encryptedBTHomeIsAcceptedOnce() {
        var decoder = SensorDecoder()
        #expect(decode(sealed, &decoder)?.protection == .needsKey)
        decoder.setKey(key, for: address)
        let report = decode(sealed, &decoder)
        #expect(report?.protection == .authenticated)
        #expect(number("temperature", report) == 25.06)
        #expect(number("humidity", report) == 50.55)
        decoder.setKey(key, for: address)
        #expect(decode(sealed, &decoder)?.protection == .replayed)
        #expect(decode(sealed, &decoder)?.readings.isEmpty == true)
    }

    @Test func damagedBTHomeHasNoReadings() {
        var decoder = SensorDecoder()
        decoder.setKey(key, for: address)
        let report = decode(String(sealed.dropLast(2)) + "15", &decoder)
        #expect(report?.protection == .wrongKey)
        #expect(report?.readings.isEmpty == true)
    }

    @Test func plainReportOfAddressWithKeyIsDowngraded() {
        var decoder = SensorDecoder()
        decoder.setKey(key, for: address)
        #expect(decode("0a16d2fc4002ca0903bf13", &decoder)?.protection == .downgraded)
        #expect(decoder.statistics.downgraded == 1)
        decoder.removeKey(for: address)
        #expect(number("temperature", decode("0a16d2fc4002ca0903bf13", &decoder)) == 25.06)
    }

    @Test func reportsAreCountedByTheirOutcome() {
        let plain = "0a16d2fc4002ca0903bf13"
        let damaged = String(sealed.dropLast(2)) + "15"
        var decoder = SensorDecoder()
        // Flags are no report.
        #expect(decode("020106", &decoder) == nil)
        #expect(decoder.statistics == SensorDecoder.Statistics())
        for _ in 0..<6 { _ = decode(plain, &decoder) }
        for _ in 0..<5 { _ = decode(sealed, &decoder) }
        decoder.setKey(key, for: address)
        // The first one is decoded.
        for _ in 0..<5 { _ = decode(sealed, &decoder) }
        for _ in 0..<3 { _ = decode(damaged, &decoder) }
        for _ in 0..<2 { _ = decode(plain, &decoder) }
        // Encrypted telemetry of Eddystone.
        _ = decode("0516aafe2001", &decoder)
        let expected = SensorDecoder.Statistics(
            decoded: 7,
            withoutKey: 5,
            wrongKey: 3,
            replayed: 4,
            downgraded: 2,
            unsupported: 1
        )
        #expect(decoder.statistics == expected)
    }

    @Test func repeatedPacketRepeatsNoEvent() {
        var decoder = SensorDecoder()
        let press = SensorReading(.button, .event("press", count: nil))
        #expect(decode("0816d2fc4000073a01", &decoder)?.readings.contains(press) == true)
        #expect(decode("0816d2fc4000073a01", &decoder, at: 10)?.readings.contains(press) == false)
        #expect(decode("0816d2fc4000083a01", &decoder, at: 20)?.readings.contains(press) == true)
    }

    @Test(arguments: [("0816d2fc4000073a01", 60), ("0816d2fc4001503a01", 4)])
    func packetIsRepeatedUntilItsDeviceWasSilent(packet: String, limit: Int) {
        var decoder = SensorDecoder()
        let press = SensorReading(.button, .event("press", count: nil))
        func isPress(at second: UInt64) -> Bool {
            decode(packet, &decoder, at: second)?.readings.contains(press) == true
        }
        #expect(isPress(at: 0))
        // One press, sent again and again for longer than the limit.
        for step in 1...5 { #expect(!isPress(at: UInt64(step * (limit - 1)))) }
        let last = UInt64(5 * (limit - 1))
        #expect(isPress(at: last + UInt64(limit)))
    }

    @Test func restartedDeviceThatKeepsSendingHasEventsAfterAMinute() {
        var decoder = SensorDecoder()
        let press = SensorReading(.button, .event("press", count: nil))
        let packets: [(number: String, second: UInt64, isPress: Bool)] = [
            ("64", 0, true), ("64", 10, false),
            // The device has restarted.
            ("00", 20, false), ("01", 40, false), ("02", 69, false), ("03", 70, true), ("04", 71, true),
            ("04", 72, false),
        ]
        for packet in packets {
            let report = decode("0816d2fc4000\(packet.number)3a01", &decoder, at: packet.second)
            #expect(report?.readings.contains(press) == packet.isPress, "\(packet.number)")
        }
    }

    @Test(
        arguments: [
            ("0616d2fc403a01", ["button"]), ("0816d2fc403a003a01", ["button_2"]), ("0816d2fc403a013a00", ["button_1"]),
            ("0816d2fc403a013a01", ["button_1", "button_2"]), ("0a16d2fc403c00003c0103", ["dimmer_2"]),
            // A percentage out of range, and an empty text.
            ("0816d2fc402eff2e32", ["humidity_2"]), ("0916d2fc405300530161", ["text_2"]),
            // The firmware is not a reading.
            ("0b16d2fc40f20000015401ab", ["raw"]),
        ] as [(String, [String])]
    )
    func equalNamesAreNumberedByObjects(packet: String, names: [String]) {
        var decoder = SensorDecoder()
        #expect(decode(packet, &decoder)?.readings.map(\.name) == names)
    }

    /// The test vectors of https://docs.ruuvi.com/communication/bluetooth-advertisements/data-format-5-rawv2.
    @Test func ruuviFormat5() {
        var decoder = SensorDecoder()
        let report = decode("1bff99040512fc5394c37c0004fffc040cac364200cdcbb8334c884f", &decoder)
        #expect(number("temperature", report) == 24.3)
        #expect(number("humidity", report) == 53.49)
        #expect(number("pressure", report) == 1000.44)
        #expect(number("voltage", report) == 2.977)
        #expect(number("tx_power", report) == 4)
        #expect(report?.counter == 205)
        let invalid = decode("1bff9904058000ffffffff800080008000ffffffffffffffffffffff", &decoder)
        #expect(invalid?.readings.isEmpty == true)
    }

    @Test func counterRestartsOncePerSilence() {
        let silence = Duration.seconds(100)
        func at(_ seconds: UInt64) -> Instant { Instant(nanoseconds: seconds * 1_000_000_000) }
        var filter = ReplayFilter(now: at(0))
        func accepts(_ counter: UInt32, _ seconds: UInt64) -> Bool {
            filter.accept(counter, width: .bits32, now: at(seconds), silence: silence)
        }
        #expect(accepts(50, 0))
        #expect(!accepts(10, 99))
        #expect(accepts(10, 100))
        #expect(!accepts(9, 150))
        #expect(accepts(11, 150))
        #expect(accepts(51, 151))
        #expect(!accepts(12, 152))
    }

    @Test(arguments: [ReplayFilter.Width.bits32, .bits8])
    func highestCounterIsRejectedAfterRestart(width: ReplayFilter.Width) {
        var filter = ReplayFilter(now: Instant(nanoseconds: 0))
        func accepts(_ counter: UInt32, _ seconds: UInt64) -> Bool {
            let now = Instant(nanoseconds: seconds * 1_000_000_000)
            return filter.accept(counter, width: width, now: now, silence: .seconds(100))
        }
        #expect(accepts(50, 0))
        #expect(accepts(10, 100))
        #expect(!accepts(50, 101))
        #expect(accepts(11, 102))
        #expect(accepts(51, 103))
    }

    /// The first report that is received has a number after the accepted one. The following reports are all received.
    @Test(arguments: [(127, 0), (128, 129), (200, 57), (256, 1), (257, 0)] as [(UInt32, Int)])
    func eightBitCounterIsRejectedUntilItHasWrapped(number: UInt32, rejectedCount: Int) {
        var filter = ReplayFilter(now: Instant(nanoseconds: 0))
        func accepts(_ counter: UInt32) -> Bool {
            filter.accept(counter & 0xFF, width: .bits8, now: Instant(nanoseconds: 0), silence: .seconds(100))
        }
        #expect(accepts(250))
        var count = 0
        while !accepts(250 + number + UInt32(count)), count < 1000 { count += 1 }
        #expect(count == rejectedCount)
        #expect(accepts(250 + number + UInt32(count) + 1))
    }

    @Test func mutatedReportsDoNotTrap() {
        var random = SystemRandomNumberGenerator()
        let reports = [sealed, "0816d2fc4000073a01", "1bff99040512fc5394c37c0004fffc040cac364200cdcbb8334c884f"]
        for text in reports {
            for _ in 0..<3000 {
                var bytes = [UInt8](hexadecimal: text)!
                for _ in 0..<3 { bytes[Int.random(in: 4..<bytes.count, using: &random)] = random.next() }
                bytes.removeLast(Int.random(in: 0..<bytes.count / 2, using: &random))
                bytes[0] = UInt8(bytes.count - 1)
                var decoder = SensorDecoder()
                if Bool.random() { decoder.setKey(key, for: address) }
                for report in decoder.decode(bytes.rawSpan, from: address, at: Instant(nanoseconds: 0)) {
                    #expect(
                        report.protection == .none || report.protection == .authenticated || report.readings.isEmpty
                    )
                }
            }
        }
    }
}
