import BLEATT
import BLEByteCoding
import BLEGATT
import BluetoothTypes
import Testing

@Suite("Outputs of a client")
struct ClientOutputTests {
    @Test("A learned database is an output once, and not again after Service Changed")
    func learnedDatabaseIsAnOutputOnce() throws {
        let conversation = try Conversation([.genericAttribute])
        conversation.validate()
        #expect(conversation.caches.count == 1 && conversation.cache?.services.count == 1)
        let handle = try #require(conversation.server.serviceChanged)
        for _ in 0..<100 { conversation.client.indicationReceived(from: handle) }
        #expect(conversation.client.takeCaches() == [nil], "said once, though the server says it a hundred times")
    }

    /// Makes the server refuse a read because of insufficient security, with `handle` in the Error Response.
    private func makeRefused(_ client: Client) -> TypedProcedureRun<ReadValue> {
        let run = client.perform(ReadValue(handle: 3))
        var buffer = PacketBuffer()
        #expect(client.nextRequest(mtu: 23, into: &buffer) == .readRequest)
        buffer.reset()
        #expect(client.receive([0x01, 0x0A, 3, 0, 0x0F].rawSpan, mtu: 23, into: &buffer) == nil)
        return run
    }

    private func isEmpty(_ client: Client) -> Bool {
        if case nil = client.takeOutput() { true } else { false }
    }

    /// Takes the next output, which is the end of a procedure.
    private func takeEnded(_ client: Client) -> ProcedureRun? {
        if case .ended(let run)? = client.takeOutput() { run } else { nil }
    }

    @Test("A refusal for insufficient security is an output once, and the request is sent again")
    func insufficientSecurityIsAnOutputOnceAndTheRequestIsRepeated() {
        let client = Client()
        client.elevatesSecurity = true
        let run = makeRefused(client)
        #expect(client.isElevating && client.isBusyForCommands && run.outcome == nil)
        guard case .securityRequired(.insufficientEncryption)? = client.takeOutput() else {
            Issue.record("the owner is not asked")
            return
        }
        #expect(client.takeCaches().isEmpty)
        var buffer = PacketBuffer()
        #expect(client.securityElevated(.success(()), handle: .invalid, mtu: 23, into: &buffer) == .readRequest)
        #expect([UInt8](copying: buffer.bytes) == [0x0A, 3, 0])
        buffer.reset()
        #expect(client.receive([0x01, 0x0A, 3, 0, 0x0F].rawSpan, mtu: 23, into: &buffer) == nil)
        #expect(run.outcome == .failure(.attribute(.insufficientEncryption, handle: 3, request: .readRequest)))
        #expect(takeEnded(client) === run)
        #expect(client.takeCaches().isEmpty, "the owner is asked once")
    }

    @Test("A procedure whose elevation is declined ends with the server's refusal")
    func declinedElevationEndsTheProcedureWithTheRefusal() {
        let client = Client()
        client.elevatesSecurity = true
        let run = makeRefused(client)
        var buffer = PacketBuffer()
        #expect(client.elevationDeclined(mtu: 23, into: &buffer) == nil && buffer.isEmpty)
        #expect(!client.isElevating && client.isIdle)
        #expect(takeEnded(client) == nil, "the refusal itself was put out before")
        #expect(takeEnded(client) === run)
        #expect(run.outcome == .failure(.attribute(.insufficientEncryption, handle: 3, request: .readRequest)))
        #expect(client.elevationDeclined(mtu: 23, into: &buffer) == nil, "nothing waits any more")
    }

    @Test("Refused procedures name their own requests, sent or not")
    func refusedProceduresNameTheirOwnRequests() {
        let client = Client()
        client.elevatesSecurity = true
        let sent = client.perform(ReadLongValue(handle: 3))
        var buffer = PacketBuffer()
        #expect(client.nextRequest(mtu: 23, into: &buffer) == .readRequest)
        buffer.reset()
        let part: [UInt8] = [0x0B] + [UInt8](repeating: 7, count: 22)
        #expect(client.receive(part.rawSpan, mtu: 23, into: &buffer) == .readBlobRequest)
        let queued = client.perform(WriteValue(handle: 4, value: [1]))
        let cancelled = client.perform(WriteValue(handle: 4, value: [2]))
        client.cancel(cancelled)
        #expect(takeEnded(client) === cancelled)
        client.refuseProcedures(.insufficientEncryption)
        #expect(takeEnded(client) === sent)
        #expect(takeEnded(client) === queued)
        #expect(isEmpty(client))
        let refusal = { (request: ATTOpcode) in
            ClientError.attribute(.insufficientEncryption, handle: .invalid, request: request)
        }
        #expect(throws: refusal(.readBlobRequest)) { try sent.output() }
        #expect(throws: refusal(.writeRequest)) { try queued.output() }
        #expect(throws: ClientError.cancelled) { try cancelled.output() }
    }

