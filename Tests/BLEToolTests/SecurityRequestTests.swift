import BLE
import BluetoothTesting
import Testing

@testable import BLETool

@Suite("A peer's Security Request and the commands of ble")
struct SecurityRequestTests {
    private static let name = "C0:12:34:56:78:9A"

    /// The answer to the peer's request, and the number of pairings that began.
    private func request(_ policy: SecurityPolicy, _ consent: @escaping PairingConsole.Consent) throws -> (
        strength: Result<KeyStrength, any Error>, pairings: Int
    ) {
        let console = PairingConsole(asJSON: true, passkey: nil, answers: .commands, consents: consent)
        return try World.run { world in
            let lock = try await world.device("lock").openAdapter { $0.security.justWorks = .always }
            let ble = try await world.device("ble").openAdapter {
                $0.security = policy
                $0.pairingDelegate = console
            }
            let events = await lock.peripheral.events()
            let securityEvents = await ble.securityEvents()
            let advertising = try await lock.peripheral.startAdvertising(
                AdvertisementConfiguration(interval: .milliseconds(30))
            )
            defer { withExtendedLifetime(advertising) {} }
            let peer = try await ble.central.connect(to: try await lock.information.identityAddress)
            var client: ClientID?
            for await event in events {
                if case .connected(let identifier, _) = event { client = identifier }
                if client != nil { break }
            }
            let asked = try #require(client)
            let strength: Result<KeyStrength, any Error>
            do {
                strength = .success(try await lock.peripheral.requestSecurity(of: asked))
            } catch {
                strength = .failure(error)
            }
            #expect(await peer.isConnected, "the link stays")
            await ble.close()
            var pairings = 0
            for await event in securityEvents {
                if case .pairingStarted = event { pairings += 1 }
            }
            return (strength, pairings)
        }
    }

    private func outcome(of peer: PeerOptions, securesOnDemand: Bool) async throws -> (
        strength: Result<KeyStrength, any Error>, pairings: Int
    ) {
        let policy = try await peer.policy(.none, securesOnDemand: securesOnDemand, encryptsBondedLinks: true)
        return try request(policy, peer.consent)
    }

    @Test("A command that does not pair answers Pairing Not Supported, and begins no pairing")
    func commandThatDoesNotPairRefuses() async throws {
        let explore = try Explore.parse([SecurityRequestTests.name]).peer
        let noPair = try Subscribe.parse([SecurityRequestTests.name, "2A19", "--no-pair"]).peer
        for (peer, securesOnDemand) in [(explore, explore.pairing.isGiven), (noPair, true)] {
            let (strength, pairings) = try await outcome(of: peer, securesOnDemand: securesOnDemand)
            #expect(throws: BLEError.security(.pairing(.endedByPeer(.pairingNotSupported)))) { try strength.get() }
            #expect(pairings == 0)
        }
    }

    @Test("A command that pairs, by default or by its options, pairs when the peer requests it")
    func commandThatPairsFollows() async throws {
        let subscribe = try Subscribe.parse([SecurityRequestTests.name, "2A19"]).peer
        let explore = try Explore.parse([SecurityRequestTests.name, "--io", "none"]).peer
        for (peer, securesOnDemand) in [(subscribe, true), (explore, explore.pairing.isGiven)] {
            let (strength, pairings) = try await outcome(of: peer, securesOnDemand: securesOnDemand)
            #expect(throws: Never.self) { try strength.get() }
            #expect(pairings == 1)
        }
    }
}
