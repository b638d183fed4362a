import BLEATT
import BLEGATT
import BLEHCI
import BLEL2CAP
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("Enhanced bearers that the client opens")
struct EnhancedBearerClientTests {
    /// Makes the client open bearers. The server has Client Supported Features at handle 9 and accepts all channels.
    ///
    /// - Returns: a fixture whose bearer 0 has the host's endpoint 0x0040.
    private func open(
        _ role: BLEHCI.Role = .central,
        limit: Int = 2,
        credits: UInt8 = 10
    ) throws -> EnhancedBearerFixture {
        let fixture = try EnhancedBearerFixture(role, limit: limit)
        prepare(fixture)
        _ = fixture.security.exchange([0x13])
        let destinations = (0..<limit).flatMap { [EnhancedBearerFixture.firstSource + UInt8($0), 0] as [UInt8] }
        let identifier = try #require(fixture.signaling.first?[1])
        fixture.send(
            [0x18, identifier, UInt8(8 + destinations.count), 0, 100, 0, 102, 0, credits, 0, 0, 0] + destinations,
            on: 5
        )
        return fixture
    }

    /// Makes the server answer the client until it writes Client Supported Features.
    @discardableResult
    private func prepare(_ fixture: EnhancedBearerFixture) -> [[UInt8]] {
        let link = fixture.link
        _ = try? fixture.run { try $0.openEnhancedBearers(on: link) }
        _ = fixture.security.exchange([0x09, 3, 12, 0, 0x01])
        return fixture.security.exchange([0x09, 3, 9, 0, 0x01])
    }

    private func read(_ handle: UInt16, _ fixture: EnhancedBearerFixture) -> Recorder<Result<[UInt8], any Error>> {
        let link = fixture.link
        return fixture.security.start { host in
            let handle = AttributeHandle(handle)
            return try await host.perform(ReadValue(handle: handle), on: link, characteristic: handle)
        }
    }

    private func write(_ handle: UInt16, _ value: UInt8, _ fixture: EnhancedBearerFixture) {
        let link = fixture.link
        _ = fixture.security.start { host in
            let handle = AttributeHandle(handle)
            try await host.perform(WriteValue(handle: handle, value: [value]), on: link, characteristic: handle)
        }
    }

    @Test func clientReadsAndReportsFeaturesAndThenRequestsChannels() throws {
        let fixture = try EnhancedBearerFixture(.central, limit: 2)
        let link = fixture.link
        fixture.security.controller.forgetData()
        try fixture.run { try $0.openEnhancedBearers(on: link) }
        #expect(fixture.sentOnFixedChannel == [[0x08, 1, 0, 0xFF, 0xFF, 0x3A, 0x2B]])
        #expect(fixture.security.exchange([0x09, 3, 12, 0, 0x01]) == [[0x08, 1, 0, 0xFF, 0xFF, 0x29, 0x2B]])
        // The bit for robust caching stays.
        #expect(fixture.security.exchange([0x09, 3, 9, 0, 0x01]) == [[0x12, 9, 0, 0x07]])
        _ = fixture.security.exchange([0x13])
        let request: [UInt8] = [0x17, 1, 12, 0, 0x27, 0, 0x05, 0x02, 0x07, 0x02, 7, 0, 0x40, 0, 0x41, 0]
        #expect(fixture.signaling == [request])
    }

    @Test func serverWithoutEnhancedBearersIsAskedForNone() throws {
        for answer: [UInt8] in [[0x09, 3, 12, 0, 0x00], [0x01, 0x08, 1, 0, 0x0A]] {
            let fixture = try EnhancedBearerFixture(.central)
            let link = fixture.link
            try fixture.run { try $0.openEnhancedBearers(on: link) }
            #expect(fixture.security.exchange(answer).isEmpty)
            #expect(fixture.signaling.isEmpty)
        }
    }

    @Test func nothingIsSentBeforeTheLinkIsEncrypted() throws {
        let fixture = try EnhancedBearerFixture(.central, isEncrypted: false)
        let link = fixture.link
        fixture.security.controller.forgetData()
        try fixture.run { try $0.openEnhancedBearers(on: link) }
        #expect(fixture.security.controller.data.isEmpty)
    }

