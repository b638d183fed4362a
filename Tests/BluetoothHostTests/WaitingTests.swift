import BLEHCI
import BluetoothTesting
import BluetoothTypes
import Testing

@testable import BluetoothHost

/// A call of a task with a preferred executor needs several turns of the loop until it waits. Anything may happen
/// between these turns.
@Suite("Calls that wait")
struct WaitingTests {
    /// The number of turns before the awaited event happens.
    static let turns = 0..<8

    /// Runs `action` after the loop has run its ready jobs this many times.
    private func happen(after turns: Int, on loop: SimulatedEventLoop, _ action: @escaping @Sendable () -> Void) {
        loop.execute {
            if turns == 0 { action() } else { happen(after: turns - 1, on: loop, action) }
        }
    }

    private func endLink(of fixture: HostFixture, after turns: Int) {
        let controller = fixture.controller
        happen(after: turns, on: fixture.loop) {
            controller.emit {
                DisconnectionComplete(connectionHandle: 0x0040, reason: .connectionTimeout).encodePacket(into: &$0)
            }
        }
    }

    private func connected() throws -> (HostFixture, LinkIdentifier) {
        let fixture = HostFixture()
        try fixture.bringUp()
        fixture.connect()
        return (fixture, try fixture.link())
    }

    @Test("The end of a link is reported, whenever it happens", arguments: turns)
    func endOfALinkIsReportedWheneverItHappens(turns: Int) throws {
        let (fixture, link) = try connected()
        let host = fixture.host
        endLink(of: fixture, after: turns)
        let reason = fixture.start { try await host.disconnection(of: link) }
        #expect(try reason.all.first?.get() == .controller(.connectionTimeout))
    }

    @Test("A call that needs a link fails, whenever the link ends", arguments: turns)
    func callThatNeedsALinkFailsWheneverTheLinkEnds(turns: Int) throws {
        let (fixture, link) = try connected()
        let host = fixture.host
        endLink(of: fixture, after: turns)
        let outcome = fixture.start { try await host.secure(link) }
        #expect(throws: HostError.disconnected(.controller(.connectionTimeout))) { try outcome.all.first?.get() }
    }

    @Test("A flush ends, whenever the controller completes the packets", arguments: turns)
    func flushEndsWheneverThePacketsAreCompleted(turns: Int) throws {
        let (fixture, link) = try connected()
        let (host, controller) = (fixture.host, fixture.controller)
        // The controller keeps the one packet of this answer until the test completes it.
        #expect(fixture.exchange([0x0A, 0xFF, 0xFF]).count == 1)
        happen(after: turns, on: fixture.loop) {
            controller.emit {
                NumberOfCompletedPackets.encodePacket(
                    .init(connectionHandle: 0x0040, numCompletedPackets: 1),
                    into: &$0
                )
            }
        }
        let flushed = fixture.start { await host.flush(link) }
        #expect(flushed.all.count == 1)
    }

    @Test("Room that one call does not use goes to the next one")
    func roomThatOneCallDoesNotUseGoesToTheNext() throws {
        let fixture = HostFixture { $0.outboundFrameLimit = 1 }
        try fixture.bringUp()
        fixture.connect()
        let (host, controller) = (fixture.host, fixture.controller)
        let link = try fixture.link()
        let write: @Sendable (Int) async throws -> Void = { count in
            try await host.writeWithoutResponse([UInt8](repeating: 1, count: count), to: 0x0003, on: link)
        }
        // As many writes as the controller and the host have room for, and one that waits.
        while !fixture.start({ try await write(1) }).all.isEmpty {}
        let refused = fixture.start { try await write(600) }
        let written = fixture.start { try await write(1) }
        #expect(refused.all.isEmpty && written.all.isEmpty)
        for _ in 0..<2 {
            controller.emit {
                NumberOfCompletedPackets.encodePacket(
                    .init(connectionHandle: 0x0040, numCompletedPackets: 1),
                    into: &$0
                )
            }
            fixture.loop.run(for: .milliseconds(1))
        }
        #expect(throws: HostError.self) { try refused.all.first?.get() }
        #expect(written.all.count == 1)
    }

    @Test("Advertisements started at the same time get separate sets, up to the supported number")
    func simultaneousAdvertisementsGetSeparateSets() throws {
        var profile = ScriptedController.Profile()
        profile.usesExtendedCommands = true
        profile.advertisingSets = 2
        let fixture = HostFixture(profile: profile)
        try fixture.bringUp()
        let host = fixture.host
        let started = try fixture.run {
            await withTaskGroup(of: Bool.self) { group in
                for _ in 0..<3 {
                    group.addTask { (try? await host.startAdvertising(AdvertisementConfiguration())) != nil }
                }
                return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
            }
        }
        #expect(started == 2)
        let handles = fixture.controller.commands.compactMap {
            $0.decode(LESetExtendedAdvertisingParameters.self)?.advertisingHandle
        }
        #expect(Set(handles).count == 2)
    }
}
