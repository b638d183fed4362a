import BLEATT
import BLEByteCoding
import BluetoothTypes
import Testing

@testable import BLEGATT

/// A server on a raw ATT bearer.
private struct RawServer {
    let server = Server(cmac: nil)
    let session: ServerSession
    var bearer: Bearer

    init(_ definitions: [ServiceDefinition], mtu: Int) throws {
        session = ServerSession(server: server)
        bearer = Bearer(offeredMTU: mtu)
        _ = try server.publish(definitions)
    }

    /// The server's answer to a PDU; empty if there is none.
    mutating func answer(_ pdu: [UInt8]) -> [UInt8] {
        var buffer = PacketBuffer()
        switch bearer.receive(pdu.rawSpan) {
        case .request(.exchangeMTURequest):
            bearer.responseWillBeSent()
            guard let request = try? ExchangeMTURequest(decoding: pdu.rawSpan) else { return [] }
            session.mtu = bearer.exchangeMTU(peer: request.clientReceiveMTU)
            ExchangeMTUResponse(serverReceiveMTU: UInt16(bearer.offeredMTU)).encode(into: &buffer)
        case .request, .command:
            if session.receive(pdu.rawSpan, into: &buffer) == .respond { bearer.responseWillBeSent() }
        default: break
        }
        return [UInt8](copying: buffer.bytes)
    }

    mutating func perform(_ operation: ConformanceFile.Operation) throws -> [UInt8] {
        var buffer = PacketBuffer()
        let handle = AttributeHandle(conformance: operation.handle ?? "")
        let value = [UInt8](hexadecimal: operation.valueHex ?? "") ?? []
        switch operation.op {
        case "server_send_notification":
            guard session.configuration(of: handle).contains(.notification) else { return [] }
            session.notify(value.rawSpan, of: handle, into: &buffer)
        case "server_send_indication":
            guard session.configuration(of: handle).contains(.indication) else { return [] }
            try bearer.indicationWillBeSent(at: Instant(nanoseconds: 0))
            session.indicate(value.rawSpan, of: handle, into: &buffer)
        default:
            Issue.record("unknown operation \(operation.op)")
        }
        return [UInt8](copying: buffer.bytes)
    }
}

@Suite("GATT server against exchanges of the SIG's test purposes", .enabled(if: ConformanceFile.isExpected))
struct ServerConformanceTests {
    @Test("Each PDU is answered byte for byte", arguments: ConformanceFile.serverCases)
    func serverAnswersEachPDUByteForByte(of testCase: ConformanceFile.Case) throws {
        let file = try #require(ConformanceFile.shared)
        let database = try #require(testCase.database.flatMap { file.databases[$0] })
        var server = try RawServer(database.definitions, mtu: testCase.iutMtu)
        var answer: [UInt8] = []
        for pdu in testCase.pdus {
            if pdu.action == "invoke_operation" {
                answer = try server.perform(#require(testCase.operation))
            } else if pdu.isToTester {
                #expect(answer.hexadecimal == pdu.bytes.hexadecimal)
                answer = []
            } else {
                #expect(answer.isEmpty, "an answer that is not in the exchange")
                answer = server.answer(pdu.bytes)
            }
        }
        #expect(answer.isEmpty, "an answer after the end of the exchange")
    }

    @Test("The hash input of a database up to the last handle contains that handle")
    func hashInputContainsTheLastHandle() throws {
        let file = try #require(ConformanceFile.shared)
        var database = AttributeDatabase()
        _ = try database.publish(#require(file.databases["ts_tail_db"]).definitions)
        let input = database.hashInput
        // The last characteristic's declaration: handle 0xFFFE, type, properties, value handle 0xFFFF, Appearance.
        #expect(input.suffix(9).elementsEqual([0xFE, 0xFF, 0x03, 0x28, 0x02, 0xFF, 0xFF, 0x01, 0x2A]))
        #expect(input.prefix(6).elementsEqual([0x01, 0x00, 0x00, 0x28, 0x0A, 0x18]))
    }
}
