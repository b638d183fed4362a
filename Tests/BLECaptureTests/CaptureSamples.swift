import BLEByteCoding
import BLECapture
import Testing

/// Bytes written in hexadecimal. Spaces and line ends are ignored.
func octets(_ hexadecimal: String) -> [UInt8] {
    let digits = hexadecimal.compactMap(\.hexDigitValue)
    return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
}

/// The content of a record, without the borrowed bytes.
struct Reading: Equatable, CustomTestStringConvertible {
    /// For example "command hostToController 030c00".
    var content: String
    /// Seconds and nanoseconds since 1970, and the offset of the record.
    var time: CaptureTime?
    var offset: UInt64 = 0
    var adapter: UInt16 = 0
    var section: UInt64 = 0
    var cut: UInt32 = 0
    var drops: UInt64 = 0

    init(
        _ content: String,
        _ time: (Int64, UInt32)?,
        offset: UInt64 = 0,
        adapter: UInt16 = 0,
        section: UInt64 = 0,
        cut: UInt32 = 0,
        drops: UInt64 = 0
    ) {
        self.content = content
        self.time = time.map { CaptureTime(seconds: $0.0, nanoseconds: $0.1) }
        self.offset = offset
        self.adapter = adapter
        self.section = section
        self.cut = cut
        self.drops = drops
    }

    init(_ record: borrowing CaptureRecord) {
        func text(_ direction: CaptureDirection?) -> String { direction.map { " \($0)" } ?? "" }
        func text(_ bytes: RawSpan) -> String {
            bytes.isEmpty
                ? "" : " " + [UInt8](copying: bytes).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        }
        switch record.content {
        case .packet(let kind, let direction, let bytes): content = "\(kind)\(text(direction))\(text(bytes))"
        case .note(.monitor(let opcode), let bytes): content = "monitor \(opcode.rawValue)\(text(bytes))"
        case .note(.packetLogger(let type), let bytes): content = "PacketLogger \(type.rawValue)\(text(bytes))"
        case .note(.otherNetwork(let type), let bytes): content = "\(type)\(text(bytes))"
        case .malformed(let error, let direction, let bytes): content = "\(error)\(text(direction))\(text(bytes))"
        }
        time = record.time
        offset = record.offset
        adapter = record.adapterIndex
        section = record.section
        cut = record.cutLength
        drops = record.cumulativeDrops
    }

    var testDescription: String { content }
}

/// The readings, and why they ended.
struct Outcome: Equatable {
    var readings: [Reading] = []
    var error: CaptureReadingError?
    /// The maximum number of bytes that the reader held.
    var kept = 0
}

/// Reads `bytes` in pieces of `size` bytes, each when the reader requests it.
func capture(_ bytes: [UInt8], pieces size: Int = .max) -> Outcome {
    var reader = CaptureReader()
    var outcome = Outcome()
    var fed = 0
    do throws(CaptureReadingError) {
        while true {
            switch try reader.advance() {
            case .record:
                guard let record = reader.record else { return outcome }
                outcome.readings.append(Reading(record))
            case .needsBytes where fed == bytes.count: reader.finish()
            case .needsBytes:
                let end = size > bytes.count - fed ? bytes.count : fed + size
                reader.append(bytes.rawSpan.extracting(fed..<end))
                fed = end
                outcome.kept = max(outcome.kept, reader.keptLength)
            case .end: return outcome
            }
        }
    } catch {
        outcome.error = error
        return outcome
    }
}

/// A file of each format and kind, with its content.
struct CaptureSample: CustomTestStringConvertible, Sendable {
    var name: String
    var bytes: [UInt8]
    var readings: [Reading]

    init(_ name: String, _ hexadecimal: String, _ readings: [Reading]) {
        self.name = name
        bytes = octets(hexadecimal)
        self.readings = readings
    }

    var testDescription: String { name }
}

private let reset = "command hostToController 030c00"
private let complete = "event controllerToHost 0e0401030c00"
/// 2023-09-12 06:06:56 UTC, the start of all samples: 0x65000000.
private let start: Int64 = 0x6500_0000

extension CaptureSample {
    static let all = [btsnoopH4, btsnoopH1, btsnoopMonitor] + pcaps + pcapngs + packetLoggers

    static let btsnoopH4 = CaptureSample(
        "btsnoop, H4",
        """
        6274736e6f6f7000 00000001 000003ea
        00000004 00000004 00000002 00000000 00e2e2d64f2f8001 01030c00
        00000008 00000007 00000003 00000005 00e2e2d64f4e047f 040e0401030c00
        00000002 00000002 00000001 00000005 00e2e2d64f4e047f 0709
        00000000 00000000 00000000 00000005 00e2e2d64f4e047f
        """,
        [
            Reading(reset, (start, 1000), offset: 16),
            Reading(complete, (start + 1, 999_999_000), offset: 44, cut: 1, drops: 5),
            Reading(
                "HCI packet indicator has the invalid value 0x7 controllerToHost 0709",
                (start + 1, 999_999_000),
                offset: 75,
                drops: 5
            ),
            Reading(
                "truncated: 1 bytes needed, 0 left hostToController",
                (start + 1, 999_999_000),
                offset: 101,
                drops: 5
            ),
        ]
    )

