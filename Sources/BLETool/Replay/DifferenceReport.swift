import BLEByteCoding
import BLECapture
import BLEDissection
import BLEHCITransport
import BLEL2CAP
import BluetoothTesting

/// A report of the first difference between a host's packets and the recording, with the packets around it.
struct DifferenceReport {
    /// Number of packets shown before and after the difference.
    private static let context = 5

    private let recording: PacketRecording

    init(_ recording: PacketRecording) {
        self.recording = recording
    }

    /// - Parameter difference: a difference in the packets to the controller.
    func lines(of difference: ReplayDifference) -> [String] {
        lines(at: difference.index, expectsPacket: difference.expected != nil, sent: difference.sent)
            + octets(difference.expected?.bytes, difference.sent)
    }

    /// - Parameter difference: a difference in the frames of a link.
    func lines(of difference: LinkReplay.Difference, on link: TracedLink) -> [String] {
        let sent = difference.sent.map { payload in
            PacketBuffer.bytes { buffer in
                buffer.append(UInt8(2))
                buffer.append(link.handle.rawValue)
                buffer.append(UInt16(clamping: payload.count + Frame.headerLength))
                buffer.append(UInt16(clamping: payload.count))
                buffer.append(difference.channel.rawValue)
                buffer.append(payload)
            }
        }
        let end = link.frames.last.map { $0.index + 1 } ?? recording.packets.count
        return lines(at: difference.expected?.index ?? end, expectsPacket: difference.expected != nil, sent: sent)
            + octets(difference.expected?.payload, difference.sent)
    }

    /// Returns lines for the packets around the first difference, and for the packet sent instead.
    private func lines(at index: Int, expectsPacket: Bool, sent: [UInt8]?) -> [String] {
        let last = min(recording.packets.count, index + DifferenceReport.context + 1)
        let first = max(0, index - DifferenceReport.context)
        let packets = Array(recording.packets[..<last])
        var lines = describe(packets).enumerated().filter { $0.offset >= first }.map { offset, line in
            (expectsPacket && offset == index ? "expected " : "         ") + line
        }
        let place = min(index - first + 1, lines.count)
        if !expectsPacket { lines.insert("expected nothing more", at: place - 1) }
        let found = sent.map { bytes in
            let before = Array(recording.packets[..<min(index, last)])
            return describe(before, then: (bytes, before.last?.time ?? .zero)).last ?? ""
        }
        lines.insert("sent     " + (found ?? "nothing"), at: place)
        return lines
    }

    /// Returns the offset of the first byte that differs, from 0.
    static func offset(_ expected: [UInt8]?, _ sent: [UInt8]?) -> Int? {
        guard let expected, let sent else { return nil }
        return zip(expected, sent).prefix { $0.0 == $0.1 }.count
    }

    private func octets(_ expected: [UInt8]?, _ sent: [UInt8]?) -> [String] {
        guard let expected, let sent, let same = DifferenceReport.offset(expected, sent) else { return [] }
        return [
            "the first byte that differs is at \(same): \(expected.count) were expected, \(sent.count) were sent",
            "  expected \(Array(expected.dropFirst(same).prefix(16)).hexadecimal)",
            "  sent     \(Array(sent.dropFirst(same).prefix(16)).hexadecimal)",
        ]
    }

    /// Packets as `ble decode` shows them.
    private func describe(_ packets: [PacketRecording.Packet], then sent: ([UInt8], Duration)? = nil) -> [String] {
        var writer = CaptureWriter(.btsnoop)
        var file = PacketBuffer(capacity: 65_536, headroom: 0)
        var reader = CaptureReader()
        func flush() {
            reader.append(file.bytes)
            file.reset()
        }
        func write(_ bytes: [UInt8], _ direction: CaptureDirection, _ time: Duration) {
            let microseconds = time.components.seconds * 1_000_000 + time.components.attoseconds / 1_000_000_000_000
            writer.encode(
                h4Packet: bytes.rawSpan,
                direction,
                time: CaptureTime(microsecondsSince1970: microseconds),
                into: &file
            )
            flush()
        }
        writer.encodeHeader(into: &file)
        flush()
        for packet in packets { write(packet.bytes, packet.direction, packet.time) }
        if let (bytes, time) = sent { write(bytes, .hostToController, time) }
        reader.finish()
        let dissector = Dissector()
        var lines: [String] = []
        while (try? reader.advance()) == .record {
            guard let record = reader.record else { break }
            var packet = dissector.dissect(record)
            packet.index = lines.count < packets.count ? packets[lines.count].number : packet.index
            var text = TextBuffer()
            packet.appendLine(to: &text)
            lines.append(String(decoding: text.bytes, as: UTF8.self))
        }
        return lines
    }
}