    @Test func proceduresOfDifferentCharacteristicsRunAtTheSameTime() throws {
        let fixture = try open()
        #expect(try fixture.bearerMTUs == [100, 100])
        fixture.security.controller.forgetData()
        let reads = [read(20, fixture), read(30, fixture), read(40, fixture), read(50, fixture)]
        #expect(fixture.sentOnFixedChannel == [[0x0A, 20, 0]])
        #expect(fixture.sent(on: 0) == [[0x0A, 30, 0]])
        #expect(fixture.sent(on: 1) == [[0x0A, 40, 0]])
        #expect(fixture.exchange([0x0B, 4], on: 1).isEmpty)
        #expect(fixture.exchange([0x0B, 3], on: 0).isEmpty)
        // The fourth was assigned to the fixed channel, and starts after the first.
        #expect(fixture.security.exchange([0x0B, 2]) == [[0x0A, 50, 0]])
        _ = fixture.security.exchange([0x0B, 5])
        #expect(try reads.map { try $0.all.first?.get() } == [[2], [3], [4], [5]])
    }

    @Test func proceduresOfOneCharacteristicKeepTheirOrder() throws {
        let fixture = try open()
        _ = read(20, fixture)
        fixture.security.controller.forgetData()
        write(30, 1, fixture)
        write(30, 2, fixture)
        _ = read(30, fixture)
        #expect(fixture.sent(on: 0) == [[0x12, 30, 0, 1]])
        #expect(fixture.exchange([0x13], on: 0) == [[0x12, 30, 0, 2]])
        #expect(fixture.exchange([0x13], on: 0) == [[0x0A, 30, 0]])
        #expect(fixture.sent(on: 1).isEmpty)
    }

    @Test func proceduresAfterACommandStayOnTheFixedChannelUntilOneIsAnswered() throws {
        let fixture = try open()
        let link = fixture.link
        _ = read(20, fixture)
        try fixture.run { $0.beginWriteWithoutResponse([2], to: 60, on: link) { _ in } }
        fixture.security.controller.forgetData()
        _ = read(30, fixture)
        #expect(fixture.security.controller.data.isEmpty)
        // This answers a request before the command.
        #expect(fixture.security.exchange([0x0B, 1]) == [[0x0A, 30, 0]])
        fixture.security.controller.forgetData()
        _ = read(40, fixture)
        #expect(fixture.security.controller.data.isEmpty)
        #expect(fixture.security.exchange([0x0B, 1]) == [[0x0A, 40, 0]])
        fixture.security.controller.forgetData()
        _ = read(50, fixture)
        #expect(fixture.sent(on: 0) == [[0x0A, 50, 0]])
    }

    @Test func commandWaitsForProceduresOfItsCharacteristicAndKeepsLaterOnesOnTheFixedChannel() throws {
        let fixture = try open()
        let link = fixture.link
        _ = read(20, fixture)
        fixture.security.controller.forgetData()
        write(30, 1, fixture)
        #expect(fixture.sent(on: 0) == [[0x12, 30, 0, 1]])
        try fixture.run { $0.beginWriteWithoutResponse([2], to: 30, on: link) { _ in } }
        write(30, 3, fixture)
        #expect(fixture.sentOnFixedChannel.isEmpty)
        #expect(fixture.exchange([0x13], on: 0).isEmpty)
        #expect(fixture.sentOnFixedChannel == [[0x52, 30, 0, 2]])
        #expect(fixture.security.exchange([0x0B, 1]) == [[0x12, 30, 0, 3]])
    }

    @Test("A procedure of several characteristics waits for their procedures, and later ones follow it")
    func procedureOfSeveralCharacteristicsKeepsTheOrder() throws {
        let fixture = try open()
        let link = fixture.link
        _ = read(20, fixture)
        fixture.security.controller.forgetData()
        write(30, 1, fixture)
        #expect(fixture.sent(on: 0) == [[0x12, 30, 0, 1]])
        _ = fixture.security.start { host in
            try await host.finish(
                TypedProcedureRun(ReadMultipleVariableValues(handles: [30, 40])),
                on: link,
                characteristics: [30, 40]
            )
        }
        write(40, 2, fixture)
        #expect(fixture.security.exchange([0x0B, 1]).isEmpty, "the write on the enhanced bearer is not answered")
        #expect(fixture.exchange([0x13], on: 0).isEmpty)
        #expect(fixture.sentOnFixedChannel == [[0x20, 30, 0, 40, 0]])
        #expect(fixture.sent(on: 1).isEmpty)
        #expect(fixture.security.exchange([0x21, 1, 0, 5, 1, 0, 6]) == [[0x12, 40, 0, 2]])
        _ = fixture.security.exchange([0x13])
        fixture.security.controller.forgetData()
        _ = read(50, fixture)
        write(40, 3, fixture)
        #expect(fixture.sent(on: 0) == [[0x12, 40, 0, 3]], "the characteristic is free again")
    }