    static let btsnoopH1 = CaptureSample(
        "btsnoop, H1",
        """
        6274736e6f6f7000 00000001 000003e9
        00000003 00000003 00000002 00000000 00e2e2d64f2f8001 030c00
        00000006 00000006 00000003 00000000 00e2e2d64f4e047f 0e0401030c00
        00000005 00000005 00000000 00000000 00dcddb30f2f8000 4000010009
        00000005 00000005 00000001 00000000 00dcddb30f2f7fff 4020010009
        """,
        [
            Reading(reset, (start, 1000), offset: 16),
            Reading(complete, (start + 1, 999_999_000), offset: 43),
            Reading("acl hostToController 4000010009", (0, 0), offset: 73),
            Reading("acl controllerToHost 4020010009", (-1, 999_999_000), offset: 102),
        ]
    )

    static let btsnoopMonitor = CaptureSample(
        "btsnoop, Linux's monitor",
        """
        6274736e6f6f7000 00000001 000007d1
        00000010 00000010 00010000 00000000 00e2e2d64f2f8001 0001 060504030201 6863693100000000
        00000003 00000003 00000002 00000000 00e2e2d64f2f8001 030c00
        00000006 00000006 00010003 00000000 00e2e2d64f2f8001 0e0401030c00
        00000001 00000001 00000004 00000000 00e2e2d64f2f8001 09
        00000001 00000001 00000005 00000000 00e2e2d64f2f8001 09
        00000001 00000001 00000006 00000000 00e2e2d64f2f8001 09
        00000001 00000001 00000007 00000000 00e2e2d64f2f8001 09
        00000001 00000001 00000012 00000000 00e2e2d64f2f8001 09
        00000001 00000001 00000013 00000000 00e2e2d64f2f8001 09
        00000003 00000003 ffff000c 00000000 00e2e2d64f2f8001 686900
        00000000 00000000 00010001 00000000 00e2e2d64f2f8001
        """,
        [
            Reading("monitor 0 00010605040302016863693100000000", (start, 1000), offset: 16, adapter: 1),
            Reading(reset, (start, 1000), offset: 56),
            Reading(complete, (start, 1000), offset: 83, adapter: 1),
            Reading("acl hostToController 09", (start, 1000), offset: 113),
            Reading("acl controllerToHost 09", (start, 1000), offset: 138),
            Reading("synchronous hostToController 09", (start, 1000), offset: 163),
            Reading("synchronous controllerToHost 09", (start, 1000), offset: 188),
            Reading("iso hostToController 09", (start, 1000), offset: 213),
            Reading("iso controllerToHost 09", (start, 1000), offset: 238),
            Reading("monitor 12 686900", (start, 1000), offset: 263, adapter: 0xFFFF),
            Reading("monitor 1", (start, 1000), offset: 290, adapter: 1),
        ]
    )

    static let pcaps = [
        CaptureSample(
            "pcap, big-endian, microseconds, H4 with direction",
            """
            a1b2c3d4 0002 0004 00000000 00000000 00040000 000000c9
            65000000 00000001 00000008 00000008 00000000 01030c00
            65000001 000f423f 0000000b 0000000d 00000001 040e0401030c00
            65000001 000f423f 00000002 00000002 0000
            """,
            [
                Reading(reset, (start, 1000), offset: 24),
                Reading(complete, (start + 1, 999_999_000), offset: 48, cut: 2),
                Reading("truncated: 4 bytes needed, 2 left 0000", (start + 1, 999_999_000), offset: 75),
            ]
        ),
        CaptureSample(
            "pcap, little-endian, microseconds, Linux's monitor",
            """
            d4c3b2a1 0200 0400 00000000 00000000 00000400 fe000000
            00000065 01000000 07000000 07000000 0000 0002 030c00
            01000065 3f420f00 0a000000 0a000000 0003 0003 0e0401030c00
            01000065 3f420f00 04000000 04000000 0003 0009
            """,
            [
                Reading(reset, (start, 1000), offset: 24),
                Reading(complete, (start + 1, 999_999_000), offset: 47, adapter: 3),
                Reading("monitor 9", (start + 1, 999_999_000), offset: 73, adapter: 3),
            ]
        ),
        CaptureSample(
            "pcap, big-endian, nanoseconds, H4",
            """
            a1b23c4d 0002 0004 00000000 00000000 00040000 000000bb
            65000000 00000001 00000004 00000004 01030c00
            """,
            [Reading(reset, (start, 1), offset: 24)]
        ),
        CaptureSample(
            "pcap, little-endian, nanoseconds, H4",
            """
            4d3cb2a1 0200 0400 00000000 00000000 00000400 bb000000
            00000065 01000000 04000000 04000000 01030c00
            01000065 ffc99a3b 07000000 07000000 040e0401030c00
            01000065 ffc99a3b 06000000 06000000 024020010009
            """,
            [
                Reading(reset, (start, 1), offset: 24),
                Reading(complete, (start + 1, 999_999_999), offset: 44),
                Reading("acl 4020010009", (start + 1, 999_999_999), offset: 67),
            ]
        ),
    ]

