import ATT
import BluetoothTypes
import ByteCoding
import Capture
import Foundation
import HCI
import L2CAP
import Testing

/// The captures that were recorded of this project's own runs.
private enum Fixtures {
    static let folder = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Fixtures")

    static let names: [String] =
        ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? [])
        .filter { $0.hasSuffix(".btsnoop") }.sorted()
}

@Suite("Recorded captures")
struct FixtureTests {
    @Test("There are captures, each with its note")
    func notes() {
        #expect(Fixtures.names.count >= 4)
        for name in Fixtures.names {
            let note = Fixtures.folder.appendingPathComponent(name.replacingOccurrences(of: ".btsnoop", with: ".md"))
            #expect(FileManager.default.fileExists(atPath: note.path))
        }
    }

    @Test(
        "Each packet is decoded, frames are put together, and PDUs are encoded to the same bytes",
        arguments: Fixtures.names
    )
    func decoded(name: String) throws {
        let bytes = [UInt8](try Data(contentsOf: Fixtures.folder.appendingPathComponent(name)))
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
        #expect(trace.pdus > 20 && trace.violations == 0)
    }
}

/// What a capture holds, layer by layer.
private struct Trace {
    private(set) var unknownCommands: [HCI.Opcode] = []
    private(set) var unknownEvents: [UInt8] = []
    private(set) var pdus = 0
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
                guard frame.channel == .attribute else { return }
                let pdu = [UInt8](copying: frame.payload)
                encoded.append((pdu, recode(pdu) == pdu))
            }
            if case .dropped = outcome { violations += 1 }
            for (pdu, isSame) in encoded {
                pdus += 1
                if !isSame { Issue.record("\(pdu.hexadecimal) is encoded to other bytes") }
            }
        default:
            violations += 1
        }
    }
}

/// Decodes an ATT PDU and encodes it again; nil where it cannot be decoded.
private func recode(_ pdu: [UInt8]) -> [UInt8]? {
    func plain<PDU: ProtocolDataUnit>(_ type: PDU.Type) -> [UInt8]? {
        guard let value = try? PDU(decoding: pdu.rawSpan) else { return nil }
        return PacketBuffer.bytes { value.encode(into: &$0) }
    }
    func borrowing<PDU: ProtocolDataUnit & ~Escapable>(_ type: PDU.Type) -> [UInt8]? {
        guard let value = try? PDU(decoding: pdu.rawSpan) else { return nil }
        return PacketBuffer.bytes { value.encode(into: &$0) }
    }
    return switch pdu.first.flatMap(ATT.Opcode.init(rawValue:)) {
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
