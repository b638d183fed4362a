import BLEATT
import BLEByteCoding
import BLEGATT
import BluetoothTypes
import Testing

/// Responses that the owner drops, because encryption has ended and any device may have sent them.
@Suite("Responses of an unverified server")
struct DroppedResponseTests {
    private static let hashRequest: [UInt8] = [0x08, 1, 0, 0xFF, 0xFF, 0x2A, 0x2B]

    private func makeClient() -> Client {
        let client = Client()
        client.elevatesSecurity = true
        return client
    }

    /// The next request of the client; nil if there is none.
    private func next(_ client: Client) -> [UInt8]? {
        var buffer = PacketBuffer()
        let opcode = client.nextRequest(mtu: 23, into: &buffer)
        #expect((opcode == nil) == buffer.isEmpty)
        return opcode == nil ? nil : [UInt8](copying: buffer.bytes)
    }

    /// Gives the client a response, and returns its next request.
    private func receive(_ response: [UInt8], _ client: Client) -> [UInt8]? {
        var buffer = PacketBuffer()
        let opcode = client.receive(response.rawSpan, mtu: 23, into: &buffer)
        return opcode == nil ? nil : [UInt8](copying: buffer.bytes)
    }

    /// Ends encryption, and makes the server respond.
    private func loseEncryption(_ client: Client) {
        client.isHeld = true
        client.responseWasDropped()
        #expect(next(client) == nil, "nothing is sent")
    }

    private func outputCount(_ client: Client) -> Int {
        var count = 0
        while client.takeOutput() != nil { count += 1 }
        return count
    }

    @Test("The background procedure sends its request again, after the procedures that wait")
    func backgroundProcedureSendsItsRequestAgain() throws {
        let client = makeClient()
        client.validate(nil)
        #expect(next(client) == Self.hashRequest)
        loseEncryption(client)
        let read = client.perform(ReadValue(handle: 3))
        #expect(next(client) == nil && !client.isIdle)
        client.isHeld = false
        #expect(next(client) == [0x0A, 3, 0])
        #expect(receive([0x0B, 7], client) == nil)
        #expect(outputCount(client) == 1)
        #expect(try read.output() == [7])
        #expect(next(client) == Self.hashRequest)
        // The client repeats the request that is in flight by now.
        loseEncryption(client)
        client.isHeld = false
        #expect(next(client) == Self.hashRequest)
        #expect(receive([0x01, 0x08, 1, 0, 0x0A], client)?.first == 0x10)
    }

    @Test("After the database was forgotten, its discovery is not continued, and another one can begin")
    func forgottenDatabaseIsDiscoveredFromTheBeginning() {
        for isResponseDropped in [true, false] {
            let client = makeClient()
            client.validate(nil)
            #expect(next(client) == Self.hashRequest)
            let discovery = receive([0x01, 0x08, 1, 0, 0x0A], client)
            #expect(discovery?.first == 0x10)
            if isResponseDropped { loseEncryption(client) }
            client.forgetDatabase()
            client.isHeld = false
            #expect(next(client) == nil)
            client.validate(nil)
            if isResponseDropped {
                #expect(next(client) == Self.hashRequest)
            } else {
                #expect(next(client) == nil, "the earlier request is in flight")
                #expect(receive([0x01, 0x10, 1, 0, 0x0A], client) == Self.hashRequest)
            }
            #expect(receive([0x01, 0x08, 1, 0, 0x0A], client) == discovery)
        }
    }

    @Test("A procedure waits for security, and sends its request again")
    func procedureWaitsForSecurity() throws {
        let client = makeClient()
        let read = client.perform(ReadValue(handle: 3))
        #expect(next(client) == [0x0A, 3, 0])
        // Encryption ends twice.
        for _ in 0..<2 {
            loseEncryption(client)
            guard case .securityRequired(.insufficientEncryption)? = client.takeOutput() else {
                Issue.record("the owner is not asked for security")
                return
            }
            client.isHeld = false
            var buffer = PacketBuffer()
            #expect(client.securityElevated(.success(()), handle: .invalid, mtu: 23, into: &buffer) == .readRequest)
        }
        #expect(receive([0x0B, 7], client) == nil)
        #expect(try read.output() == [7])
    }

    /// A client that has prepared one of two writes. The second is in flight.
    private func preparing() -> (Client, TypedProcedureRun<PreparedWrites>) {
        let client = makeClient()
        let run = client.perform(PreparedWrites([.init(handle: 3, value: [1]), .init(handle: 4, value: [2])]))
        #expect(next(client)?.first == 0x16)
        #expect(receive([0x17, 3, 0, 0, 0, 1], client)?.first == 0x16)
        return (client, run)
    }

    /// Expects that the prepared writes are cancelled once requests may be sent, before the next procedure.
    private func expectCancellation(_ client: Client) {
        #expect(client.isBusyForCommands && client.isIdle)
        let read = client.perform(ReadValue(handle: 5))
        #expect(next(client) == nil)
        client.isHeld = false
        #expect(next(client) == [0x18, 0x00])
        #expect(next(client) == nil, "the cancellation is in flight")
        #expect(receive([0x19], client) == [0x0A, 5, 0])
        #expect(receive([0x0B, 7], client) == nil)
        #expect(outputCount(client) == 1 && read.hasEnded)
        #expect(!client.isBusyForCommands && client.isIdle)
    }

    @Test func preparedWritesOfACancelledProcedureAreCancelledLater() {
        let (client, run) = preparing()
        client.cancel(run)
        #expect(outputCount(client) == 1)
        loseEncryption(client)
        expectCancellation(client)
    }

    @Test("Prepared writes are cancelled later if the security is not raised", arguments: [true, false])
    func preparedWritesAreCancelledLaterWithoutSecurity(isDeclined: Bool) {
        let (client, run) = preparing()
        loseEncryption(client)
        var buffer = PacketBuffer()
        let opcode =
            isDeclined
            ? client.elevationDeclined(mtu: 23, into: &buffer)
            : client.securityElevated(.failure(.insufficientEncryption), handle: .invalid, mtu: 23, into: &buffer)
        #expect(opcode == nil && buffer.isEmpty, "nothing is sent")
        let error = ClientError.attribute(.insufficientEncryption, handle: .invalid, request: .prepareWriteRequest)
        #expect(throws: error) { try run.output() }
        #expect(outputCount(client) == 2)
        expectCancellation(client)
    }

    @Test func cancelledProcedureWithoutPreparedWritesIsForgotten() {
        let client = makeClient()
        let read = client.perform(ReadValue(handle: 3))
        #expect(next(client) == [0x0A, 3, 0])
        client.cancel(read)
        #expect(outputCount(client) == 1)
        loseEncryption(client)
        #expect(client.isIdle && !client.isBusyForCommands)
        client.isHeld = false
        #expect(next(client) == nil)
    }
}
