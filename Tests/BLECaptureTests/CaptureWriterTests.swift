import BLEByteCoding
import BLECapture
import Testing

/// Reads `bytes` and writes them again in `format`.
///
/// - Returns: the bytes, and the number of records that the format cannot hold.
func rewrite(_ bytes: [UInt8], as format: CaptureWriter.Format) throws -> (bytes: [UInt8], refused: Int) {
    var reader = CaptureReader()
    reader.append(bytes.rawSpan)
    reader.finish()
    var writer = CaptureWriter(format)
    var buffer = PacketBuffer(capacity: bytes.count * 2, headroom: 0)
    writer.encodeHeader(into: &buffer)
    var refused = 0
    while try reader.advance() == .record {
        guard let record = reader.record else { break }
        if !writer.encode(record, into: &buffer) { refused += 1 }
    }
    return ([UInt8](copying: buffer.bytes), refused)
}

@Suite("A capture writer")
struct CaptureWriterTests {
    private let reset = octets("01030c00")
    private let data = octets("024020010009")
    private let time = CaptureTime(seconds: 0x6500_0000, nanoseconds: 1001)

    @Test(
        arguments: [
            (
                .btsnoop,
                """
                6274736e6f6f7000 00000001 000003ea
                00000004 00000004 00000002 00000000 00e2e2d64f2f8001 01030c00
                00000006 00000006 00000001 00000000 00e2e2d64f2f8001 024020010009
                00000001 00000001 00000001 00000000 00e2e2d64f2f8001 ff
                """
            ),
            (
                .btsnoopMonitor,
                """
                6274736e6f6f7000 00000001 000007d1
                00000003 00000003 00000002 00000000 00e2e2d64f2f8001 030c00
                00000005 00000005 00030005 00000000 00e2e2d64f2f8001 4020010009
                """
            ),
            (
                .pcapng,
                """
                0a0d0d0a 1c000000 4d3c2b1a 0100 0000 ffffffffffffffff 1c000000
                01000000 20000000 c900 0000 00000000 0900 0100 09000000 0000 0000 20000000
                06000000 34000000 00000000 b2118417 e9030000 08000000 08000000
                00000000 01030c00 0200 0400 02000000 0000 0000 34000000
                01000000 20000000 c900 0000 00000000 0900 0100 09000000 0000 0000 20000000
                06000000 38000000 01000000 b2118417 e9030000 0a000000 0a000000
                00000001 024020010009 0000 0200 0400 01000000 0000 0000 38000000
                06000000 34000000 00000000 b2118417 e9030000 05000000 05000000
                00000001 ff 000000 0200 0400 01000000 0000 0000 34000000
                """
            ),
            (
                .pcapngMonitor,
                """
                0a0d0d0a 1c000000 4d3c2b1a 0100 0000 ffffffffffffffff 1c000000
                01000000 20000000 fe00 0000 00000000 0900 0100 09000000 0000 0000 20000000
                06000000 34000000 00000000 b2118417 e9030000 07000000 07000000
                0000 0002 030c00 00 0200 0400 02000000 0000 0000 34000000
                06000000 38000000 00000000 b2118417 e9030000 09000000 09000000
                0003 0005 4020010009 000000 0200 0400 01000000 0000 0000 38000000
                """
            ),
        ] as [(CaptureWriter.Format, String)]
    )
    func h4PacketsAreWrittenInEachFormat(format: CaptureWriter.Format, expected: String) {
        var writer = CaptureWriter(format)
        var places: [Bool] = []
        let bytes = PacketBuffer.bytes {
            writer.encodeHeader(into: &$0)
            places.append(writer.encode(h4Packet: reset.rawSpan, .hostToController, time: time, into: &$0))
            places.append(
                writer.encode(h4Packet: data.rawSpan, .controllerToHost, time: time, adapterIndex: 3, into: &$0)
            )
            // A file of H4 packets can hold an unknown indicator.
            let unknown: [UInt8] = [0xFF]
            places.append(writer.encode(h4Packet: unknown.rawSpan, .controllerToHost, time: time, into: &$0))
        }
        #expect(bytes == octets(expected))
        #expect(places == [true, true, format == .btsnoop || format == .pcapng])
    }

    @Test(
        arguments: [.btsnoop, .btsnoopMonitor, .pcapng, .pcapngMonitor] as [CaptureWriter.Format]
    )
    func monitorMessagesAreWrittenIfTheFormatCanHoldThem(format: CaptureWriter.Format) {
        var writer = CaptureWriter(format)
        var isPacketWritten = false
        var isNoteWritten = false
        let bytes = PacketBuffer.bytes {
            let packet: [UInt8] = [9]
            let note = octets("686900")
            writer.encodeHeader(into: &$0)
            isPacketWritten = writer.encode(.aclReceived, packet.rawSpan, adapterIndex: 2, time: time, into: &$0)
            isNoteWritten = writer.encode(.systemNote, note.rawSpan, adapterIndex: 0xFFFF, time: time, into: &$0)
        }
        let isMonitor = format == .btsnoopMonitor || format == .pcapngMonitor
        #expect(isPacketWritten)
        #expect(isNoteWritten == isMonitor)
        let readings = capture(bytes).readings
        #expect(
            readings.map(\.content)
                == ["acl controllerToHost 09"] + (isMonitor ? ["monitor 12 686900"] : [])
        )
        if isMonitor { #expect(readings.map(\.adapter) == [2, 0xFFFF]) }
    }

    @Test func btsnoopIsWrittenUnchanged() throws {
        for (sample, format) in [(CaptureSample.btsnoopH4, .btsnoop), (.btsnoopMonitor, .btsnoopMonitor)]
            as [(CaptureSample, CaptureWriter.Format)]
        {
            let again = try rewrite(sample.bytes, as: format)
            #expect(again.bytes == sample.bytes)
            #expect(again.refused == 0)
        }
    }

    @Test(arguments: CaptureSample.all)
    func conversionPreservesTheContentOfRecords(sample: CaptureSample) throws {
        let original = capture(sample.bytes).readings
        for format in [CaptureWriter.Format.pcapng, .pcapngMonitor, .btsnoop, .btsnoopMonitor] {
            let again = try rewrite(sample.bytes, as: format)
            let outcome = capture(again.bytes)
            #expect(outcome.error == nil)
            #expect(outcome.readings.count == original.count - again.refused)
            let contents = outcome.readings.map(\.content)
            #expect(contents == original.map(\.content).filter { contents.contains($0) })
            let packets = original.filter { reading in
                ["Controller", "Host"].contains { reading.content.contains("To\($0) ") }
                    && !reading.content.contains("invalid")
            }
            for packet in packets {
                let copy = outcome.readings.first {
                    $0.content == packet.content && $0.cut == packet.cut && $0.drops == packet.drops
                }
                #expect(copy != nil, "\(packet.content)")
                guard let copy, let time = packet.time, time.seconds >= 0 else { continue }
                let isExact = format == .pcapng || format == .pcapngMonitor
                #expect(isExact ? copy.time == time : copy.time?.microsecondsSince1970 == time.microsecondsSince1970)
            }
        }
    }
}
