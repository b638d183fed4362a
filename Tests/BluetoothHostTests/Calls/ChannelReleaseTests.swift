import BLEHCI
import BLEL2CAP
import BluetoothTypes
import Testing

@testable import BluetoothHost

/// Objects of apps that call the host when it releases their closures.
@Suite("Release of closures for channels")
struct ChannelReleaseTests {
    /// An object whose release uses the host's tables of closures.
    fileprivate final class Sentinel: Sendable {
        private let host: BluetoothHost
        private let released: Recorder<String>
        private let name: String

        init(_ name: String, _ host: BluetoothHost, _ released: Recorder<String>) {
            self.name = name
            self.host = host
            self.released = released
        }

        func keep() {}

        deinit {
            let (host, released, name) = (host, released, name)
            host.begin { host in
                if let psm = try? host.publishChannels(.init(), accept: { _ in { _ in } }) {
                    host.unpublishChannels(at: psm)
                }
                released.append("\(name): \(host.inspect().channelObservers)")
            }
        }
    }

    private let released = Recorder<String>()

    /// Publishes a service at PSM 0x80 whose closures are those of an app with sentinels.
    private func publish(_ calls: CallFixture) throws {
        let (host, released) = (calls.host, released)
        try calls.fixture.run { try await host.publish(released) }
    }

    /// Makes the peer open a channel to PSM 0x80.
    private func open(_ calls: CallFixture) {
        calls.receive([0x14, 0x01, 10, 0, 0x80, 0, 0x41, 0, 200, 0, 50, 0, 3, 0], channel: 5)
    }

    @Test func acceptorIsReleasedAfterItsRemoval() throws {
        let calls = try CallFixture()
        let host = calls.host
        try publish(calls)
        try calls.fixture.run { await host.unpublishChannels(at: SPSM(rawValue: 0x80)) }
        #expect(released.all == ["acceptor: 0"])
        #expect(try calls.fixture.run { await host.contradiction() } == nil)
    }

    @Test func handlerIsReleasedAfterTheEndOfItsChannel() throws {
        let calls = try CallFixture()
        try publish(calls)
        open(calls)
        #expect(released.all == [])
        calls.receive([0x06, 0x02, 4, 0, 0x40, 0, 0x41, 0], channel: 5)
        #expect(released.all == ["handler: 0"])
    }

    @Test func handlerIsReleasedAfterTheEndOfItsLink() throws {
        let calls = try CallFixture()
        try publish(calls)
        open(calls)
        calls.fixture.disconnected(CallFixture.handle, reason: .connectionTimeout)
        #expect(released.all == ["handler: 0"])
    }

    @Test(arguments: [true, false]) func completionIsReleasedAfterItsCall(isTaken: Bool) throws {
        let calls = try CallFixture()
        let (host, link, released) = (calls.host, calls.link, released)
        try calls.fixture.run { try await host.openChannel(on: link, isTaken: isTaken, released) }
        #expect(released.all == [])
        calls.receive([0x15, 1, 10, 0, 0x41, 0, 200, 0, 50, 0, 3, 0, 0, 0], channel: 5)
        #expect(released.all == [isTaken ? "completion: 1" : "completion: 0"])
        #expect(try calls.fixture.run { await host.inspect() }.channelObservers == (isTaken ? 1 : 0))
    }

    @Test func closuresOfAClosedHostAreReleased() throws {
        let calls = try CallFixture()
        let (host, link, released) = (calls.host, calls.link, released)
        try publish(calls)
        open(calls)
        try calls.fixture.run { try await host.openChannel(on: link, isTaken: true, released) }
        try calls.fixture.run { await host.close() }
        calls.fixture.loop.run(for: .milliseconds(1))
        #expect(released.all.map { $0.prefix { $0 != ":" } }.sorted() == ["acceptor", "completion", "handler"])
        #expect(try calls.fixture.run { await host.inspect() }.isEmpty)
    }
}

extension BluetoothHost {
    fileprivate func publish(_ released: Recorder<String>) throws {
        let acceptor = ChannelReleaseTests.Sentinel("acceptor", self, released)
        let host = self
        let accept: ChannelAcceptor = { _ in
            acceptor.keep()
            let handler = ChannelReleaseTests.Sentinel("handler", host, released)
            let handle: ChannelHandler = { _ in handler.keep() }
            return handle
        }
        _ = try publishChannels(.init(), at: SPSM(rawValue: 0x80), accept: accept)
    }

    fileprivate func openChannel(on link: LinkIdentifier, isTaken: Bool, _ released: Recorder<String>) throws {
        let completion = ChannelReleaseTests.Sentinel("completion", self, released)
        let handler: ChannelHandler = { _ in }
        let complete: ChannelCompletion = { _ in
            completion.keep()
            return isTaken ? handler : nil
        }
        _ = try beginOpeningChannel(to: SPSM(rawValue: 0x25), on: link, completion: complete)
    }
}
