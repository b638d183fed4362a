import BLE
import BLEATT
import BLEByteCoding
import BLECapture
import BLEHCI
import BLEHCITransport
import BLEL2CAP
import BLESMP
import BluetoothTesting
import Foundation
import RecordedRuns
import Testing

/// The recorded captures of this project's own runs.
enum Fixtures {
    static let folder = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Fixtures")

    /// The names without extensions.
    static let names: [String] =
        ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? [])
        .filter { $0.hasSuffix(".btsnoop") }.map { String($0.dropLast(".btsnoop".count)) }.sorted()

    static func file(_ name: String, _ fileExtension: String) -> URL {
        folder.appendingPathComponent("\(name).\(fileExtension)")
    }

    static func bytes(_ name: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: file(name, "btsnoop")))
    }
}

@Suite("Recorded captures")
struct FixtureTests {
    @Test("Each capture is small, and has its note, its description and its run")
    func eachCaptureIsSmallAndHasItsNoteDescriptionAndRun() throws {
        #expect(Fixtures.names.count >= 25)
        for name in Fixtures.names {
            let note = try String(contentsOf: Fixtures.file(name, "md"), encoding: .utf8)
            #expect(note.hasPrefix("# \(name)\n") && note.contains("Recorded by"), "\(name).md")
            #expect(FileManager.default.fileExists(atPath: Fixtures.file(name, "json").path), "\(name).json")
            #expect(RecordedRun.named(name) != nil, "\(name) has no run")
            #expect(try Fixtures.bytes(name).count < 100_000, "\(name) is large")
        }
        for run in RecordedRun.all { #expect(Fixtures.names.contains(run.name), "\(run.name) has no fixture") }
        #expect(Set(RecordedRun.all.map(\.name)).count == RecordedRun.all.count)
    }

    @Test(
        "Each packet is decoded, frames are reassembled, and PDUs are encoded to the same bytes",
        arguments: Fixtures.names
    )
    func packetsOfACaptureAreDecodedAndEncodedToTheSameBytes(name: String) throws {
        let bytes = try Fixtures.bytes(name)
        var reader = ByteReader(bytes.rawSpan)
        let header = try BTSnoopHeader(decoding: reader.readBytes(count: BTSnoopHeader.length))
        #expect(header.dataLink == .hciUART)
        var again = PacketBuffer(capacity: bytes.count, headroom: 0)
        header.encode(into: &again)
        var trace = Trace()
        while !reader.isAtEnd {
            let record = try BTSnoopRecord(decoding: &reader)
            record.encode(into: &again)
            try trace.receive(record.packet, from: record.direction)
        }
        #expect([UInt8](copying: again.bytes) == bytes)
        #expect(trace.unknownCommands.isEmpty && trace.unknownEvents.isEmpty)
        // These two captures contain invalid PDUs on purpose.
        if !name.contains("malformed") {
            #expect(trace.violations == 0)
            #expect(trace.otherPDUs.isEmpty, "encoded to other bytes")
        }
    }

    @Test("A host with the same calls sends the same bytes again", arguments: Fixtures.names)
    func hostWithTheSameCallsSendsTheSameBytesAgain(name: String) throws {
        let run = try #require(RecordedRun.named(name))
        let replay = Replay(try PacketRecording(Fixtures.bytes(name)), seed: run.seed)
        try replay.run {
            run.configure(&$0)
        } _: {
            try await run.perform(on: $0, ReplayStage(replay: replay))
        }
        #expect(replay.recording.damage == nil && !replay.recording.isCut)
    }
}

/// The environment of a run in a replay.
private struct ReplayStage: Stage {
    let replay: Replay

    func sleep(for duration: Duration) async throws {
        try await replay.sleep(for: duration)
    }

    func tell(_ cue: String) {}

    func loseController(of adapter: Adapter) async throws {
        let events = await adapter.events()
        try await replay.loseController()
        for await event in events {
            if case .poweredOn = event { break }
        }
    }
}

/// The contents of a capture, layer by layer.
private struct Trace {
    private(set) var unknownCommands: [HCIOpcode] = []
    private(set) var unknownEvents: [UInt8] = []
    /// The PDUs that are encoded to other bytes than they had.
    private(set) var otherPDUs: [String] = []
    private(set) var violations = 0
    private var reassemblers = [Reassembler(), Reassembler()]