    static let pcapngs = [
        CaptureSample(
            "pcapng, little-endian, every packet block, an unknown block between",
            """
            0a0d0d0a 1c000000 4d3c2b1a 0100 0000 ffffffffffffffff 1c000000
            01000000 14000000 c900 0000 00000000 14000000
            06000000 28000000 00000000 23050600 01000040 08000000 08000000 00000000 01030c00 28000000
            ad0b0000 18000000 000102030405060708090a0b 18000000
            02000000 2c000000 0000 0200 23050600 7f841e40 0b000000 0b000000 00000001 040e0401030c00 00 2c000000
            03000000 18000000 08000000 00000000 01030c00 18000000
            """,
            [
                Reading(reset, (start, 1000), offset: 48),
                Reading(complete, (start + 1, 999_999_000), offset: 112, drops: 2),
                Reading(reset, nil, offset: 156, drops: 2),
            ]
        ),
        CaptureSample(
            "pcapng, big-endian, interfaces with resolutions and offsets, flags and drops",
            """
            0a0d0d0a 00000020 1a2b3c4d 0001 0002 ffffffffffffffff 0000 0000 00000020
            00000001 00000020 00bb 0000 00040000 0009 0001 09000000 0000 0000 00000020
            00000001 0000002c 00fe 0000 00000000 0009 0001 8a000000 000e 0008 0000000065000000 0000 0000 0000002c
            00000001 00000014 0001 0000 00000000 00000014
            00000006 00000034 00000000 178411b2 00000001 00000006 00000006 024000010009 0000
              0002 0004 00000002 0000 0000 00000034
            00000006 0000003c 00000000 178411b2 773593ff 00000006 00000009 024020010009 0000
              0002 0004 00000001 0004 0008 0000000000000003 0000003c
            00000006 00000028 00000001 00000000 00000c00 00000007 00000007 0005 0002 030c00 00 00000028
            00000006 00000024 00000002 00000000 00000001 00000002 00000002 0102 0000 00000024
            """,
            [
                Reading("acl hostToController 4000010009", (start, 1), offset: 128),
                Reading("acl controllerToHost 4020010009", (start + 1, 999_999_999), offset: 180, cut: 3, drops: 3),
                Reading(reset, (start + 3, 0), offset: 240, adapter: 5, drops: 3),
                Reading("Ethernet 0102", (0, 1000), offset: 280, adapter: 2, drops: 3),
            ]
        ),
        CaptureSample(
            "pcapng, two sections of either byte order, each with interfaces of its own",
            """
            0a0d0d0a 1c000000 4d3c2b1a 0100 0000 ffffffffffffffff 1c000000
            01000000 14000000 bb00 0000 00000000 14000000
            01000000 14000000 c900 0000 00000000 14000000
            06000000 28000000 01000000 23050600 01000040 08000000 08000000 00000000 01030c00 28000000
            0a0d0d0a 0000001c 1a2b3c4d 0001 0000 ffffffffffffffff 0000001c
            00000001 00000014 00fe 0000 00000000 00000014
            00000006 00000028 00000000 00060523 40000001 00000007 00000007 0004 0002 030c00 00 00000028
            """,
            [
                Reading(reset, (start, 1000), offset: 68, adapter: 1),
                Reading(reset, (start, 1000), offset: 156, adapter: 4, section: 1),
            ]
        ),
    ]

    static let packetLoggers = [
        CaptureSample(
            "PacketLogger, big-endian",
            """
            0000000c 65000000 00000001 00 030c00
            0000000f 65000001 000f423f 01 0e0401030c00
            0000000e 65000001 000f423f 02 4000010009
            0000000e 65000001 000f423f 03 4020010009
            0000000a 65000001 000f423f 08 09
            0000000a 65000001 000f423f 09 09
            0000000b 65000001 000f423f fc 6869
            00000009 65000001 000f423f 77
            """,
            [
                Reading(reset, (start, 1000)),
                Reading(complete, (start + 1, 999_999_000), offset: 16),
                Reading("acl hostToController 4000010009", (start + 1, 999_999_000), offset: 35),
                Reading("acl controllerToHost 4020010009", (start + 1, 999_999_000), offset: 53),
                Reading("synchronous hostToController 09", (start + 1, 999_999_000), offset: 71),
                Reading("synchronous controllerToHost 09", (start + 1, 999_999_000), offset: 85),
                Reading("PacketLogger 252 6869", (start + 1, 999_999_000), offset: 99),
                Reading("PacketLogger 119", (start + 1, 999_999_000), offset: 114),
            ]
        ),
        CaptureSample(
            "PacketLogger, little-endian",
            """
            0c000000 00000065 01000000 00 030c00
            0f000000 01000065 3f420f00 01 0e0401030c00
            """,
            [
                Reading(reset, (start, 1000)),
                Reading(complete, (start + 1, 999_999_000), offset: 16),
            ]
        ),
    ]
}
