import BLEGATT
import BLEHCI
import BLESMP
import BluetoothTypes
import Testing

@testable import BluetoothHost

/// The state of a bonded peer on a link whose encryption has ended. Any device may use the peer's address then.
@Suite("The state of a peer that is not verified any more")
struct UnverifiedPeerStateTests {
    /// A link on which the peer has verified its identity.
    private func verified(servesUnverifiedClients: Bool = false) throws -> (SecurityFixture, LinkIdentifier) {
        let fixture = try SecurityFixture { $0.security.servesUnverifiedClients = servesUnverifiedClients }
        let link = try fixture.connect(.peripheral)
        verify(fixture)
        return (fixture, link)
    }

    private func verify(_ fixture: SecurityFixture) {
        fixture.requestKey()
        fixture.encryptionChanged()
    }

    private func descriptor(of fixture: SecurityFixture) -> [UInt8] {
        AttributeHandle(fixture.valueHandle.rawValue + 1).bytes
    }

    private func saved(_ fixture: SecurityFixture) throws -> ServerSession.PersistentState {
        try #require(try fixture.run { $0.bondRecords().first?.serverState })
    }

    @Test("Writes of an unverified peer are saved only once it is verified", arguments: [true, false])
    func writesAreSavedOnceThePeerIsVerified(servesUnverifiedClients: Bool) throws {
        let (fixture, _) = try verified(servesUnverifiedClients: servesUnverifiedClients)
        // Client Supported Features.
        let table = fixture.exchange([0x08, 1, 0, 0xFF, 0xFF, 0x29, 0x2B])
        let features = [UInt8](try #require(table.first).dropFirst(2).prefix(2))
        fixture.encryptionChanged(isOn: false)
        let answer = fixture.exchange([0x12] + descriptor(of: fixture) + [1, 0])
        #expect(answer.first?.first == (servesUnverifiedClients ? 0x13 : 0x01))
        #expect(fixture.exchange([0x12] + features + [1]) == [[0x13]])
        var state = try saved(fixture)
        #expect(state.clientFeatures == 0 && state.configurations.isEmpty, "any device may have written them")
        verify(fixture)
        state = try saved(fixture)
        #expect(state.clientFeatures == 1)
        #expect(state.configurations.map(\.configuration) == (servesUnverifiedClients ? [.notification] : []))
    }

    @Test("The end of encryption counts even if the policy has refused the key before")
    func endOfEncryptionWithARefusedKeyCounts() throws {
        let fixture = try SecurityFixture { $0.security.encryptsBondedLinks = false }
        try fixture.connect(.peripheral)
        verify(fixture)
        try fixture.run { host in
            var policy = SecurityPolicy()
            policy.encryptsBondedLinks = false
            policy.requiresAuthentication = true
            host.setSecurityPolicy(policy)
        }
        fixture.encryptionChanged(isOn: false)
        // Client Supported Features.
        let table = fixture.exchange([0x08, 1, 0, 0xFF, 0xFF, 0x29, 0x2B])
        let features = [UInt8](try #require(table.first).dropFirst(2).prefix(2))
        #expect(fixture.exchange([0x12] + features + [1]) == [[0x13]])
        #expect(try saved(fixture).clientFeatures == 0, "any device may have written them")
    }

    @Test("A device that pairs without a bond after encryption has ended does not get the peer's subscriptions")
    func pairingWithoutABondEndsTheSubscriptions() throws {
        let (fixture, identifier) = try verified()
        let value = fixture.valueHandle
        #expect(fixture.exchange([0x12] + descriptor(of: fixture) + [1, 0]) == [[0x13]])
        #expect(try fixture.run { $0.subscribers(of: value, .notification) } == [identifier])
        fixture.encryptionChanged(isOn: false)
        try fixture.run { host in
            guard let link = host.links[identifier] else { return }
            let outcome = PairingOutcome(
                model: .justWorks,
                strength: SecurityFixture.strength,
                bond: SecurityFixture.bond(),
                isBonded: false
            )
            let key = ActiveKey(strength: SecurityFixture.strength, origin: .incompletePairing)
            link.security.state = .awaitingBondDecision(
                CompletedPairing(
                    outcome: outcome,
                    initiative: .peer,
                    peer: link.identity,
                    current: CurrentEncryption(key: key),
                    waiting: []
                )
            )
            host.inform(link) { _, _ in [.decideBond(outcome, isForApp: false, isConfirmed: false)] }
            host.endInput()
        }
        #expect(try fixture.run { $0.strength(of: identifier) } == SecurityFixture.strength)
        #expect(try fixture.run { $0.subscribers(of: value, .notification) } == [])
        #expect(fixture.events.all.count { $0.hasPrefix("configured") } == 2, "the end of the subscription is reported")
        #expect(try saved(fixture).configurations.count == 1, "the bond keeps it for the peer")
    }
}