    @Test("The end of a procedure that needed no request does not show that the server has received a command")
    func procedureWithoutARequestShowsNothing() throws {
        let fixture = try open()
        let link = fixture.link
        try fixture.run { $0.beginWriteWithoutResponse([2], to: 60, on: link) { _ in } }
        // Without a value, it is finished before a request.
        _ = fixture.security.start { try await $0.perform(PreparedWrites([]), on: link) }
        fixture.security.controller.forgetData()
        _ = read(30, fixture)
        #expect(fixture.sentOnFixedChannel == [[0x0A, 30, 0]])
        _ = read(40, fixture)
        #expect(fixture.sent(on: 0).isEmpty && fixture.sent(on: 1).isEmpty)
        #expect(fixture.security.exchange([0x0B, 1]) == [[0x0A, 40, 0]])
        fixture.security.controller.forgetData()
        _ = read(50, fixture)
        #expect(fixture.sent(on: 0) == [[0x0A, 50, 0]])
    }

    @Test func discoveryStaysOnTheFixedChannel() throws {
        let fixture = try open()
        let link = fixture.link
        _ = read(20, fixture)
        fixture.security.controller.forgetData()
        _ = fixture.security.start { try await $0.perform(DiscoverServices(), on: link) }
        #expect(fixture.security.controller.data.isEmpty)
    }

    @Test func unansweredRequestEndsItsBearerAndMovesWhatWaitsBehindIt() throws {
        let fixture = try open()
        _ = read(20, fixture)
        let first = read(30, fixture)
        let second = read(30, fixture)
        _ = fixture.security.exchange([0x0B, 1])
        fixture.security.advance(.seconds(29))
        #expect(first.all.isEmpty)
        fixture.security.controller.forgetData()
        fixture.security.advance(.seconds(2))
        #expect(throws: HostError.timedOut) { try first.all.first?.get() }
        #expect(fixture.signaling.map { Array($0.dropFirst(2)) } == [[4, 0, 0x41, 0, 0x40, 0]])
        #expect(fixture.sentOnFixedChannel == [[0x0A, 30, 0]])
        _ = fixture.security.exchange([0x0B, 9])
        #expect(try second.all.first?.get() == [9])
        #expect(try fixture.bearerMTUs == [100])
    }

    @Test func peerThatEndsABearerFailsTheProcedureInFlight() throws {
        let fixture = try open()
        _ = read(20, fixture)
        let first = read(30, fixture)
        fixture.send([0x06, 5, 4, 0, 0x40, 0, 0x41, 0], on: 5)
        #expect(throws: HostError.channel(.ended(.byPeer))) { try first.all.first?.get() }
        #expect(try fixture.bearerMTUs == [100])
    }

    @Test func requestWaitsForCreditsOfThePeerAndTimesOutWithoutThem() throws {
        let fixture = try open(limit: 1, credits: 1)
        _ = read(20, fixture)
        _ = read(30, fixture)
        _ = fixture.exchange([0x0B, 1])
        fixture.security.controller.forgetData()
        let starved = read(30, fixture)
        #expect(fixture.sent(on: 0).isEmpty)
        // One credit for the channel.
        fixture.send([0x16, 7, 4, 0, 0x41, 0, 1, 0], on: 5)
        #expect(fixture.sent(on: 0) == [[0x0A, 30, 0]])
        _ = fixture.exchange([0x0B, 8])
        #expect(try starved.all.first?.get() == [8])
        let lost = read(30, fixture)
        _ = fixture.security.exchange([0x0B, 1])
        fixture.security.advance(.seconds(31))
        #expect(throws: HostError.timedOut) { try lost.all.first?.get() }
    }

