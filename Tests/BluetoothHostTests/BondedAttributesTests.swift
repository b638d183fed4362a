import BLEATT
import BLEByteCoding
import BLECryptography
import BLEGATT
import BLEHCI
import BLESMP
import BluetoothTypes
import Testing

@testable import BluetoothHost

private let peer = bondedPeer

@Suite("Attributes of bonded peers")
struct BondedAttributesTests {
    @Test("A subscription is restored with the bond's key, and no value is sent on an unencrypted link")
    func subscriptionIsRestoredWithTheKeyOfTheBond() throws {
        let bonded = try BondedHost()
        let characteristic = try bonded.publish(.readEncrypted)
        let value = characteristic.valueHandle
        let descriptor = try #require(characteristic.clientConfigurationHandle).bytes
        bonded.fixture.connect(peer: peer)
        #expect(bonded.fixture.exchange([0x12] + descriptor + [1, 0]).first?.last == 0x05)
        _ = try bonded.verifyPeer()
        #expect(bonded.fixture.exchange([0x12] + descriptor + [1, 0]) == [[0x13]])
        #expect(try bonded.notify([61], of: value) == [[0x1B] + value.bytes + [61]])

        bonded.disconnect()
        bonded.fixture.connect(peer: peer)
        let subscribers = { try bonded.run { $0.subscribers(of: value, .notification).count } }
        #expect(try subscribers() == 0)
        #expect(try bonded.notify([62], of: value) == [])
        _ = try bonded.verifyPeer()
        #expect(try subscribers() == 1)
        #expect(try bonded.notify([63], of: value) == [[0x1B] + value.bytes + [63]])
        try bonded.run { $0.setEncrypted(false) }
        #expect(try bonded.notify([64], of: value) == [])
        let configuration = ServerSession.PersistentState.Configuration(
            handle: try #require(characteristic.clientConfigurationHandle),
            configuration: .notification,
            characteristic: "2A37"
        )
        #expect(bonded.store.record?.serverState?.configurations == [configuration])
    }

    @Test("The configuration of a client without a bond ends with its link")
    func configurationOfAClientWithoutABondEndsWithItsLink() throws {
        let bonded = try BondedHost()
        let characteristic = try bonded.publish(.read)
        let other = DeviceAddress(0xC0FF_EE00_0002, isRandom: true)
        let descriptor = try #require(characteristic.clientConfigurationHandle).bytes
        bonded.fixture.connect(peer: other)
        #expect(bonded.fixture.exchange([0x12] + descriptor + [1, 0]) == [[0x13]])
        bonded.disconnect()
        bonded.fixture.connect(peer: other)
        #expect(bonded.fixture.exchange([0x0A] + descriptor) == [[0x0B, 0, 0]])
        #expect(bonded.store.record?.serverState == nil)
    }

    @Test("Service Changed is sent to a client that was away, again until it has confirmed")
    func serviceChangedIsSentAgainUntilItIsConfirmed() throws {
        let bonded = try BondedHost()
        bonded.fixture.connect(peer: peer)
        _ = try bonded.verifyPeer()
        let handle = try #require(try bonded.run { $0.services.server.serviceChanged })
        let descriptor = AttributeHandle(handle.rawValue + 1).bytes
        #expect(bonded.fixture.exchange([0x12] + descriptor + [2, 0]) == [[0x13]])
        bonded.disconnect()
        _ = try bonded.publish(.read)
        let indication = [0x1D] + handle.bytes + [0x01, 0x00, 0xFF, 0xFF]
        for _ in 0..<2 {
            bonded.fixture.connect(peer: peer)
            #expect(bonded.sent == [], "not before its identity is verified")
            #expect(try bonded.verifyPeer() == [indication])
            bonded.disconnect()
        }
        bonded.fixture.connect(peer: peer)
        #expect(try bonded.verifyPeer() == [indication])
        #expect(bonded.fixture.exchange([0x1E]) == [])
        bonded.disconnect()
        bonded.fixture.connect(peer: peer)
        #expect(try bonded.verifyPeer() == [])
    }

