import BLEByteCoding
import BLECapture
import Testing

import struct BLEVirtualController.SeededGenerator

@Suite("A capture reader")
struct CaptureReaderTests {
    @Test(arguments: CaptureSample.all)
    func formatIsDetectedAndEveryRecordIsRead(sample: CaptureSample) {
        let outcome = capture(sample.bytes)
        #expect(outcome.error == nil)
        #expect(outcome.readings == sample.readings)
    }

    @Test(arguments: CaptureSample.all)
    func captureIsReadTheSameInPiecesOfAnySize(sample: CaptureSample) {
        for size in 1...sample.bytes.count {
            let outcome = capture(sample.bytes, pieces: size)
            #expect(outcome.error == nil && outcome.readings == sample.readings, "pieces of \(size)")
        }
    }

    @Test(arguments: CaptureSample.all)
    func recordsBeforeATruncationAreReadAndItsOffsetIsReported(sample: CaptureSample) {
        for length in 1..<sample.bytes.count {
            let outcome = capture(Array(sample.bytes.prefix(length)), pieces: 7)
            let whole = sample.readings.filter { reading in
                let next = sample.readings.first { $0.offset > reading.offset }?.offset ?? UInt64(sample.bytes.count)
                return next <= length
            }
            #expect(whole.elementsEqual(outcome.readings.prefix(whole.count)), "cut to \(length)")
            switch outcome.error {
            case nil:
                // Between records there is no error; the bytes after a record need not be one.
                #expect(capture(sample.bytes + [], pieces: length).readings.starts(with: outcome.readings))
            case .damaged(let damage):
                #expect(damage.offset < length, "cut to \(length)")
                #expect(outcome.readings.allSatisfy { $0.offset < damage.offset || damage.offset == 0 })
            case .text, .unknownFormat: #expect(length < 24)
            default: Issue.record("cut to \(length): \(String(describing: outcome.error))")
            }
        }
    }

    @Test func errorAfterDamageIsRepeatedWithoutARecord() throws {
        var reader = CaptureReader()
        reader.append(Array(CaptureSample.btsnoopH4.bytes.prefix(46)).rawSpan)
        reader.finish()
        let first = try reader.advance()
        #expect(first == .record)
        let damage = CaptureReadingError.damaged(
            CaptureDamage(offset: 44, reason: .truncated(needed: 4, available: 2))
        )
        for _ in 0..<2 {
            do throws(CaptureReadingError) {
                _ = try reader.advance()
                Issue.record("no damage")
            } catch {
                #expect(error == damage)
            }
            let hasRecord = reader.record != nil
            #expect(!hasRecord)
        }
        #expect(damage.description == "damaged at byte 44: truncated: 4 bytes needed, 2 left")
    }

    @Test func readerHoldsAtMostAPieceAndARecord() {
        let header = octets("0a0d0d0a 1c000000 4d3c2b1a 0100 0000 ffffffffffffffff 1c000000")
        let description = octets("01000000 14000000 c900 0000 00000000 14000000")
        // An unknown block of three million bytes and a block with a packet, repeated.
        let length = octets("c0c62d00")
        let unknown = octets("ad0b0000") + length + [UInt8](repeating: 0x55, count: 2_999_988) + length
        let packet = octets(
            "06000000 28000000 00000000 23050600 01000040 08000000 08000000 00000000 01030c00 28000000"
        )
        var file = header + description
        for _ in 0..<4 { file += unknown + packet }
        let outcome = capture(file, pieces: 4096)
        #expect(outcome.error == nil)
        #expect(outcome.readings.map(\.content) == Array(repeating: "command hostToController 030c00", count: 4))
        #expect(outcome.kept <= 8192)
    }

    @Test func anyInputIsReadOrReportedAsAnErrorAndNeverTraps() {
        var random = SeededGenerator(seed: 0x5EED_0001)
        for round in 0..<10_000 {
            let sample = CaptureSample.all[round % CaptureSample.all.count]
            var bytes = sample.bytes
            for _ in 0...(random.next() % 4) {
                let offset = Int(random.next() % UInt64(bytes.count))
                switch random.next() % 8 {
                case 0: bytes.remove(at: offset)
                case 1: bytes.insert(UInt8(truncatingIfNeeded: random.next()), at: offset)
                case 2: bytes[offset] = 0xFF
                case 3: bytes[offset] = 0
                case 4: bytes.removeLast(Int(random.next() % UInt64(bytes.count)))
                case 5: bytes[offset] ^= 1 << UInt8(random.next() % 8)
                default: bytes[offset] = UInt8(truncatingIfNeeded: random.next())
                }
                if bytes.isEmpty { bytes = [0] }
            }
            let whole = capture(bytes)
            // Each record has a header, so the number of records is bounded.
            #expect(whole.readings.count <= bytes.count / 12, "round \(round)")
            #expect(zip(whole.readings, whole.readings.dropFirst()).allSatisfy { $0.offset < $1.offset })
            var inPieces = capture(bytes, pieces: Int(random.next() % 40) + 1)
            inPieces.kept = whole.kept
            if case .damaged(let damage) = whole.error {
                // The number of missing bytes depends on the pieces; the position of the damage does not.
                guard case .damaged(let other) = inPieces.error else {
                    Issue.record("round \(round): \(damage) in one piece only")
                    continue
                }
                #expect(damage.offset == other.offset && damage.offset <= bytes.count, "round \(round)")
                inPieces.error = whole.error
            }
            #expect(inPieces == whole, "round \(round)")
        }
    }
}

