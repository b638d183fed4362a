import BLEByteCoding
import BLECapture
import BLEDissection
import BLEHCI
import BLEL2CAP
import BluetoothTypes

/// Fuzzes the decoding of events and of their lists. A decoded event must encode to a packet that can be decoded.
func fuzzEvent(_ input: [UInt8]) {
    guard let event = try? Event(decoding: input.rawSpan) else { return }
    let written = PacketBuffer.bytes { event.encodePacket(into: &$0) }
    require(isEvent(written), "an event that was read is written as none: \(written.hexadecimal)")
    switch event {
    case .leAdvertisingReport(let event):
        var reports = event.reports
        while let report = try? reports.next() { walk(report.data) }
    case .leExtendedAdvertisingReport(let event):
        var reports = event.reports
        while let report = try? reports.next() { walk(report.data) }
    case .leDirectedAdvertisingReport(let event):
        var reports = event.reports
        while reports.next() != nil {}
    case .lePeriodicAdvertisingReportV2(let report): walk(report.data)
    case .lePeriodicAdvertisingResponseReport(let event):
        var responses = event.responses
        while let response = try? responses.next() { walk(response.data) }
    case .numberOfCompletedPackets(let event):
        var completions = event.completions
        while completions.next() != nil {}
    case .leCSSubeventResult(let event):
        var steps = event.steps
        while let step = try? steps.next() { walk(step, event.numAntennaPaths) }
    case .leCSSubeventResultContinue(let event):
        var steps = event.steps
        while let step = try? steps.next() { walk(step, event.numAntennaPaths) }
    default: break
    }
}

private func walk(_ step: borrowing ChannelSoundingStep, _ antennaPaths: UInt8) {
    _ = try? step.packet(antennaPaths: antennaPaths)
    guard let tones = try? step.tones(antennaPaths: antennaPaths) else { return }
    for index in 0...tones.count { require((tones[index] == nil) == (index == tones.count), "tone \(index)") }
}

private func isEvent(_ packet: [UInt8]) -> Bool {
    (try? Event(decoding: packet.rawSpan)) != nil
}

private func walk(_ data: RawSpan) {
    var structures = ADStructureIterator(data)
    while let structure = try? structures.next() {
        var uuids = structure.uuids
        while uuids.next() != nil {}
    }
}

/// Fuzzes the reassembly of the packets of a script. The bytes of each are the data of an ACL packet from the
/// controller. The choice gives the rest of its header: bits 0 and 1 are the boundary flag, and bits 2 to 6 the handle.
/// If bit 7 is set, the bytes are a whole ACL packet, whose header may be wrong.
func fuzzACL(_ input: [UInt8]) {
    var reassembler = Reassembler()
    for scripted in Script(input).packets {
        let octets = scripted.choice & 0x80 == 0 ? aclPacket(scripted) : scripted.octets
        guard let packet = try? ACLPacket(decoding: octets.rawSpan) else {
            require(scripted.choice & 0x80 != 0, "an ACL packet with a correct length is not read")
            continue
        }
        let header = packet.header
        let written = PacketBuffer.bytes { header.encode(into: &$0) }
        require(written.elementsEqual(octets.prefix(ACLHeader.length)), "a header that differs when it is written")
        let isStart = header.packetBoundaryFlag != .continuing
        let isWhole = isStart ? reassembler.isWhole(packet.payload) : false
        let outcome = reassembler.receive(packet.payload, isStart: isStart) { frame in
            require(frame.payload.byteCount <= reassemblerLimit, "a frame longer than may be put together")
        }
        require(!isWhole || outcome == .delivered, "a whole frame is \(outcome)")
    }
}

/// An ACL packet with the bytes of a script's packet as its data.
private func aclPacket(_ packet: Script.Packet) -> [UInt8] {
    let header = ACLHeader(
        connectionHandle: ConnectionHandle(UInt16(packet.choice >> 2 & 0x1F)),
        packetBoundaryFlag: PacketBoundaryFlag(rawValue: packet.choice & 0b11) ?? .continuing,
        dataTotalLength: UInt16(truncatingIfNeeded: packet.octets.count)
    )
    return PacketBuffer.bytes { buffer in
        header.encode(into: &buffer)
        buffer.append(packet.octets)
    }
}

