import BLEATT
import BLEGATT
import BLEHCI
import BLEL2CAP
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("The order of requests for channels among the calls on a link")
struct ChannelCallOrderTests {
    private static let psm = SPSM(rawValue: 0x80)

    private func command(_ number: UInt8) -> [UInt8] { [4, 0x52, 3, 0, number] }
    private func read(_ handle: UInt8) -> [UInt8] { [4, 0x0A, handle, 0] }

    /// The frames that left the host since the last call: each with its channel, and the ATT PDU or the code of the
    /// signaling command.
    private func takeSent(_ fixture: HostFixture) -> [[UInt8]] {
        defer { fixture.controller.forgetData() }
        return fixture.controller.data.map { $0[7] == 5 ? [5, $0[9]] : [$0[7]] + $0[9...] }
    }

    /// Lets the controller return buffers until the host has nothing left to send, and returns what it sent.
    private func drain(_ calls: CallFixture) -> [[UInt8]] {
        for _ in 0..<100 { calls.complete(1) }
        return takeSent(calls.fixture)
    }

    /// Opens a channel. The recorder gets an error if the opening fails.
    private func open(_ calls: CallFixture) throws -> (HostChannelIdentifier, Recorder<HostError?>) {
        let (host, link) = (calls.host, calls.link)
        let outcome = Recorder<HostError?>()
        let name = try calls.fixture.run {
            try await host.beginOpeningChannel(to: Self.psm, on: link) { result in
                if case .failure(let error) = result { outcome.append(error) } else { outcome.append(nil) }
                return nil
            }
        }
        return (name, outcome)
    }

    /// A link whose outbound queue is full, so that writes wait.
    private func congested(_ count: UInt8 = 12) throws -> CallFixture {
        let calls = try CallFixture(buffers: 2)
        let (host, link) = (calls.host, calls.link)
        for number in 0..<count {
            _ = calls.fixture.start { try await host.writeWithoutResponse([number], to: 3, on: link) }
        }
        return calls
    }

    @Test func requestForAChannelFollowsWritesThatWaitForRoom() throws {
        let calls = try congested()
        let (host, link) = (calls.host, calls.link)
        let (_, outcome) = try open(calls)
        _ = calls.fixture.start { try await host.writeWithoutResponse([12], to: 3, on: link) }
        _ = try calls.fixture.run { try await host.beginOpeningChannels(2, to: Self.psm, on: link) { _ in nil } }
        _ = calls.fixture.start { try await host.perform(ReadValue(handle: 5), on: link) }
        let expected = (0..<12).map(command) + [[5, 0x14], command(12), [5, 0x17], read(5)]
        #expect(drain(calls) == expected)
        calls.receive([0x15, 1, 10, 0, 0x41, 0, 200, 0, 50, 0, 3, 0, 0, 0], channel: 5)
        #expect(outcome.all == [nil])
    }

    @Test func requestForAChannelFollowsQueuedRequests() throws {
        let calls = try CallFixture()
        let (host, link) = (calls.host, calls.link)
        _ = calls.fixture.start { try await host.perform(ReadValue(handle: 5), on: link) }
        _ = calls.fixture.start { try await host.perform(ReadValue(handle: 6), on: link) }
        _ = try open(calls)
        #expect(drain(calls) == [read(5)])
        calls.receive([0x0B, 7])
        #expect(drain(calls) == [read(6), [5, 0x14]])
    }

    @Test func answersToThePeerDoNotWaitForRequestsInTheLane() throws {
        let calls = try congested()
        _ = try open(calls)
        _ = takeSent(calls.fixture)
        calls.receive([0x14, 9, 10, 0, 0x90, 0, 0x41, 0, 200, 0, 50, 0, 3, 0], channel: 5)
        calls.receive([0x06, 8, 4, 0, 0x70, 0, 0x41, 0], channel: 5)
        let sent = drain(calls)
        let answers = try #require(sent.firstIndex(of: [5, 0x15]))
        let request = try #require(sent.firstIndex(of: [5, 0x14]))
        #expect(answers < request && sent.firstIndex(of: [5, 0x01]) ?? .max < request)
    }

    @Test func channelThatIsClosedBeforeItsTurnIsNotAskedFor() throws {
        let calls = try congested()
        let (host, link) = (calls.host, calls.link)
        let (name, outcome) = try open(calls)
        let names = try calls.fixture.run {
            try await host.beginOpeningChannels(2, to: Self.psm, on: link) { _ in nil }
        }
        try calls.fixture.run {
            await host.closeChannel(name)
            await host.closeChannel(names[0])
        }
        #expect(outcome.all == [.cancelled])
        let channels = try calls.fixture.run { await host.inspect().channels }
        #expect(channels == 2, "the request for two channels is still wanted")
        try calls.fixture.run { await host.finishChannel(names[1]) }
        let inspection = try calls.fixture.run { await host.inspect() }
        #expect(inspection.channels == 0)
        #expect(drain(calls) == (0..<12).map(command))
    }

