import BLEGATT
import BLEHCI
import BLEL2CAP
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("A peer that does not take the answers to its requests")
struct FloodingTests {
    /// A host whose controller never returns its only buffer, which is in use: no further frame leaves the host.
    private func blocked() throws -> CallFixture {
        let calls = try CallFixture(buffers: 1)
        calls.receive([0x0A, 0xFF, 0xFF])
        #expect(calls.takeSent().count == 1)
        return calls
    }

    @Test(arguments: [[0x0A, 0xFF, 0xFF], [0x02, 0x17, 0x00], [0x3F], [0x1D, 0x03, 0x00, 0x01]] as [[UInt8]])
    func requestsWhileTheReplyIsUnsentAreDropped(pdu: [UInt8]) throws {
        let calls = try blocked()
        let host = calls.host
        for _ in 0..<100 { calls.receive(pdu) }
        #expect(try calls.fixture.run { await host.inspect().frames } <= 2)
        // The peer can continue after it has taken its answers.
        #expect(calls.drain().count == 1)
        calls.receive([0x0A, 0xFF, 0xFF])
        #expect(calls.drain() == [[0x01, 0x0A, 0xFF, 0xFF, 0x01]])
    }

    @Test func thirtyThousandRequestsKeepTwoFramesAndEndTheLink() throws {
        let calls = try blocked()
        let (host, link) = (calls.host, calls.link)
        let reason = calls.fixture.start { try await host.disconnection(of: link) }
        for _ in 0..<300 { calls.receive([0x0A, 0xFF, 0xFF]) }
        let disconnects = calls.fixture.controller.commands.filter { $0.opcode == Disconnect.opcode }
        #expect(disconnects.count == 1)
        for _ in 0..<30_000 { calls.fixture.controller.emit(HostFixture.acl([0x0A, 0xFF, 0xFF])) }
        calls.fixture.loop.run(for: .milliseconds(1))
        #expect(try calls.fixture.run { await host.inspect().frames } <= 2)
        calls.fixture.disconnected(CallFixture.handle, reason: .connectionTerminatedByLocalHost)
        #expect(try reason.all.first?.get() == .peerFlooding)
    }

    @Test func securityManagerFailuresAreBounded() throws {
        let calls = try blocked()
        let host = calls.host
        // Public keys outside a pairing. Each is answered with a failure or ignored.
        for _ in 0..<200 { calls.receive([0x01, 0x03], channel: 6) }
        #expect(try calls.fixture.run { await host.inspect().frames } <= BluetoothHost.securityReplyLimit)
    }

    @Test func signalingRejectsAreBounded() throws {
        let calls = try blocked()
        let host = calls.host
        for identifier in 1..<UInt8(200) { calls.receive([0x77, identifier, 0, 0], channel: 5) }
        #expect(try calls.fixture.run { await host.inspect().frames } <= BluetoothHost.signalingReplyLimit)
    }

    @Test func grantsOfCreditsAreBoundedAndLeaveRoomForThePeersCommands() throws {
        let calls = try CallFixture(buffers: 1)
        let (host, link) = (calls.host, calls.link)
        try calls.fixture.run { try await host.publishReader() }
        calls.receive([0x14, 0x01, 10, 0, 0x80, 0, 0x41, 0, 200, 0, 50, 0, 3, 0], channel: 5)
        _ = calls.drain()
        calls.receive([0x0A, 0xFF, 0xFF])
        #expect(calls.takeSent().count == 1, "the only buffer is in use now")
        // Empty SDUs, as many as the credits allow. The app reads them at once, so every few of them could have a
        // grant.
        var count = 0
        while count < 2000, try calls.fixture.run({ await host.creditsOfPeer(on: link) }) > 0 {
            calls.receive([0, 0], channel: 0x40)
            count += 1
        }
        #expect(try calls.fixture.run { await host.inspect().frames } <= BluetoothHost.creditGrantLimit)
        // A Flow Control Credit of the peer and a response need no answer, so they are not flooding.
        for identifier in UInt8(1)..<100 { calls.receive([0x16, identifier, 4, 0, 0x41, 0, 1, 0], channel: 5) }
        #expect(try calls.fixture.run { await host.isConnected(link) })
        #expect(count < 2000)
        _ = calls.drain()
        #expect(try calls.fixture.run { await host.creditsOfPeer(on: link) } > 0, "the grants that waited follow")
    }

    @Test(arguments: [[0x1D], [0x1D, 0x03]] as [[UInt8]])
    func malformedIndicationIsNotConfirmed(pdu: [UInt8]) throws {
        let calls = try CallFixture(role: .central)
        calls.receive(pdu)
        #expect(calls.drain().isEmpty)
        calls.receive([0x1D, 0x03, 0x00, 0x01])
        #expect(calls.drain() == [[0x1E]])
    }
}

extension BluetoothHost {
    /// Publishes a service at PSM 0x80 that reads all that arrives.
    fileprivate func publishReader() throws {
        let channel = CreditBasedChannel.Configuration(mtu: 64, mps: 64, receiveByteCapacity: 0)
        let accept: ChannelAcceptor = { [self] opened in
            let handle: ChannelHandler = { [self] event in
                guard case .readable = event else { return }
                assumeIsolated { _ = $0.readAll(from: opened.identifier) }
            }
            return handle
        }
        _ = try publishChannels(.init(configuration: channel), at: SPSM(rawValue: 0x80), accept: accept)
    }

    /// The number of K-frames that the peer may send.
    fileprivate func creditsOfPeer(on link: LinkIdentifier) -> Int {
        links[link]?.channels.channels[ChannelIdentifier(rawValue: 0x40)]?.receiveCredits ?? 0
    }

    fileprivate func isConnected(_ link: LinkIdentifier) -> Bool { links[link] != nil }
}