    @Test func cancelledProcedureLeavesItsBearerUsable() throws {
        let fixture = try open()
        let link = fixture.link
        _ = read(20, fixture)
        let run = TypedProcedureRun(ReadValue(handle: 30))
        nonisolated(unsafe) let shared = run
        let ends = Recorder<Bool>()
        try fixture.run { host in
            host.submit(
                ProcedureCall(
                    run: shared,
                    link: link,
                    caller: .callback { _ in ends.append(true) },
                    characteristic: 30
                )
            )
        }
        fixture.security.controller.forgetData()
        try fixture.run { $0.cancel(shared, on: link) }
        #expect(ends.all == [true])
        let next = read(30, fixture)
        #expect(fixture.exchange([0x0B, 1], on: 0) == [[0x0A, 30, 0]])
        _ = fixture.exchange([0x0B, 2], on: 0)
        #expect(try next.all.first?.get() == [2])
    }

    /// Submits a write of [1] to the value with handle 30, and cancels it.
    private func cancelWrite(_ fixture: EnhancedBearerFixture) throws {
        let link = fixture.link
        nonisolated(unsafe) let run = TypedProcedureRun(WriteValue(handle: 30, value: [1]))
        try fixture.run { host in
            host.submit(
                ProcedureCall(run: run, link: link, caller: .callback { _ in }, characteristic: 30)
            )
        }
        try fixture.run { $0.cancel(run, on: link) }
    }

    @Test func callsAfterACancelledWriteWaitUntilTheServerHasAnsweredIt() throws {
        let fixture = try open()
        let link = fixture.link
        _ = read(20, fixture)
        try cancelWrite(fixture)
        #expect(fixture.sent(on: 0) == [[0x12, 30, 0, 1]])
        _ = fixture.security.exchange([0x0B, 1])
        fixture.security.controller.forgetData()
        try fixture.run { $0.beginWriteWithoutResponse([2], to: 30, on: link) { _ in } }
        write(30, 3, fixture)
        #expect(fixture.security.controller.data.isEmpty)
        #expect(fixture.exchange([0x13], on: 0).isEmpty)
        #expect(fixture.sentOnFixedChannel == [[0x52, 30, 0, 2], [0x12, 30, 0, 3]])
    }

    @Test func callsAfterAWriteCancelledOnTheFixedChannelStayThere() throws {
        let fixture = try open()
        fixture.security.controller.forgetData()
        try cancelWrite(fixture)
        #expect(fixture.sentOnFixedChannel == [[0x12, 30, 0, 1]])
        _ = read(20, fixture)
        fixture.security.controller.forgetData()
        write(30, 2, fixture)
        #expect(fixture.security.controller.data.isEmpty)
        #expect(fixture.security.exchange([0x13]) == [[0x0A, 20, 0]])
        #expect(fixture.security.exchange([0x0B, 1]) == [[0x12, 30, 0, 2]])
    }

    @Test func failedElevationEndsOnlyTheProceduresThatWereRefusedForTheSameReason() throws {
        let fixture = try open()
        let reads = [read(20, fixture), read(30, fixture), read(40, fixture)]
        _ = fixture.security.exchange([0x01, 0x0A, 20, 0, 0x05])
        _ = fixture.exchange([0x01, 0x0A, 30, 0, 0x0C], on: 0)
        _ = fixture.exchange([0x01, 0x0A, 40, 0, 0x05], on: 1)
        let link = fixture.link
        var ended: [Int] { reads.indices.filter { !reads[$0].all.isEmpty } }
        #expect(ended == [])
        try fixture.run { host in
            host.securityElevated(.failure(.cancelled), .encryptionKeySizeTooShort, on: link)
            host.endInput()
        }
        fixture.security.advance(.milliseconds(1))
        #expect(ended == [1])
        try fixture.run { host in
            host.securityElevated(.failure(.cancelled), .insufficientAuthentication, on: link)
            host.endInput()
        }
        fixture.security.advance(.milliseconds(1))
        #expect(ended == [0, 1, 2])
    }

    @Test func endOfEncryptionEndsTheBearers() throws {
        let fixture = try open()
        _ = read(20, fixture)
        let first = read(30, fixture)
        let second = read(30, fixture)
        fixture.security.controller.forgetData()
        let link = fixture.link
        try fixture.run { host in
            host.setEncrypted(false)
            if let link = host.links[link] { host.linkSecurityChanged(of: link) }
            host.endInput()
        }
        #expect(throws: HostError.channel(.ended(.byUs))) { try first.all.first?.get() }
        #expect(try fixture.bearerMTUs.isEmpty)
        #expect(fixture.security.exchange([0x0B, 1]) == [[0x0A, 30, 0]])
        _ = fixture.security.exchange([0x0B, 9])
        #expect(try second.all.first?.get() == [9])
    }