    @Test("Writes that were prepared are cancelled if their procedure ends during the elevation", arguments: 0..<3)
    func preparedWritesAreCancelledAfterAnElevation(ending: Int) {
        let client = Client()
        client.elevatesSecurity = true
        let run = client.perform(PreparedWrites([.init(handle: 3, value: [1]), .init(handle: 4, value: [2])]))
        var buffer = PacketBuffer()
        #expect(client.nextRequest(mtu: 23, into: &buffer) == .prepareWriteRequest)
        buffer.reset()
        #expect(client.receive([0x17, 3, 0, 0, 0, 1].rawSpan, mtu: 23, into: &buffer) == .prepareWriteRequest)
        buffer.reset()
        #expect(client.receive([0x01, 0x16, 4, 0, 0x05].rawSpan, mtu: 23, into: &buffer) == nil)
        #expect(client.isElevating && client.isPreparingWrite)
        if ending == 2 { client.refuseProcedures(.insufficientAuthentication) } else { client.cancel(run) }
        let opcode =
            switch ending {
            case 0: client.securityElevated(.success(()), handle: 4, mtu: 23, into: &buffer)
            default: client.elevationDeclined(mtu: 23, into: &buffer)
            }
        #expect(opcode == .executeWriteRequest && [UInt8](copying: buffer.bytes) == [0x18, 0x00])
        buffer.reset()
        #expect(client.receive([0x19].rawSpan, mtu: 23, into: &buffer) == nil)
        #expect(!client.isBusyForCommands && client.isIdle)
    }

    @Test("A response that was sent before ATT_MTU grew is not taken for the end of the value")
    func valueIsReadToItsEndAlthoughTheMTUGrows() throws {
        let client = Client()
        let run = client.perform(ReadLongValue(handle: 3))
        var buffer = PacketBuffer()
        #expect(client.nextRequest(mtu: 23, into: &buffer) == .readRequest)
        buffer.reset()
        let part = [UInt8](repeating: 7, count: 22)
        #expect(client.receive(([0x0B] + part).rawSpan, mtu: 517, into: &buffer) == .readBlobRequest)
        #expect([UInt8](copying: buffer.bytes) == [0x0C, 3, 0, 22, 0])
        buffer.reset()
        #expect(client.receive([0x0D, 8].rawSpan, mtu: 517, into: &buffer) == nil)
        #expect(try run.output() == part + [8])
    }

    @Test("A client without elevation ends the procedure at once, without an output for it")
    func procedureEndsAtOnceWithoutElevation() {
        let client = Client()
        let run = makeRefused(client)
        #expect(takeEnded(client) === run)
        #expect(client.takeCaches().isEmpty && client.isIdle)
        #expect(run.outcome == .failure(.attribute(.insufficientEncryption, handle: 3, request: .readRequest)))
    }

    @Test("The end of a procedure is an output before the next one starts")
    func endPrecedesNextRequest() throws {
        let client = Client()
        let runs = (3...4).map { client.perform(ReadValue(handle: AttributeHandle(rawValue: $0))) }
        var buffer = PacketBuffer()
        #expect(client.nextRequest(mtu: 23, into: &buffer) == .readRequest)
        buffer.reset()
        #expect(client.receive([0x0B, 7].rawSpan, mtu: 23, into: &buffer) == nil)
        #expect(client.nextRequest(mtu: 23, into: &buffer) == nil && buffer.isEmpty, "the output comes first")
        #expect(client.isBusyForCommands, "a command does not overtake the second read")
        #expect(takeEnded(client) === runs[0])
        #expect(isEmpty(client))
        #expect(client.nextRequest(mtu: 23, into: &buffer) == .readRequest)
        #expect([UInt8](copying: buffer.bytes) == [0x0A, 4, 0])
        #expect(try runs[0].output() == [7] && !runs[1].hasEnded)
    }

