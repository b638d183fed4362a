import BLEByteCoding
import BLECapture
import BLEDissection
import BluetoothTypes
import Testing

/// A packet with its expected line and, if that matters, a part of its expected JSON.
struct Sample: Sendable, CustomTestStringConvertible {
    let kind: CapturedPacketKind
    let direction: CaptureDirection
    private(set) var bytes: [UInt8]
    let line: String
    /// The number of bytes that the recorder has cut off.
    private(set) var cutLength = 0
    /// The number of packets that the recorder has lost before this packet.
    private(set) var cumulativeDrops = 0

    init(_ kind: CapturedPacketKind, _ direction: CaptureDirection, _ digits: String, _ line: String) {
        self.kind = kind
        self.direction = direction
        bytes = [UInt8](hexadecimal: digits.filter { $0 != " " }) ?? []
        self.line = line
    }

    var testDescription: String { line }

    /// The packet as a recorder stores it that cuts off its last bytes.
    func cut(by length: Int) -> Sample {
        var sample = self
        sample.bytes.removeLast(length)
        sample.cutLength = length
        return sample
    }

    /// The packet of a recorder that has lost `count` packets so far.
    func afterDrops(_ count: Int) -> Sample {
        var sample = self
        sample.cumulativeDrops = count
        return sample
    }
}

/// The line about the last of several packets, without number, time, adapter and direction.
func line(of samples: [Sample]) -> String? {
    descriptions(of: samples).last.map { packet in
        var text = TextBuffer()
        packet.appendLine(to: &text)
        return String(decoding: text.bytes.dropFirst(30), as: UTF8.self)
    }
}

/// The descriptions of a capture of the packets, with one packet each millisecond.
func descriptions(
    of samples: [Sample],
    by dissector: Dissector = Dissector(summarizing: true)
) -> [PacketDescription] {
    var file = PacketBuffer(headroom: 0)
    BTSnoopHeader(dataLink: .hciUART).encode(into: &file)
    for (index, sample) in samples.enumerated() {
        let packet = [sample.kind.rawValue] + sample.bytes
        var record = BTSnoopRecord(
            packet: packet.rawSpan,
            direction: sample.direction == .hostToController ? .hostToController : .controllerToHost,
            isCommandOrEvent: sample.kind == .command || sample.kind == .event,
            microsecondsSince1970: Int64(index) * 1000
        )
        record.originalLength += UInt32(sample.cutLength)
        record.cumulativeDrops = UInt32(sample.cumulativeDrops)
        record.encode(into: &file)
    }
    return descriptions(inFile: [UInt8](copying: file.bytes), by: dissector)
}

/// The descriptions of the packets in a file, up to its end or its damage.
func descriptions(
    inFile bytes: [UInt8],
    by dissector: Dissector = Dissector(summarizing: true)
) -> [PacketDescription] {
    var reader = CaptureReader()
    reader.append(bytes.rawSpan)
    reader.finish()
    var packets: [PacketDescription] = []
    while let progress = try? reader.advance(), progress == .record {
        if let record = reader.record { packets.append(dissector.dissect(record)) }
    }
    return packets
}
