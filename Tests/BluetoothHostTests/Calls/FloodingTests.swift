import BLEGATT
import BLEHCI
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
        calls.fixture.controller.emit {
            DisconnectionComplete(connectionHandle: CallFixture.handle, reason: .connectionTerminatedByLocalHost)
                .encodePacket(into: &$0)
        }
        calls.fixture.loop.run(for: .milliseconds(1))
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
        // Empty SDUs, which the app reads at once. A grant may be written after each few of them.
        for _ in 0..<2000 { calls.receive([0, 0], channel: 0x40) }
        #expect(try calls.fixture.run { await host.inspect().frames } <= BluetoothHost.creditGrantLimit)
        // A Flow Control Credit of the peer and a response need no answer, so they are not flooding.
        for identifier in UInt8(1)..<100 { calls.receive([0x16, identifier, 4, 0, 0x41, 0, 1, 0], channel: 5) }
        #expect(try calls.fixture.run { await host.isConnected(link) })
        let grants = calls.drain().filter { $0.first == 0x16 }
        #expect(grants.count > 1, "the others follow")
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
        _ = try publishChannels(.init(mtu: 64, mps: 64, receiveByteCapacity: 0), at: SPSM(rawValue: 0x80)) { [self] opened in
            { [self] event in
                guard case .readable = event else { return }
                assumeIsolated { _ = $0.readAll(from: opened.identifier) }
            }
        }
    }

    fileprivate func isConnected(_ link: LinkIdentifier) -> Bool { links[link] != nil }
}