    /// A link on which the verified peer has subscribed to Service Changed, and the indication that it gets.
    private func subscribed() throws -> (SecurityFixture, indication: [UInt8]) {
        let fixture = try SecurityFixture()
        try connect(fixture)
        verify(fixture)
        let handle = try #require(try fixture.run { $0.services.server.serviceChanged })
        #expect(fixture.exchange([0x12] + AttributeHandle(handle.rawValue + 1).bytes + [2, 0]) == [[0x13]])
        return (fixture, [0x1D] + handle.bytes + [0x01, 0x00, 0xFF, 0xFF])
    }

    private func connect(_ fixture: SecurityFixture) throws {
        try fixture.connect(.peripheral)
        fixture.controller.forgetData()
    }

    private func verify(_ fixture: SecurityFixture) {
        fixture.requestKey()
        fixture.encryptionChanged()
    }

    private func publishService(on fixture: SecurityFixture) throws {
        _ = try fixture.run { try $0.publish([ServiceDefinition(uuid: "180F")]) }
    }

    @Test("Service Changed for a peer that is not verified is sent once it is verified, for several changes once")
    func serviceChangedIsSentOnceThePeerIsVerified() throws {
        let (fixture, indication) = try subscribed()
        fixture.disconnected()
        try publishService(on: fixture)
        try connect(fixture)
        #expect(fixture.sent(on: 4) == [])
        try publishService(on: fixture)
        #expect(fixture.sent(on: 4) == [])
        verify(fixture)
        #expect(fixture.sent(on: 4) == [indication])
        #expect(fixture.exchange([0x1E]) == [])
        fixture.disconnected()
        try connect(fixture)
        verify(fixture)
        #expect(fixture.sent(on: 4) == [], "the peer has confirmed it")
    }

    @Test("Service Changed that was not sent does not count as confirmed")
    func unsentServiceChangedIsStillOwed() throws {
        let (fixture, indication) = try subscribed()
        fixture.controller.forgetData()
        try publishService(on: fixture)
        #expect(fixture.sent(on: 4).map(\.first) == [0x1D])
        fixture.controller.forgetData()
        // The second one waits for the confirmation of the first. Encryption ends before that confirmation.
        try publishService(on: fixture)
        fixture.encryptionChanged(isOn: false)
        #expect(fixture.exchange([0x1E]) == [])
        fixture.disconnected()
        try connect(fixture)
        verify(fixture)
        #expect(fixture.sent(on: 4) == [indication])
    }

    @Test("A confirmation of Service Changed that arrives after encryption has ended does not count")
    func confirmationOfAnUnverifiedPeerDoesNotCount() throws {
        let (fixture, indication) = try subscribed()
        fixture.controller.forgetData()
        try publishService(on: fixture)
        #expect(fixture.sent(on: 4).map(\.first) == [0x1D])
        fixture.encryptionChanged(isOn: false)
        #expect(fixture.exchange([0x1E]) == [])
        fixture.disconnected()
        try connect(fixture)
        verify(fixture)
        #expect(fixture.sent(on: 4) == [indication])
    }

    @Test("Service Changed whose confirmation does not count is sent again on the same link, once the peer is verified")
    func serviceChangedIsSentAgainOnTheSameLink() throws {
        let (fixture, indication) = try subscribed()
        try publishService(on: fixture)
        fixture.encryptionChanged(isOn: false)
        #expect(fixture.exchange([0x1E]) == [])
        verify(fixture)
        #expect(fixture.sent(on: 4) == [indication])
        fixture.encryptionChanged(isOn: false)
        fixture.controller.forgetData()
        verify(fixture)
        #expect(fixture.sent(on: 4) == [], "its confirmation is awaited")
        #expect(fixture.exchange([0x1E]) == [])
        fixture.encryptionChanged(isOn: false)
        verify(fixture)
        #expect(fixture.sent(on: 4) == [], "the peer has confirmed it")
    }

    @Test("A change of the services while the peer is not verified is indicated on the same link")
    func changeBeforeTheVerificationIsIndicatedOnTheSameLink() throws {
        let (fixture, indication) = try subscribed()
        try publishService(on: fixture)
        fixture.encryptionChanged(isOn: false)
        try publishService(on: fixture)
        fixture.controller.forgetData()
        verify(fixture)
        #expect(fixture.sent(on: 4) == [], "the confirmation of the first change is awaited")
        #expect(fixture.exchange([0x1E]) == [indication])
    }