    @Test func requestForTwoChannelsIsSentIfOneIsWanted() throws {
        let calls = try congested()
        let (host, link) = (calls.host, calls.link)
        let failures = Recorder<HostError>()
        try calls.fixture.run {
            let names = try await host.beginOpeningChannels(2, to: Self.psm, on: link) { result in
                if case .failure(let error) = result { failures.append(error) }
                return { _ in }
            }
            await host.closeChannel(names[0])
        }
        #expect(drain(calls) == (0..<12).map(command) + [[5, 0x17]])
        #expect(failures.all == [.cancelled])
    }

    @Test func endOfTheLinkEndsAnOpeningThatWaits() throws {
        let calls = try congested()
        let (_, outcome) = try open(calls)
        calls.fixture.disconnected(CallFixture.handle, reason: .connectionTimeout)
        #expect(outcome.all == [.disconnected(.controller(.connectionTimeout))])
    }

    @Test func closingTheHostEndsAnOpeningThatWaits() throws {
        let calls = try congested()
        let host = calls.host
        let (_, outcome) = try open(calls)
        try calls.fixture.run { await host.close() }
        #expect(outcome.all.count == 1 && outcome.all[0] != nil)
    }

    // MARK: Bonded peers

    private func openOnBondedLink(
        _ fixture: SecurityFixture,
        _ link: LinkIdentifier
    ) throws -> (HostChannelIdentifier, Recorder<HostError>) {
        let failures = Recorder<HostError>()
        let name = try fixture.run { host in
            try host.beginOpeningChannel(to: Self.psm, on: link) { result in
                if case .failure(let error) = result { failures.append(error) }
                return nil
            }
        }
        return (name, failures)
    }

    @Test func requestForAChannelKeepsOrderWhileThePeerIsVerified() throws {
        let fixture = try SecurityFixture()
        let link = try fixture.connect(.central)
        _ = fixture.start { try await $0.writeWithoutResponse([1], to: 3, on: link) }
        let (_, failures) = try openOnBondedLink(fixture, link)
        _ = fixture.start { try await $0.writeWithoutResponse([2], to: 3, on: link) }
        #expect(takeSent(fixture.fixture).isEmpty)
        fixture.encryptionChanged()
        // Without the host's own read of the database hash.
        let sent = takeSent(fixture.fixture).filter { $0[1] != 0x08 }
        #expect(sent == [command(1), [5, 0x14], command(2)])
        #expect(failures.all.isEmpty)
    }

    @Test func failedVerificationEndsAnOpeningOnceAndSendsNothing() throws {
        let fixture = try SecurityFixture()
        let link = try fixture.connect(.central)
        let write = fixture.start { try await $0.writeWithoutResponse([1], to: 3, on: link) }
        let (_, failures) = try openOnBondedLink(fixture, link)
        fixture.encryptionChanged(.pinOrKeyMissing)
        fixture.advance(.seconds(60))
        #expect(failures.all == [.security(.keyMissing)])
        #expect(write.all.count == 1)
        #expect(fixture.sent(on: 4).isEmpty && fixture.sent(on: 5).isEmpty)
        #expect(try fixture.run { $0.inspect().channels } == 0)
    }

    @Test func channelThatIsClosedDuringVerificationIsNotAskedFor() throws {
        let fixture = try SecurityFixture()
        let link = try fixture.connect(.central)
        let (name, failures) = try openOnBondedLink(fixture, link)
        try fixture.run { $0.closeChannel(name) }
        #expect(failures.all == [.cancelled])
        fixture.encryptionChanged()
        #expect(fixture.sent(on: 5).isEmpty)
        #expect(try fixture.run { $0.links[link]?.att.lanes.isEmpty } == true)
    }

    // MARK: Signal strength

    @Test func commandForTheSignalStrengthIsSentInTheCall() throws {
        let calls = try CallFixture()
        let (host, link) = (calls.host, calls.link)
        calls.fixture.controller.override = { command in
            command.opcode == ReadRSSI.opcode
                ? .packets([[0x04, 0x0E, 0x07, 0x01, 0x05, 0x14, 0x00, 0x40, 0x00, 0xC4]]) : nil
        }
        let controller = calls.fixture.controller
        let strengths = Recorder<Result<Int?, HostError>>()
        let opcode = try calls.fixture.run {
            await host.beginReadingRSSI(of: link) { strengths.append($0) }
            return controller.opcodes.last
        }
        #expect(opcode == ReadRSSI.opcode)
        calls.fixture.loop.run(for: .milliseconds(1))
        #expect(strengths.all == [.success(-60)])
        calls.fixture.disconnected(CallFixture.handle, reason: .connectionTimeout)
        try calls.fixture.run { await host.beginReadingRSSI(of: link) { strengths.append($0) } }
        #expect(strengths.all.last == .failure(.disconnected(.controller(.connectionTimeout))))
    }
}
