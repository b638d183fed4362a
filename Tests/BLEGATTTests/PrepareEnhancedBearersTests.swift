import BLEATT
import BLEByteCoding
import BLEGATT
import BluetoothTypes
import Testing

@Suite("The client's preparation of enhanced bearers")
struct PrepareEnhancedBearersTests {
    private static let readServerFeatures: [UInt8] = [0x08, 1, 0, 0xFF, 0xFF, 0x3A, 0x2B]
    private static let readClientFeatures: [UInt8] = [0x08, 1, 0, 0xFF, 0xFF, 0x29, 0x2B]

    /// Runs the procedure against a server's responses.
    private func run(_ responses: [[UInt8]]) -> (requests: [[UInt8]], outcome: Result<Bool, ClientError>) {
        let client = Client()
        let run = client.perform(PrepareEnhancedBearers())
        var requests: [[UInt8]] = []
        var buffer = PacketBuffer()
        var opcode = client.nextRequest(mtu: 23, into: &buffer)
        for response in responses where opcode != nil {
            requests.append([UInt8](copying: buffer.bytes))
            buffer = PacketBuffer()
            opcode = client.receive(response.rawSpan, mtu: 23, into: &buffer)
        }
        if opcode != nil { requests.append([UInt8](copying: buffer.bytes)) }
        do throws(ClientError) {
            return (requests, .success(try run.output()))
        } catch {
            return (requests, .failure(error))
        }
    }

    @Test func featuresAreAddedToThoseThatTheServerHas() {
        let result = run([[0x09, 3, 12, 0, 0x01], [0x09, 3, 9, 0, 0x01], [0x13]])
        #expect(result.requests == [Self.readServerFeatures, Self.readClientFeatures, [0x12, 9, 0, 0x07]])
        #expect(result.outcome == .success(true))
    }

    @Test func featuresThatTheServerHasAreNotWrittenAgain() {
        let result = run([[0x09, 3, 12, 0, 0x01], [0x09, 3, 9, 0, 0x07]])
        #expect(result.requests == [Self.readServerFeatures, Self.readClientFeatures])
        #expect(result.outcome == .success(true))
    }

    @Test(
        "A server that does not report enhanced bearers is asked nothing more",
        arguments: [[0x09, 3, 12, 0, 0x00], [0x09, 3, 12, 0, 0xFE], [0x09, 2, 12, 0], [0x01, 0x08, 1, 0, 0x0A]]
            as [[UInt8]]
    )
    func serverWithoutTheFeatureIsAskedNothingMore(response: [UInt8]) {
        let result = run([response])
        #expect(result.requests == [Self.readServerFeatures])
        #expect(result.outcome == .success(false))
    }

    @Test func serverThatRefusesTheWriteIsAskedForChannelsNevertheless() {
        let result = run([[0x09, 3, 12, 0, 0x01], [0x09, 3, 9, 0, 0x00], [0x01, 0x12, 9, 0, 0x03]])
        #expect(result.outcome == .success(true))
    }

    @Test(arguments: [[0x09], [0x09, 3], [0x09, 0, 1], [0x09, 3, 12]] as [[UInt8]])
    func malformedResponseIsAnError(response: [UInt8]) {
        #expect(run([response]).outcome == .failure(.malformedResponse(.readByTypeRequest)))
    }

    @Test func databaseOutOfSyncIsAnError() {
        let result = run([[0x01, 0x08, 0, 0, 0x12]])
        #expect(
            result.outcome
                == .failure(.attribute(.databaseOutOfSync, handle: .invalid, request: .readByTypeRequest))
        )
    }
}