    @Test("A subscription of a peer that was verified before its service was published is kept")
    func subscriptionOutlivesALinkWithoutTheService() throws {
        let bonded = try BondedHost()
        let characteristic = try bonded.publish(.readEncrypted)
        let descriptor = try #require(characteristic.clientConfigurationHandle).bytes
        bonded.fixture.connect(peer: peer)
        _ = try bonded.verifyPeer()
        #expect(bonded.fixture.exchange([0x12] + descriptor + [1, 0]) == [[0x13]])
        bonded.disconnect()
        // The declarations of the service and of the characteristic precede the value.
        try bonded.run { $0.removeService(at: AttributeHandle(characteristic.valueHandle.rawValue - 2)) }
        bonded.fixture.connect(peer: peer)
        _ = try bonded.verifyPeer()
        bonded.disconnect()
        let again = try bonded.publish(.readEncrypted)
        #expect(again.valueHandle == characteristic.valueHandle)
        bonded.fixture.connect(peer: peer)
        _ = try bonded.verifyPeer()
        #expect(try bonded.run { $0.subscribers(of: again.valueHandle, .notification).count } == 1)
    }

    @Test("A subscription that waits for its service is reported after the call that publishes the service")
    func waitingSubscriptionIsReportedAfterThePublication() throws {
        let bonded = try BondedHost()
        let characteristic = try bonded.publish(.readEncrypted)
        let descriptor = try #require(characteristic.clientConfigurationHandle).bytes
        bonded.fixture.connect(peer: peer)
        _ = try bonded.verifyPeer()
        #expect(bonded.fixture.exchange([0x12] + descriptor + [1, 0]) == [[0x13]])
        bonded.disconnect()
        try bonded.run { $0.removeService(at: AttributeHandle(characteristic.valueHandle.rawValue - 2)) }
        bonded.fixture.connect(peer: peer)
        _ = try bonded.verifyPeer()
        let configured = Recorder<AttributeHandle>()
        let observer = try bonded.run { host in
            host.observeServer { event in
                if case .access(_, .configured(let handle, _, _)) = event { configured.append(handle) }
            }
        }
        let definition = CharacteristicDefinition(
            uuid: "2A37",
            properties: [.read, .write, .notify, .authenticatedSignedWrites],
            permissions: .readEncrypted,
            value: .stored([60])
        )
        let early = try bonded.run { host in
            _ = try host.publish([ServiceDefinition(uuid: "180D", characteristics: [definition])])
            return configured.all.count
        }
        bonded.fixture.loop.run(for: .milliseconds(1))
        #expect(early == 0 && configured.all == [characteristic.valueHandle])
        #expect(try bonded.notify([63], of: characteristic.valueHandle).last?.last == 63)
        try bonded.run { $0.removeObserver(observer) }
    }

    @Test("Service Changed is not sent while encryption has ended, and at the latest on the next link")
    func serviceChangedIsNotSentWithoutEncryption() throws {
        let (fixture, indication) = try subscribed()
        fixture.encryptionChanged(isOn: false)
        fixture.controller.forgetData()
        try publishService(on: fixture)
        #expect(fixture.sent(on: 4) == [])
        verify(fixture)
        fixture.disconnected()
        try connect(fixture)
        #expect(fixture.sent(on: 4) == [])
        verify(fixture)
        #expect(fixture.sent(on: 4) == [indication])
    }

