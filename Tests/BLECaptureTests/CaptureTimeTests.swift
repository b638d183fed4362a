import BLEByteCoding
import BLECapture
import Testing

@Suite("A capture's time")
struct CaptureTimeTests {
    @Test(
        "Times before and after 1970 are whole seconds and a positive rest",
        arguments: [
            (0, 0, 0), (1, 0, 1000), (1_000_000, 1, 0), (-1, -1, 999_999_000), (-1_000_000, -1, 0),
            (-1_000_001, -2, 999_999_000), (.max, 9_223_372_036_854, 775_807_000),
            (.min, -9_223_372_036_855, 224_192_000),
        ] as [(Int64, Int64, UInt32)]
    )
    func timesAroundTheEpochAreWholeSecondsAndAPositiveRest(count: Int64, seconds: Int64, nanoseconds: UInt32) {
        let time = CaptureTime(microsecondsSince1970: count)
        #expect(time == CaptureTime(seconds: seconds, nanoseconds: nanoseconds))
        #expect(time.microsecondsSince1970 == count)
    }

    @Test("Seconds carry over, and times saturate")
    func secondsCarryOverAndTimesSaturate() {
        #expect(CaptureTime(seconds: 1, nanoseconds: 2_000_000_003) == CaptureTime(seconds: 3, nanoseconds: 3))
        let last = CaptureTime(seconds: .max, nanoseconds: 4_000_000_000)
        #expect(last.seconds == .max && last.nanosecondsSince1970 == .max && last.microsecondsSince1970 == .max)
        let first = CaptureTime(seconds: .min, nanoseconds: 0)
        #expect(first < last && first.nanosecondsSince1970 == .min)
        #expect(last.nanoseconds(since: first) == .max && first.nanoseconds(since: last) == .min)
        let earlier = CaptureTime(seconds: 4, nanoseconds: 999_999_999)
        #expect(CaptureTime(seconds: 5, nanoseconds: 1).nanoseconds(since: earlier) == 2)
    }

    /// One packet of an interface with these options, stamped with these units.
    @Test(
        "In pcapng, the interface defines the unit of times",
        arguments: [
            ("", 1_000_001, 1, 1000),
            ("0900 0100 00000000", 7, 7, 0),
            ("0900 0100 03000000", 7005, 7, 5_000_000),
            ("0900 0100 0a000000", 10_000_000_019, 1, 1),
            ("0900 0100 13000000", 18_446_744_073_709_551_615, 1, 844_674_407),
            ("0900 0100 14000000", 18_446_744_073_709_551_615, 0, 184_467_440),
            ("0900 0100 1c000000", 18_446_744_073_709_551_615, 0, 1),
            ("0900 0100 7f000000", 18_446_744_073_709_551_615, 0, 0),
            ("0900 0100 80000000", 7, 7, 0),
            ("0900 0100 81000000", 7, 3, 500_000_000),
            ("0900 0100 a0000000", 0x1_8000_0000, 1, 500_000_000),
            ("0900 0100 bf000000", 0xC000_0000_0000_0000, 1, 500_000_000),
            ("0900 0100 c0000000", 0x8000_0000_0000_0000, 0, 500_000_000),
            ("0900 0100 ff000000", 0x8000_0000_0000_0000, 0, 0),
            ("0900 0100 00000000 0e00 0800 fbffffffffffffff", 7, 2, 0),
            ("0900 0100 00000000 0e00 0800 ffffffffffffff7f", 7, .max, 0),
            ("0900 0200 03000000", 1_000_001, 1, 1000),
        ] as [(String, UInt64, Int64, UInt32)]
    )
    func interfaceDefinesTheUnitOfTimes(options: String, units: UInt64, seconds: Int64, nanoseconds: UInt32) {
        let options = octets(options)
        let bytes = PacketBuffer.bytes {
            $0.append(octets("0a0d0d0a 1c000000 4d3c2b1a 0100 0000 ffffffffffffffff 1c000000"))
            $0.append(octets("01000000"))
            $0.append(UInt32(20 + options.count))
            $0.append(octets("bb00 0000 00000000"))
            $0.append(options)
            $0.append(UInt32(20 + options.count))
            $0.append(octets("06000000 24000000 00000000"))
            $0.append(UInt32(truncatingIfNeeded: units >> 32))
            $0.append(UInt32(truncatingIfNeeded: units))
            $0.append(octets("04000000 04000000 01030c00 24000000"))
        }
        let outcome = capture(bytes)
        #expect(outcome.error == nil)
        #expect(outcome.readings.map(\.time) == [CaptureTime(seconds: seconds, nanoseconds: nanoseconds)])
    }
}
