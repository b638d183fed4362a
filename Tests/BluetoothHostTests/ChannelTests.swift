import BLEByteCoding
import BLEHCI
import BLEL2CAP
import BluetoothHost
import BluetoothTypes
import Testing

@Suite("Channels of a link")
struct ChannelTests {
    /// Publishes a service at PSM 0x80; the recorder gets its channels.
    private func publish(_ fixture: HostFixture) throws -> Recorder<OpenedChannel> {
        let host = fixture.host
        let opened = Recorder<OpenedChannel>()
        let psm = try fixture.run {
            try await host.publishChannels(.init()) { channel in
                opened.append(channel)
                return { _ in }
            }
        }
        #expect(psm == SPSM(rawValue: 0x80))
        return opened
    }

    /// Makes the peer request a channel with an MPS of 50.
    ///
    /// - Returns: the host's answer.
    private func open(_ fixture: HostFixture, psm: UInt8 = 0x80, credits: UInt8 = 3) -> [UInt8]? {
        fixture.controller.forgetData()
        fixture.controller.emit(
            HostFixture.acl([0x14, 0x01, 10, 0, psm, 0, 0x41, 0, 200, 0, 50, 0, credits, 0], channel: 5)
        )
        fixture.loop.run(for: .milliseconds(1))
        return fixture.controller.data.last.map { Array($0.dropFirst(9)) }
    }

    private func completePackets(_ count: UInt16, _ fixture: HostFixture) {
        fixture.controller.emit {
            NumberOfCompletedPackets.encodePacket(
                .init(connectionHandle: 0x0040, numCompletedPackets: count),
                into: &$0
            )
        }
        fixture.loop.run(for: .milliseconds(1))
    }

    @Test func reconfigurationOnALinkThatHasEndedFailsWithTheReasonOfTheEnd() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        fixture.connect()
        let channels = try publish(fixture)
        _ = open(fixture)
        let channel = try #require(channels.all.first).identifier
        fixture.disconnected(reason: .connectionTimeout)
        let host = fixture.host
        #expect(throws: HostError.disconnected(.controller(.connectionTimeout))) {
            try fixture.run { try await host.reconfigure(channel, mtu: 4000, mps: 300) }
        }
    }

    @Test("An SDU is sent to a peer in K-frames of at most the peer's MPS")
    func sduIsSentInFramesOfAtMostTheMPSOfThePeer() throws {
        let fixture = HostFixture(profile: .init(leBuffers: (251, 8)))
        try fixture.bringUp()
        fixture.connect()
        let channels = try publish(fixture)
        #expect(open(fixture, psm: 0x81) == [0x15, 0x01, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0])
        #expect(open(fixture) == [0x15, 0x01, 10, 0, 0x40, 0, 0x00, 0x08, 247, 0, 117, 0, 0, 0])
        let channel = try #require(channels.all.first)
        fixture.controller.forgetData()
        let host = fixture.host
        let octets = (0..<100).map { UInt8($0) }
        let outcome = try fixture.run { await host.send(octets[...], on: channel.identifier) }
        #expect(outcome == .taken(100))
        fixture.loop.run(for: .milliseconds(1))
        let headers: [[UInt8]] = [[50, 0, 0x41, 0, 100, 0], [50, 0, 0x41, 0], [2, 0, 0x41, 0]]
        let segments: [[UInt8]] = [Array(octets[..<48]), Array(octets[48..<98]), Array(octets[98...])]
        let frames = fixture.controller.data.map { Array($0.dropFirst(5)) }
        #expect(frames == zip(headers, segments).map { $0 + $1 })
    }

    @Test("A response of the Attribute Protocol waits for only a few K-frames")
    func responseWaitsForOnlyAFewFramesOfAChannel() throws {
        let fixture = HostFixture(profile: .init(leBuffers: (251, 1)))
        try fixture.bringUp()
        fixture.connect()
        let channels = try publish(fixture)
        _ = open(fixture, credits: 255)
        let channel = try #require(channels.all.first)
        let host = fixture.host
        let outcome = try fixture.run {
            await host.send([UInt8](repeating: 7, count: 5000)[...], on: channel.identifier)
        }
        #expect(outcome == .taken(5000))
        fixture.controller.emit(HostFixture.acl([0x0A, 0x03, 0x00]))
        fixture.loop.run(for: .milliseconds(1))
        fixture.controller.forgetData()
        for _ in 0..<20 { completePackets(1, fixture) }
        let identifiers = fixture.controller.data.map { $0[7] }
        #expect(identifiers.count == 20)
        let place = try #require(identifiers.firstIndex(of: 4))
        #expect(place < 10, "order of channels: \(identifiers)")
        #expect(identifiers[(place + 1)...].contains(0x41))
    }

    @Test("A request for a channel fails if the peer does not answer it for thirty seconds")
    func unansweredRequestForAChannelFailsAfterThirtySeconds() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        fixture.connect()
        let host = fixture.host
        let link = try fixture.link()
        let failures = Recorder<HostError>()
        _ = try fixture.run {
            try await host.beginOpeningChannel(to: SPSM(rawValue: 0x25), on: link) { result in
                if case .failure(let error) = result { failures.append(error) }
                return nil
            }
        }
        #expect(fixture.controller.data.last?.dropFirst(9).prefix(6) == [0x14, 0x01, 10, 0, 0x25, 0])
        fixture.loop.run(for: .seconds(29))
        #expect(failures.all.isEmpty)
        fixture.loop.run(for: .seconds(2))
        #expect(failures.all == [.timedOut])
    }

    @Test("An SDU that is too long ends the channel, and its handler gets the reason")
    func tooLongSDUEndsTheChannelWithTheReason() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        fixture.connect()
        let host = fixture.host
        let ends = Recorder<ChannelEnd>()
        _ = try fixture.run {
            try await host.publishChannels(.init(configuration: .init(mtu: 23, mps: 23, receiveByteCapacity: 0))) { _ in
                { if case .ended(let end, _) = $0 { ends.append(end) } }
            }
        }
        _ = open(fixture)
        fixture.controller.emit(HostFixture.acl([24, 0, 9], channel: 0x40))
        fixture.loop.run(for: .milliseconds(1))
        #expect(ends.all == [.violation(.sduExceedsMTU(length: 24))])
        #expect(fixture.controller.data.last?.dropFirst(9) == [0x06, 0x01, 4, 0, 0x41, 0, 0x40, 0])
    }
}