@Suite("A damaged or foreign file")
struct CaptureDamageTests {
    @Test(
        arguments: [
            ("", .empty),
            ("48656c6c6f2c20776f726c640a", .text),
            ("7b226e616d65223a2022c3bc626572222c0d0a0922782220203a20317d", .text),
            ("1f8b0800 00000000 0003", .compressed(.gzip)),
            ("504b0304 14000000 0800", .compressed(.zip)),
            ("28b52ffd 00", .compressed(.zstandard)),
            ("fd377a58 5a00", .compressed(.xz)),
            ("7f454c46 02010100 00000000 00000000 03003e00 01000000", .unknownFormat(firstBytes: 0x7F45_4C46)),
            ("0a0d0d0a 1c000000 4d3c2b1b 01000000 ffffffffffffffff 1c000000", .unknownFormat(firstBytes: 0x0A0D_0D0A)),
            ("00", .unknownFormat(firstBytes: 0)),
            ("6274736e6f6f7000 00000001 000003eb", .unsupportedDataLink(.hciBCSP)),
            ("6274736e6f6f7000 00000001 000003ec", .unsupportedDataLink(.hciThreeWireUART)),
            ("6274736e6f6f7000 00000001 000003ed", .unsupportedDataLink(.init(rawValue: 1005))),
            (
                "d4c3b2a1 02000400 00000000 00000000 00000400 01000000",
                .unsupportedLinkType(CaptureLinkType(rawValue: 1))
            ),
            (
                "0a0d0d0a 1c000000 4d3c2b1a 0100 0000 ffffffffffffffff 1c000000"
                    + "01000000 14000000 6900 0000 00000000 14000000"
                    + "01000000 14000000 0100 0000 00000000 14000000",
                .unsupportedLinkType(CaptureLinkType(rawValue: 105))
            ),
        ] as [(String, CaptureReadingError)]
    )
    func errorNamesTheCause(hexadecimal: String, expected: CaptureReadingError) {
        let outcome = capture(octets(hexadecimal))
        #expect(outcome.readings.isEmpty)
        #expect(outcome.error == expected)
    }

    @Test("A pcapng file without an interface of Bluetooth HCI ends with an error, unless a later section has one")
    func pcapngOfAnotherNetworkEndsWithAnError() {
        let section = octets("0a0d0d0a 1c000000 4d3c2b1a 0100 0000 ffffffffffffffff 1c000000")
        let ethernet = octets("01000000 14000000 0100 0000 00000000 14000000")
        let bluetooth = octets("01000000 14000000 c900 0000 00000000 14000000")
        let packet = octets(
            "06000000 28000000 00000000 23050600 01000040 08000000 08000000 00000000 01030c00 28000000"
        )
        let foreign = section + ethernet + packet
        for size in [1, 16, 1000] {
            let outcome = capture(foreign + foreign, pieces: size)
            #expect(outcome.readings.count == 2)
            #expect(outcome.error == .unsupportedLinkType(CaptureLinkType(rawValue: 1)))
        }
        let both = capture(foreign + section + bluetooth + packet)
        #expect(both.readings.count == 2 && both.error == nil)
        let empty = capture(section)
        #expect(empty.readings.isEmpty && empty.error == nil)
    }

    struct Damage: CustomTestStringConvertible {
        var sample: CaptureSample
        /// The position and the content of the overwritten bytes.
        var offset: Int
        var octets: String
        var readings: Int
        var expected: CaptureDamage

        var testDescription: String { "\(sample.name): \(octets) at \(offset)" }
    }

