import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("Sessions of Channel Sounding at the gate of a bonded peer")
struct ChannelSoundingGateTests {
    private typealias Fixture = ChannelSoundingFixture

    private static let keyMissing = HostError.security(.keyMissing)

    @Test func sessionBeginsWhenTheGateOpens() throws {
        var link = Fixture()
        #expect(try link.start(isGateClosed: true) == [] && link.engine.awaitsGate && !link.engine.isActive)
        #expect(throws: HostError.self, "one session waits") { try link.start(as: 2, isGateClosed: true) }
        #expect(link.engine.gateOpened(isEncrypted: true, at: link.now) == Fixture.sends(Fixture.readCapabilities))
        #expect(link.engine.gateOpened(isEncrypted: true, at: link.now) == [] && !link.engine.awaitsGate)
    }

    @Test func waitingSessionEndsIfThePeerIsNotVerified() throws {
        var link = Fixture()
        _ = try link.start(isGateClosed: true)
        #expect(link.engine.verificationFailed(Self.keyMissing) == [.ended(Self.keyMissing, session: 1)])
        #expect(link.engine.verificationFailed(Self.keyMissing) == [] && !link.engine.has(1))
        #expect(link.engine.gateOpened(isEncrypted: true, at: link.now) == [])
    }

    @Test func waitingSessionEndsIfTheGateOpensWithoutEncryption() throws {
        var link = Fixture()
        _ = try link.start(isGateClosed: true)
        #expect(
            link.engine.gateOpened(isEncrypted: false, at: link.now)
                == [.ended(ChannelSoundingEngine.encryptionNeeded, session: 1)]
        )
        #expect(!link.engine.has(1) && !link.engine.isActive)
    }

    @Test func waitingSessionCanBeStopped() throws {
        var link = Fixture()
        _ = try link.start(isGateClosed: true)
        #expect(link.engine.stop(1, at: link.now) == [] && !link.engine.awaitsGate)
        #expect(link.engine.gateOpened(isEncrypted: true, at: link.now) == [])
    }

    @Test func unverifiedPeerEndsTheSessionAndTheNextOneWaits() throws {
        var link = try Fixture.running(count: 0)
        link.engine.gateClosed()
        let reason = DisconnectionReason.controller(.authenticationFailure)
        #expect(
            link.engine.peerIsUnverified(at: link.now)
                == [.ended(.disconnected(reason), session: 1), .command(Fixture.disable, session: 1)]
        )
        #expect(link.engine.peerIsUnverified(at: link.now) == [])
        #expect(try link.start(as: 2, isGateClosed: true) == [])
        #expect(link.procedures(isOn: false, count: 0) == Fixture.sends(Fixture.remove))
        #expect(link.config(isCreated: false) == Fixture.sends(Fixture.disableRole))
        #expect(!link.engine.isActive && link.engine.awaitsGate)
        #expect(
            link.engine.gateOpened(isEncrypted: true, at: link.now) == Fixture.sends(Fixture.defaults(), session: 2)
        )
    }

    /// The first session is being ended when the gate closes.
    @Test func sessionThatWaitsForTheOneBeforeWaitsForTheGateToo() throws {
        var link = try Fixture.running(count: 0)
        _ = link.engine.stop(1, at: link.now)
        _ = try link.start(as: 2)
        link.engine.gateClosed()
        #expect(link.engine.peerIsUnverified(at: link.now) == [])
        _ = link.procedures(isOn: false, count: 0)
        #expect(link.config(isCreated: false) == Fixture.sends(Fixture.disableRole))
        #expect(link.engine.verificationFailed(Self.keyMissing) == [.ended(Self.keyMissing, session: 2)])
    }

    @Test func sessionWaitsForTheOneBeforeAlsoWhenTheGateHasOpened() throws {
        var link = try Fixture.running(count: 0)
        _ = link.engine.stop(1, at: link.now)
        _ = try link.start(as: 2, isGateClosed: true)
        #expect(link.engine.gateOpened(isEncrypted: true, at: link.now) == [])
        _ = link.procedures(isOn: false, count: 0)
        #expect(link.config(isCreated: false) == Fixture.sends(Fixture.defaults(), session: 2))
    }
}