    mutating func receive(_ packet: RawSpan, from direction: CaptureDirection) throws {
        let payload = packet.extracting(droppingFirst: 1)
        switch packet[checked: 0].flatMap(PacketType.init(rawValue:)) {
        case .command:
            let command = try CommandPacket(decoding: payload)
            if "\(command.opcode)".hasPrefix("command 0x") { unknownCommands.append(command.opcode) }
        case .event:
            if case .unknown(let code, _, _) = try Event(decoding: payload) { unknownEvents.append(code) }
        case .acl:
            let packet = try ACLPacket(decoding: payload)
            var encoded: [(pdu: [UInt8], isSame: Bool)] = []
            let outcome = reassemblers[direction == .hostToController ? 0 : 1].receive(
                packet.payload,
                isStart: packet.header.packetBoundaryFlag != .continuing
            ) { frame in
                let pdu = [UInt8](copying: frame.payload)
                switch frame.channel {
                case .attribute: encoded.append((pdu, recode(pdu) == pdu))
                case .securityManager: encoded.append((pdu, recodeSecurity(pdu) == pdu))
                default: break
                }
            }
            if case .dropped = outcome { violations += 1 }
            otherPDUs += encoded.filter { !$0.isSame }.map(\.pdu.hexadecimal)
        default:
            violations += 1
        }
    }
}

/// Decodes an SMP PDU and encodes it again; nil if it cannot be decoded.
private func recodeSecurity(_ pdu: [UInt8]) -> [UInt8]? {
    guard let value = try? SecurityManagerPDU(decoding: pdu.rawSpan) else { return nil }
    return PacketBuffer.bytes { value.encode(into: &$0) }
}

/// Decodes an ATT PDU and encodes it again; nil if it cannot be decoded.
private func recode(_ pdu: [UInt8]) -> [UInt8]? {
    func plain<PDU: ProtocolDataUnit>(_ type: PDU.Type) -> [UInt8]? {
        guard let value = try? PDU(decoding: pdu.rawSpan) else { return nil }
        return PacketBuffer.bytes { value.encode(into: &$0) }
    }
    func borrowing<PDU: ProtocolDataUnit & ~Escapable>(_ type: PDU.Type) -> [UInt8]? {
        guard let value = try? PDU(decoding: pdu.rawSpan) else { return nil }
        return PacketBuffer.bytes { value.encode(into: &$0) }
    }
    return switch pdu.first.flatMap(ATTOpcode.init(rawValue:)) {
    case .errorResponse: plain(ErrorResponse.self)
    case .exchangeMTURequest: plain(ExchangeMTURequest.self)
    case .exchangeMTUResponse: plain(ExchangeMTUResponse.self)
    case .findInformationRequest: plain(FindInformationRequest.self)
    case .findInformationResponse: borrowing(FindInformationResponse.self)
    case .findByTypeValueRequest: borrowing(FindByTypeValueRequest.self)
    case .findByTypeValueResponse: borrowing(FindByTypeValueResponse.self)
    case .readByTypeRequest: plain(ReadByTypeRequest.self)
    case .readByTypeResponse: borrowing(ReadByTypeResponse.self)
    case .readRequest: plain(ReadRequest.self)
    case .readResponse: borrowing(ReadResponse.self)
    case .readBlobRequest: plain(ReadBlobRequest.self)
    case .readBlobResponse: borrowing(ReadBlobResponse.self)
    case .readByGroupTypeRequest: plain(ReadByGroupTypeRequest.self)
    case .readByGroupTypeResponse: borrowing(ReadByGroupTypeResponse.self)
    case .writeRequest: borrowing(WriteRequest.self)
    case .writeResponse: plain(WriteResponse.self)
    case .writeCommand: borrowing(WriteCommand.self)
    case .prepareWriteRequest: borrowing(PrepareWriteRequest.self)
    case .prepareWriteResponse: borrowing(PrepareWriteResponse.self)
    case .executeWriteRequest: plain(ExecuteWriteRequest.self)
    case .executeWriteResponse: plain(ExecuteWriteResponse.self)
    case .handleValueNotification: borrowing(HandleValueNotification.self)
    case .handleValueIndication: borrowing(HandleValueIndication.self)
    case .handleValueConfirmation: plain(HandleValueConfirmation.self)
    default: nil
    }
}