    @Test(
        arguments: [
            Damage(
                sample: .btsnoopH4,
                offset: 8,
                octets: "00000002",
                readings: 0,
                expected: CaptureDamage(offset: 0, reason: .invalidValue(2, field: "btsnoop version"))
            ),
            Damage(
                sample: .btsnoopH4,
                offset: 44,
                octets: "00040001 00040001",
                readings: 1,
                expected: CaptureDamage(offset: 44, reason: .invalidLength(262_145, field: "btsnoop included length"))
            ),
            Damage(
                sample: .btsnoopH4,
                offset: 44,
                octets: "00000006",
                readings: 1,
                expected: CaptureDamage(offset: 44, reason: .invalidLength(7, field: "btsnoop included length"))
            ),
            Damage(
                sample: .pcaps[0],
                offset: 4,
                octets: "0003",
                readings: 0,
                expected: CaptureDamage(offset: 0, reason: .invalidValue(0x0003_0004, field: "pcap version"))
            ),
            Damage(
                sample: .pcaps[0],
                offset: 52,
                octets: "000f4240",
                readings: 1,
                expected: CaptureDamage(offset: 48, reason: .invalidValue(1_000_000, field: "fraction of a pcap time"))
            ),
            Damage(
                sample: .pcaps[1],
                offset: 55,
                octets: "ffffff7f",
                readings: 1,
                expected: CaptureDamage(offset: 47, reason: .invalidLength(0x7FFF_FFFF, field: "pcap captured length"))
            ),
            Damage(
                sample: .pcapngs[0],
                offset: 92,
                octets: "19000000",
                readings: 1,
                expected: CaptureDamage(offset: 88, reason: .invalidLength(25, field: "pcapng block"))
            ),
            Damage(
                sample: .pcapngs[0],
                offset: 92,
                octets: "08000000",
                readings: 1,
                expected: CaptureDamage(offset: 88, reason: .invalidLength(8, field: "pcapng block"))
            ),
            Damage(
                sample: .pcapngs[0],
                offset: 108,
                octets: "1c000000",
                readings: 1,
                expected: CaptureDamage(offset: 88, reason: .invalidLength(28, field: "pcapng block, at its end,"))
            ),
            Damage(
                sample: .pcapngs[0],
                offset: 116,
                octets: "04001000",
                readings: 1,
                expected: CaptureDamage(offset: 112, reason: .invalidLength(1_048_580, field: "pcapng block"))
            ),
            Damage(
                sample: .pcapngs[0],
                offset: 132,
                octets: "0d000000",
                readings: 1,
                expected: CaptureDamage(offset: 112, reason: .invalidLength(44, field: "pcapng block"))
            ),
            Damage(
                sample: .pcapngs[0],
                offset: 120,
                octets: "0100",
                readings: 1,
                expected: CaptureDamage(offset: 112, reason: .invalidValue(1, field: "pcapng interface"))
            ),
            Damage(
                sample: .pcapngs[2],
                offset: 116,
                octets: "1a2b3c4e",
                readings: 1,
                expected: CaptureDamage(
                    offset: 108,
                    reason: .invalidValue(0x4E3C_2B1A, field: "pcapng byte-order magic")
                )
            ),
            Damage(
                sample: .pcapngs[2],
                offset: 120,
                octets: "0002",
                readings: 1,
                expected: CaptureDamage(offset: 108, reason: .invalidValue(2, field: "pcapng version"))
            ),
            Damage(
                sample: .packetLoggers[0],
                offset: 16,
                octets: "00000008",
                readings: 1,
                expected: CaptureDamage(offset: 16, reason: .invalidLength(8, field: "PacketLogger record"))
            ),
            Damage(
                sample: .packetLoggers[0],
                offset: 24,
                octets: "000f4240",
                readings: 1,
                expected: CaptureDamage(
                    offset: 16,
                    reason: .invalidValue(1_000_000, field: "microseconds of a PacketLogger time")
                )
            ),
        ]
    )
    func recordsBeforeTheDamageAreReadAndTheDamageIsReported(damage: Damage) {
        var bytes = damage.sample.bytes
        let replacement = octets(damage.octets)
        bytes.replaceSubrange(damage.offset..<(damage.offset + replacement.count), with: replacement)
        let outcome = capture(bytes, pieces: 5)
        #expect(outcome.error == .damaged(damage.expected))
        #expect(outcome.readings == Array(damage.sample.readings.prefix(damage.readings)))
    }

    @Test("More interfaces than allowed are damage, and are not read into memory")
    func moreInterfacesThanAllowedAreDamage() {
        var bytes = octets("0a0d0d0a 1c000000 4d3c2b1a 0100 0000 ffffffffffffffff 1c000000")
        for _ in 0..<5000 { bytes += octets("01000000 14000000 c900 0000 00000000 14000000") }
        #expect(
            capture(bytes).error
                == .damaged(
                    CaptureDamage(
                        offset: 28 + 4096 * 20,
                        reason: .invalidValue(4096, field: "count of pcapng interfaces")
                    )
                )
        )
    }
}