    @Test func valuesAreDeliveredFromAnyBearerAndIndicationsConfirmedThere() throws {
        let fixture = try open()
        let link = fixture.link
        let values = Recorder<String>()
        try fixture.run { host in
            for handle: AttributeHandle in [20, 30] {
                _ = try host.addSubscriber(of: handle, on: link) { value in
                    values.append("\(value.handle.rawValue) \(value.value) \(value.isIndication)")
                }
            }
        }
        #expect(fixture.exchange([0x1B, 20, 0, 1], on: 0).isEmpty)
        #expect(fixture.exchange([0x1D, 20, 0, 2], on: 1) == [[0x1E]])
        #expect(fixture.exchange([0x23, 30, 0, 1, 0, 3, 20, 0, 2, 0, 4, 5], on: 0).isEmpty)
        #expect(values.all == ["20 [1] false", "20 [2] true", "30 [3] false", "20 [4, 5] false"])
    }

    @Test func linkThatEndsEndsTheProceduresOfAllBearers() throws {
        let fixture = try open()
        let reads = [read(20, fixture), read(30, fixture), read(30, fixture), read(40, fixture)]
        fixture.security.disconnected(.connectionTimeout)
        for read in reads {
            #expect(throws: HostError.disconnected(.controller(.connectionTimeout))) { try read.all.first?.get() }
        }
        let inspection = try fixture.run { $0.inspect() }
        #expect(inspection.calls == 0 && inspection.channelObservers == 0)
        #expect(try fixture.run { $0.contradiction() } == nil)
    }

    // MARK: Collisions

    @Test func centralKeepsItsRequestWhenBothDevicesRequestChannels() throws {
        let fixture = try EnhancedBearerFixture(.central, limit: 2)
        prepare(fixture)
        _ = fixture.security.exchange([0x13])
        let refusal: [UInt8] = [0x18, 9, 12, 0, 0x05, 0x02, 0x07, 0x02, 0, 0, 0x04, 0, 0, 0, 0, 0]
        #expect(fixture.peerOpens(2, identifier: 9) == refusal)
    }

    @Test func peripheralGivesWayWhenBothDevicesRequestChannels() throws {
        let fixture = try EnhancedBearerFixture(.peripheral, limit: 2)
        prepare(fixture)
        _ = fixture.security.exchange([0x13])
        let identifier = try #require(fixture.signaling.first?[1])
        #expect(fixture.peerOpens(2, identifier: 9)?[10] == 0x00)
        #expect(try fixture.bearerMTUs == [100, 100])
        fixture.send([0x18, identifier, 12, 0, 0, 0, 0, 0, 0, 0, 0x04, 0, 0, 0, 0, 0], on: 5)
        fixture.security.controller.forgetData()
        fixture.security.advance(.seconds(5))
        #expect(fixture.signaling.isEmpty, "there are enough bearers")
    }

    @Test func peripheralWaitsBeforeItRequestsChannelsAgain() throws {
        let fixture = try EnhancedBearerFixture(.peripheral, limit: 1)
        prepare(fixture)
        _ = fixture.security.exchange([0x13])
        for attempt in 1...EnhancedBearers.attemptLimit {
            let identifier = try #require(fixture.signaling.first?[1], "attempt \(attempt)")
            fixture.send([0x18, identifier, 10, 0, 0, 0, 0, 0, 0, 0, 0x04, 0, 0, 0], on: 5)
            fixture.security.controller.forgetData()
            fixture.security.advance(.milliseconds(98))
            #expect(fixture.signaling.isEmpty)
            fixture.security.advance(.milliseconds(5))
        }
        #expect(fixture.signaling.isEmpty, "the client has given up")
    }

    @Test func centralRequestsRefusedChannelsAgainAtOnce() throws {
        let fixture = try EnhancedBearerFixture(.central, limit: 1)
        prepare(fixture)
        _ = fixture.security.exchange([0x13])
        let identifier = try #require(fixture.signaling.first?[1])
        let refusal: [UInt8] = [0x18, identifier, 10, 0, 0, 0, 0, 0, 0, 0, 0x04, 0, 0, 0]
        #expect(fixture.send(refusal, on: 5, answers: 5).first?.first == 0x17)
    }
}
