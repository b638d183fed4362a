import BluetoothTypes
import HCI
import Testing

@testable import BluetoothHost

/// A call of a task that prefers an executor comes to where it waits in several turns of the loop, between which anything may
/// happen.
@Suite("Calls that wait")
struct WaitingTests {
    /// How many turns before what a call waits for happens.
    static let turns = 0..<8

    /// Does something once the loop has gone through what is ready so many times.
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
        let host = fixture.host
        return (fixture, try #require(try fixture.run { await host.linkIdentifiers() }.first))
    }

    @Test("A link's end is told, whenever it comes", arguments: turns)
    func disconnection(turns: Int) throws {
        let (fixture, link) = try connected()
        let host = fixture.host
        endLink(of: fixture, after: turns)
        let reason = fixture.start { try await host.disconnection(of: link) }
        #expect(try reason.all.first?.get() == .controller(.connectionTimeout))
    }

    @Test("A call that needs a link fails, whenever that ends", arguments: turns)
    func secure(turns: Int) throws {
        let (fixture, link) = try connected()
        let host = fixture.host
        endLink(of: fixture, after: turns)
        let outcome = fixture.start { try await host.secure(link) }
        #expect(throws: HostError.disconnected(.controller(.connectionTimeout))) { try outcome.all.first?.get() }
    }

    @Test("All is sent, whenever the controller says so", arguments: turns)
    func flush(turns: Int) throws {
        let (fixture, link) = try connected()
        let (host, controller) = (fixture.host, fixture.controller)
        // A request that the host answers: one packet, which the controller has until it says otherwise.
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

    @Test("Room that one call does not use is the next one's")
    func room() throws {
        let fixture = HostFixture { $0.outboundFrameLimit = 1 }
        try fixture.bringUp()
        fixture.connect()
        let (host, controller) = (fixture.host, fixture.controller)
        let link = try #require(try fixture.run { await host.linkIdentifiers() }.first)
        let write: @Sendable (Int) async throws -> Void = { count in
            try await host.writeWithoutResponse([UInt8](repeating: 1, count: count), to: 0x0003, on: link)
        }
        // What the controller and the host have room for, and one that waits.
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

    @Test("Advertisements that are started at once are sets of their own, and no more than there are")
    func advertise() throws {
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