    @Test("Procedures that end without a request are outputs one after the other, in order")
    func proceduresWithoutARequestEndOneAfterTheOther() {
        let client = Client()
        let runs = (0..<3).map { _ in client.perform(ReadMultipleValues(handles: [])) }
        var buffer = PacketBuffer()
        for run in runs {
            #expect(client.nextRequest(mtu: 23, into: &buffer) == nil)
            #expect(takeEnded(client) === run && run.outcome == .failure(.invalidArgument))
            #expect(isEmpty(client))
        }
        #expect(client.isIdle && buffer.isEmpty)
    }

    @Test("A cancelled procedure is an output once; its late response is ignored")
    func cancelledProcedureIsAnOutputOnceAndItsResponseIsIgnored() {
        let client = Client()
        let runs = (3...5).map { client.perform(ReadValue(handle: AttributeHandle(rawValue: $0))) }
        var buffer = PacketBuffer()
        #expect(client.nextRequest(mtu: 23, into: &buffer) == .readRequest)
        client.cancel(runs[1])
        client.cancel(runs[0])
        client.cancel(runs[0])
        runs[2].cancel()
        #expect(takeEnded(client) === runs[1])
        #expect(takeEnded(client) === runs[0])
        #expect(isEmpty(client))
        buffer.reset()
        #expect(client.receive([0x0B, 7].rawSpan, mtu: 23, into: &buffer) == nil)
        #expect(takeEnded(client) === runs[2], "a run that was cancelled by itself is not started")
        #expect(isEmpty(client) && client.isIdle && buffer.isEmpty)
        for run in runs { #expect(run.outcome == .failure(.cancelled)) }
    }

    @Test("A procedure whose attributes have changed ends in that error, and a waiting one is not started")
    func procedureWhoseAttributesHaveChangedEnds() {
        let client = Client()
        let runs = (3...5).map { client.perform(ReadValue(handle: AttributeHandle(rawValue: $0))) }
        var buffer = PacketBuffer()
        #expect(client.nextRequest(mtu: 23, into: &buffer) == .readRequest)
        for run in runs.prefix(2) {
            client.cancel(run, with: .attributesChanged)
            #expect(takeEnded(client) === run && run.outcome == .failure(.attributesChanged))
        }
        buffer.reset()
        #expect(client.receive([0x0B, 7].rawSpan, mtu: 23, into: &buffer) == .readRequest)
        #expect([UInt8](copying: buffer.bytes) == [0x0A, 5, 0])
        #expect(isEmpty(client))
    }

    @Test("A closed client outputs the ends of its procedures in order, and of later ones")
    func closedClientOutputsTheEndsOfItsProceduresInOrder() {
        let client = Client()
        let runs = (3...5).map { client.perform(ReadValue(handle: AttributeHandle(rawValue: $0))) }
        var buffer = PacketBuffer()
        _ = client.nextRequest(mtu: 23, into: &buffer)
        client.close()
        let late = client.perform(ReadValue(handle: 6))
        for run in runs + [late] {
            #expect(takeEnded(client) === run && run.outcome == .failure(.bearerClosed))
        }
        #expect(isEmpty(client))
    }

    @Test("Discovering the database for the cache outputs no end; Database Out Of Sync outputs the change first")
    func validationOutputsNoEndAndOutOfSyncOutputsTheChangeFirst() throws {
        let conversation = try Conversation([.genericAttribute])
        conversation.onEnd = { _ in Issue.record("the background procedure is the client's own") }
        conversation.validate()
        conversation.onEnd = nil
        let client = conversation.client
        let read = client.perform(ReadValue(handle: 3))
        var buffer = PacketBuffer()
        #expect(client.nextRequest(mtu: 64, into: &buffer) == .readRequest)
        buffer.reset()
        #expect(client.receive([0x01, 0x0A, 3, 0, 0x12].rawSpan, mtu: 64, into: &buffer) == nil)
        guard case .cacheChanged(nil)? = client.takeOutput() else {
            Issue.record("the cache is still kept")
            return
        }
        #expect(takeEnded(client) === read)
        #expect(client.nextRequest(mtu: 64, into: &buffer) == .readByTypeRequest, "the hash")
    }
}