    @Test("The database of a bonded server is discovered once for several connections")
    func databaseOfABondedServerIsDiscoveredOnce() throws {
        let bonded = try BondedHost()
        let server = BLEGATT.Server(cmac: { _, message in
            let digest = message.reduce(into: UInt64(7)) { $0 = ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
            return Array(repeating: UInt8(truncatingIfNeeded: digest >> 24), count: 16)
        })
        _ = try server.publish([.genericAttribute, ServiceDefinition(uuid: "180F")])
        let hashRequest: [UInt8] = [0x08, 0x01, 0x00, 0xFF, 0xFF, 0x2A, 0x2B]

        bonded.fixture.connect(role: .central, peer: peer)
        let session = ServerSession(server: server)
        #expect(bonded.fixture.exchange([0x03, 0x17, 0x00]) == [], "ATT_MTU stays 23")
        let first = try serve(session, try bonded.verifyPeer(), bonded)
        #expect(first.first == hashRequest && first.count > 5)
        #expect(bonded.store.record?.clientCache?.services.map(\.uuid) == ["1801", "180F"])
        #expect(try discover(bonded) == ["1801", "180F"])

        bonded.disconnect()
        bonded.fixture.connect(role: .central, peer: peer)
        _ = bonded.fixture.exchange([0x03, 0x17, 0x00])
        let again = ServerSession(server: server)
        again.restore(session.persistentState)
        #expect(try serve(again, try bonded.verifyPeer(), bonded) == [hashRequest])
        bonded.fixture.controller.forgetData()
        #expect(try discover(bonded) == ["1801", "180F"])
        #expect(bonded.sent == [], "nothing is asked")

        // The server changes and indicates that.
        _ = try server.publish([ServiceDefinition(uuid: "180A")])
        let changed = try #require(server.serviceChanged)
        let confirmation = bonded.fixture.exchange([0x1D] + changed.bytes + [0x01, 0x00, 0xFF, 0xFF])
        #expect(confirmation == [[0x1E], hashRequest])
        again.serviceChangedConfirmed(revision: again.databaseRevision)
        _ = try serve(again, [hashRequest], bonded)
        #expect(try discover(bonded) == ["1801", "180F", "180A"])
    }

    /// Answers requests until there are no more.
    ///
    /// - Returns: the requests.
    private func serve(
        _ session: ServerSession,
        _ requests: [[UInt8]],
        _ bonded: BondedHost
    ) throws -> [[UInt8]] {
        var all: [[UInt8]] = []
        var waiting = requests
        while let request = waiting.first, all.count < 200 {
            all.append(request)
            var response = PacketBuffer()
            _ = session.receive(request.rawSpan, into: &response)
            waiting = bonded.fixture.exchange([UInt8](copying: response.bytes))
        }
        return all
    }

    private func discover(_ bonded: BondedHost) throws -> [BluetoothUUID] {
        let link = try bonded.link()
        return try bonded.run { try await $0.perform(DiscoverServices(), on: link) }.map(\.uuid)
    }

    @Test("Removing a bond returns when the removal is on the disk")
    func removalOfABondIsDurableWhenItReturns() throws {
        let bonded = try BondedHost()
        bonded.store.withhold()
        let removal = bonded.fixture.start { [host = bonded.host] in
            guard await host.removeBond(peer) else { throw HostError.closed }
        }
        bonded.fixture.loop.run(for: .seconds(60))
        #expect(removal.all.isEmpty)
        #expect(bonded.store.record == nil)
        bonded.store.settle(true)
        bonded.fixture.loop.run(for: .milliseconds(1))
        #expect(removal.all.count == 1)
        #expect(throws: Never.self) { try removal.all.first?.get() }
    }

    @Test("The app alone decides whether a client is authorized")
    func appAloneDecidesWhetherAClientIsAuthorized() throws {
        let bonded = try BondedHost()
        let handle = try bonded.publish([.read, .readAuthorized]).valueHandle.bytes
        bonded.fixture.connect(peer: peer)
        #expect(bonded.fixture.exchange([0x0A] + handle) == [[0x01, 0x0A] + handle + [0x08]])
        let asked = Recorder<(LinkIdentifier, AuthorizationRequest)>()
        try bonded.run { $0.setAuthorizer { asked.append(($0, $1)) } }
        #expect(bonded.fixture.exchange([0x0A] + handle) == [])
        let (link, request) = try #require(asked.all.first)
        bonded.fixture.controller.forgetData()
        try bonded.run { $0.authorize(request.identifier, on: link, isAuthorized: true) }
        #expect(bonded.sent == [[0x0B, 60]])
        #expect(bonded.fixture.exchange([0x0A] + handle) == [[0x0B, 60]])
        #expect(asked.all.count == 1)
    }
}