private let reassemblerLimit = Reassembler.defaultMaximumPayloadLength

func fuzzAdvertising(_ input: [UInt8]) {
    let data = AdvertisingData(decoding: input)
    walk(input.rawSpan)
    _ = data.localName
    _ = data.serviceUUIDs
    _ = data.solicitedServiceUUIDs
    _ = data.serviceData
    _ = data.manufacturerData
    _ = data.txPower
    _ = data.flags
    _ = data.appearance
}

/// Fuzzes the reading of captures. Each packet is described in every way and written in every format. The capture is
/// read in pieces, whose length is in its last byte, and at once: both must find the same. The bytes are also read as
/// one message of the kernel's monitor channel.
func fuzzCapture(_ input: [UInt8]) {
    describe(monitorMessage: input)
    let pieces = readCapture(input, inPiecesOf: 1 + Int(input.last ?? 0), describing: true)
    let whole = readCapture(input, inPiecesOf: max(1, input.count), describing: false)
    require(pieces.count == whole.count, "\(pieces.count) records of a capture in pieces, \(whole.count) at once")
    require(
        isSame(pieces.error, whole.error),
        "a capture in pieces ends with \(String(describing: pieces.error)), at once with "
            + "\(String(describing: whole.error))"
    )
}

/// Reads a capture to its end or to its damage. Returns the number of its records, and the error.
private func readCapture(
    _ capture: [UInt8],
    inPiecesOf pieceLength: Int,
    describing: Bool
) -> (count: UInt64, error: CaptureReadingError?) {
    var reader = CaptureReader()
    let dissector = Dissector(summarizing: true)
    var text = TextBuffer()
    var buffer = PacketBuffer(capacity: 4096)
    var writers = writtenFormats.map { CaptureWriter($0) }
    defer {
        text.removeAll()
        dissector.summary?.appendText(to: &text)
        dissector.summary?.appendJSON(to: &text)
    }
    var rest = capture[...]
    do throws(CaptureReadingError) {
        while true {
            switch try reader.advance() {
            case .record where !describing: break
            case .record:
                guard let record = reader.record else { break }
                let packet = dissector.dissect(record)
                text.removeAll()
                packet.appendLine(to: &text)
                packet.appendTree(to: &text)
                packet.appendJSON(to: &text)
                for filter in filters { _ = filter.accepts(packet) }
                for index in writers.indices {
                    buffer.reset()
                    _ = writers[index].encode(record, into: &buffer)
                }
            case .needsBytes where rest.isEmpty: reader.finish()
            case .needsBytes:
                reader.append(Array(rest.prefix(pieceLength)).rawSpan)
                rest = rest.dropFirst(pieceLength)
            case .end: return (reader.recordCount, nil)
            }
        }
    } catch {
        return (reader.recordCount, error)
    }
}

/// Whether two readings of a capture have ended in the same way. The number of missing bytes in an error depends on the
/// pieces; the position of the damage does not.
private func isSame(_ error: CaptureReadingError?, _ other: CaptureReadingError?) -> Bool {
    if case .damaged(let damage)? = error, case .damaged(let otherDamage)? = other {
        return damage.offset == otherDamage.offset
    }
    return error == other
}

private func describe(monitorMessage: [UInt8]) {
    let time = CaptureTime(microsecondsSince1970: 0)
    let record = CaptureRecord(monitorMessage: monitorMessage.rawSpan, number: 1, time: time)
    var text = TextBuffer()
    Dissector().dissect(record).appendTree(to: &text)
}

private let filters: [PacketFilter] = [
    .adapter(0), .address(0xF0_0102_0304), .link(0x40), .layer(.att), .opcode(0x2006), .handle(3), .malformed,
]

private let writtenFormats: [CaptureWriter.Format] = [.btsnoop, .btsnoopMonitor, .pcapng, .pcapngMonitor]
