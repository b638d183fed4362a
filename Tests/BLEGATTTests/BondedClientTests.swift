import BLEATT
import BLEByteCoding
import BLEGATT
import BluetoothTypes
import Testing

/// A server with its GATT service and one characteristic of an app, and a bonded client that connects several times.
private final class BondedFixture {
    let server = Server(cmac: Conversation.digest)
    let heart: PublishedCharacteristic
    let standard: PublishedService
    private(set) var session: ServerSession
    private var takenEvents: [ServerEvent] = []
    private var storedState: ServerSession.PersistentState?
    /// Whether the client has verified its bond.
    private var isVerified = true

    init(permissions: AttributePermissions = .read) throws {
        standard = try server.publish([.genericAttribute])[0]
        heart = try server.publish([
            ServiceDefinition(
                uuid: "180D",
                characteristics: [
                    CharacteristicDefinition(
                        uuid: "2A37",
                        properties: [.read, .notify],
                        permissions: permissions,
                        value: .stored([60])
                    )
                ]
            )
        ])[0].characteristics[0]
        session = ServerSession(server: server)
    }

    /// The last state that was stored.
    var kept: ServerSession.PersistentState? {
        takeOutputs()
        return storedState
    }

    /// The client's events on this connection.
    var events: [ServerEvent] {
        takeOutputs()
        return takenEvents
    }

    private func takeOutputs() {
        while let output = session.takeOutput() {
            switch output {
            case .event(let event): takenEvents.append(event)
            case .persistentStateChanged: if isVerified { storedState = session.persistentState }
            }
        }
    }

    /// The client reconnects, and verifies its bond.
    func reconnect(isVerified: Bool = true) {
        takeOutputs()
        takenEvents = []
        session = ServerSession(server: server)
        session.reportsEvents = true
        self.isVerified = false
        if isVerified { becomeVerified() }
    }

    func becomeVerified() {
        session.security = LinkSecurity(isEncrypted: true, keySize: 16, hasKey: true)
        if let kept { session.restore(kept) }
        isVerified = true
        storedState = session.persistentState
    }

    func send(_ pdu: [UInt8]) -> [UInt8] {
        var buffer = PacketBuffer()
        _ = session.receive(pdu.rawSpan, into: &buffer)
        return [UInt8](copying: buffer.bytes)
    }

    func write(_ value: [UInt8], to handle: AttributeHandle?) throws -> [UInt8] {
        try send([0x12] + #require(handle).bytes + value)
    }

    func characteristic(_ uuid: BluetoothUUID) throws -> PublishedCharacteristic {
        try #require(standard.characteristics.first { $0.uuid == uuid })
    }

    /// Configures Service Changed and enables robust caching.
    func configureCaching() throws {
        #expect(try write([2, 0], to: characteristic(.serviceChanged).clientConfigurationHandle) == [0x13])
        #expect(try write([1], to: characteristic(.clientSupportedFeatures).valueHandle) == [0x13])
    }

    func change() throws {
        _ = try server.publish([ServiceDefinition(uuid: "180F")])
    }

    func confirmServiceChanged() throws -> [UInt8] {
        var buffer = PacketBuffer()
        session.indicate([1, 0, 0xFF, 0xFF].rawSpan, of: try #require(server.serviceChanged), into: &buffer)
        session.serviceChangedConfirmed(revision: session.databaseRevision)
        return [UInt8](copying: buffer.bytes)
    }
}

@Suite("A bonded client of the server")
struct BondedClientTests {
    @Test("A client's configuration is restored with its bond's key, and not before")
    func configurationIsRestoredWithTheBondsKeyAndNotBefore() throws {
        let fixture = try BondedFixture()
        #expect(try fixture.write([1, 0], to: fixture.heart.clientConfigurationHandle) == [0x13])
        fixture.reconnect(isVerified: false)
        #expect(fixture.session.configuration(of: fixture.heart.valueHandle) == [])
        fixture.becomeVerified()
        #expect(fixture.session.sendable(of: fixture.heart.valueHandle) == .notification)
        #expect(fixture.events == [.configured(fixture.heart.valueHandle, from: [], to: .notification)])
    }

    @Test("A configuration written before the bond is verified replaces the stored one")
    func configurationWrittenBeforeVerificationReplacesTheStoredOne() throws {
        let fixture = try BondedFixture()
        _ = try fixture.write([1, 0], to: fixture.heart.clientConfigurationHandle)
        fixture.reconnect(isVerified: false)
        _ = try fixture.write([0, 0], to: fixture.heart.clientConfigurationHandle)
        fixture.becomeVerified()
        #expect(fixture.session.configuration(of: fixture.heart.valueHandle) == [])
        #expect(fixture.kept?.configurations == [])
    }

    @Test("Stored state is in the order of handles, whatever the order of the writes")
    func storedStateIsInTheOrderOfHandles() throws {
        let fixture = try BondedFixture()
        let changed = try #require(try fixture.characteristic(.serviceChanged).clientConfigurationHandle)
        let heart = try #require(fixture.heart.clientConfigurationHandle)
        _ = try fixture.write([1, 0], to: heart)
        _ = try fixture.write([2, 0], to: changed)
        #expect(
            fixture.kept
                == ServerSession.PersistentState(
                    configurations: [
                        .init(handle: changed, configuration: .indication, characteristic: .serviceChanged),
                        .init(handle: heart, configuration: .notification, characteristic: "2A37"),
                    ],
                    knownDatabaseHash: fixture.server.databaseHash
                )
        )
    }

    @Test("A stored configuration that its descriptor does not allow is ignored; one without a descriptor waits")
    func impossibleStoredConfigurationIsIgnored() throws {
        let fixture = try BondedFixture()
        let heart = try #require(fixture.heart.clientConfigurationHandle)
        let session = ServerSession(server: fixture.server)
        session.restore(
            .init(
                configurations: [
                    .init(handle: 0x0001, configuration: .notification),
                    .init(handle: heart, configuration: .indication),
                    .init(handle: 0x0F00, configuration: .notification),
                ],
                clientFeatures: 0xFF,
                knownDatabaseHash: fixture.server.databaseHash
            )
        )
        #expect(
            session.persistentState
                == .init(
                    configurations: [.init(handle: 0x0F00, configuration: .notification)],
                    clientFeatures: 0x05,
                    knownDatabaseHash: fixture.server.databaseHash
                )
        )
    }

    @Test(
        "A configuration whose handle belongs to another characteristic now is not restored",
        arguments: [true, false]
    )
    func configurationOfAMovedCharacteristicIsNotRestored(isTypeKnown: Bool) throws {
        func characteristic(_ uuid: BluetoothUUID) -> CharacteristicDefinition {
            CharacteristicDefinition(uuid: uuid, properties: .notify, permissions: .read, value: .stored([60]))
        }
        func publish(_ uuids: [BluetoothUUID]) throws -> (Server, [PublishedCharacteristic]) {
            let server = Server(cmac: Conversation.digest)
            let definition = ServiceDefinition(uuid: "180D", characteristics: uuids.map(characteristic))
            return (server, try server.publish([.genericAttribute, definition])[1].characteristics)
        }
        let (former, old) = try publish(["2A37", "2A38"])
        let client = ServerSession(server: former)
        let handles = try old.map { try #require($0.clientConfigurationHandle) }
        var kept = ServerSession.PersistentState(knownDatabaseHash: former.databaseHash)
        kept.configurations = zip(handles, ["2A37", "2A38"] as [BluetoothUUID]).map {
            .init(handle: $0, configuration: .notification, characteristic: isTypeKnown ? $1 : nil)
        }
        client.restore(kept)
        #expect(client.persistentState.configurations.map(\.handle) == handles)

        let (current, new) = try publish(["2A39", "2A38"])
        let returned = ServerSession(server: current)
        returned.restore(kept)
        #expect(returned.configuration(of: new[0].valueHandle) == [])
        #expect(returned.configuration(of: new[1].valueHandle) == (isTypeKnown ? .notification : []))
        let saved = returned.persistentState.configurations
        #expect(saved.map(\.characteristic) == (isTypeKnown ? ["2A38"] : []))
    }

    @Test("A configuration waits until its characteristic is published, and is stored until then")
    func configurationWaitsUntilItsCharacteristicIsPublished() throws {
        let fixture = try BondedFixture()
        let heart = try #require(fixture.heart.clientConfigurationHandle)
        fixture.reconnect()
        #expect(try fixture.write([1, 0], to: heart) == [0x13])
        let kept = try #require(fixture.kept)
        let server = Server(cmac: Conversation.digest)
        _ = try server.publish([.genericAttribute])
        let session = ServerSession(server: server)
        session.reportsEvents = true
        session.restore(kept)
        #expect(session.persistentState.configurations == kept.configurations)
        let definition = CharacteristicDefinition(
            uuid: "2A37",
            properties: [.read, .notify],
            permissions: .read,
            value: .stored([60])
        )
        _ = try server.publish([ServiceDefinition(uuid: "180D", characteristics: [definition])])
        session.servicesPublished()
        #expect(session.configuration(of: fixture.heart.valueHandle) == .notification)
        #expect(session.persistentState.configurations == kept.configurations)
        guard case .event(.configured(fixture.heart.valueHandle, from: [], to: .notification))? = session.takeOutput()
        else {
            Issue.record("the subscription was not reported")
            return
        }
    }

    @Test("Service Changed is sent after reconnections until the client confirms it")
    func serviceChangedIsSentAgainUntilTheClientConfirmsIt() throws {
        let fixture = try BondedFixture()
        _ = try fixture.write([2, 0], to: fixture.characteristic(.serviceChanged).clientConfigurationHandle)
        fixture.reconnect()
        #expect(!fixture.session.isServiceChangedOwed)
        fixture.reconnect(isVerified: false)
        try fixture.change()
        fixture.reconnect()
        #expect(fixture.session.isServiceChangedOwed && fixture.kept?.isServiceChangedOwed == true)
        fixture.reconnect()
        #expect(fixture.session.isServiceChangedOwed, "it has not confirmed")
        let value = try #require(fixture.server.serviceChanged).bytes
        #expect(try fixture.confirmServiceChanged() == [0x1D] + value + [1, 0, 0xFF, 0xFF])
        #expect(!fixture.session.isServiceChangedOwed)
        #expect(fixture.kept?.knownDatabaseHash == fixture.server.databaseHash)
        fixture.reconnect()
        #expect(!fixture.session.isServiceChangedOwed)
    }

    @Test("A confirmation of an earlier Service Changed does not count for a later one")
    func confirmationOfAnEarlierServiceChangedDoesNotCount() throws {
        let fixture = try BondedFixture()
        try fixture.configureCaching()
        try fixture.change()
        var buffer = PacketBuffer()
        let revision = fixture.session.databaseRevision
        let handle = try #require(fixture.server.serviceChanged)
        fixture.session.indicate([1, 0, 2, 0].rawSpan, of: handle, into: &buffer)
        try fixture.change()
        // The indication of the second change may be sent before the host handles the confirmation of the first.
        fixture.session.indicate([1, 0, 2, 0].rawSpan, of: handle, into: &buffer)
        fixture.session.serviceChangedConfirmed(revision: revision)
        #expect(fixture.session.isServiceChangedOwed)
        #expect(fixture.kept?.knownDatabaseHash == nil)
    }

    @Test(
        "A late confirmation of an earlier Service Changed does not make an aware client unaware",
        arguments: [false, true]
    )
    func lateConfirmationKeepsAwareness(isConfirmedBeforeRead: Bool) throws {
        let fixture = try BondedFixture()
        try fixture.configureCaching()
        let read = [0x0A] + fixture.heart.valueHandle.bytes
        try fixture.change()
        let earlier = fixture.session.databaseRevision
        try fixture.change()
        #expect(fixture.send([0x08, 1, 0, 0xFF, 0xFF, 0x2A, 0x2B]).first == 0x09)
        if isConfirmedBeforeRead { fixture.session.serviceChangedConfirmed(revision: earlier) }
        #expect(fixture.send(read) == [0x0B, 60])
        if !isConfirmedBeforeRead { fixture.session.serviceChangedConfirmed(revision: earlier) }
        #expect(fixture.kept?.knownDatabaseHash == fixture.server.databaseHash)
        #expect(fixture.session.isServiceChangedOwed, "the second indication is not confirmed")
        #expect(fixture.send(read) == [0x0B, 60])
    }

    @Test("Awareness lasts over connections: a client gets Service Changed only if it missed a change")
    func clientGetsServiceChangedOnlyIfItMissedAChange() throws {
        let fixture = try BondedFixture()
        try fixture.configureCaching()
        let read = [0x0A] + fixture.heart.valueHandle.bytes
        fixture.reconnect()
        #expect(fixture.send(read) == [0x0B, 60])
        fixture.reconnect(isVerified: false)
        try fixture.change()
        fixture.reconnect()
        let outOfSync: [UInt8] = [0x01, 0x0A, 0x00, 0x00, 0x12]
        #expect(fixture.send(read) == outOfSync)
        fixture.reconnect()
        #expect(fixture.send(read) == outOfSync, "it was told on the connection before, but has asked nothing since")
        #expect(fixture.send(read) == [0x0B, 60])
        fixture.reconnect()
        #expect(fixture.send(read) == [0x0B, 60])
    }

    @Test("A change that is undone while the client is away was not missed")
    func changeThatIsUndoneMeanwhileWasNotMissed() throws {
        let fixture = try BondedFixture()
        try fixture.configureCaching()
        fixture.reconnect(isVerified: false)
        let service = try fixture.server.publish([ServiceDefinition(uuid: "180F")])[0]
        _ = fixture.server.remove(serviceAt: service.handle)
        fixture.reconnect()
        #expect(!fixture.session.isServiceChangedOwed)
        #expect(fixture.send([0x0A] + fixture.heart.valueHandle.bytes) == [0x0B, 60])
    }

    @Test("Without a hash, any change may have been missed, and the client gets Service Changed")
    func clientGetsServiceChangedIfThereIsNoHash() throws {
        let server = Server()
        let standard = try server.publish([.genericAttribute])[0]
        let descriptor = try #require(standard.characteristics[0].clientConfigurationHandle)
        let session = ServerSession(server: server)
        session.restore(.init(configurations: [.init(handle: descriptor, configuration: .indication)]))
        #expect(session.isServiceChangedOwed)
    }

    @Test(
        "A client that missed a change gets the error for handles, but not for discovery",
        arguments: [
            ([0x0A, 3, 0], true), ([0x0C, 3, 0, 0, 0], true), ([0x0E, 3, 0, 5, 0], true), ([0x20, 3, 0, 5, 0], true),
            ([0x12, 3, 0, 1], true), ([0x16, 3, 0, 0, 0, 1], true),
            ([0x08, 1, 0, 0x20, 0, 0x37, 0x2A], true), ([0x08, 1, 0, 0xFF, 0xFF, 0x37, 0x2A], false),
            ([0x08, 1, 0, 0x20, 0, 0x02, 0x28], false), ([0x08, 1, 0, 0x20, 0, 0x03, 0x28], false),
            ([0x10, 1, 0, 0xFF, 0xFF, 0x00, 0x28], false), ([0x06, 1, 0, 0xFF, 0xFF, 0x00, 0x28, 0x0D, 0x18], false),
            ([0x04, 1, 0, 0xFF, 0xFF], false), ([0x18, 1], false),
        ] as [([UInt8], Bool)]
    )
    func clientThatMissedAChangeGetsTheErrorForHandlesOnly(request: [UInt8], isRefused: Bool) throws {
        let fixture = try BondedFixture()
        try fixture.configureCaching()
        try fixture.change()
        let error: [UInt8] = [0x01, request[0], 0x00, 0x00, 0x12]
        #expect((fixture.send(request) == error) == isRefused)
        #expect(fixture.send([0x0A] + fixture.heart.valueHandle.bytes).last == (isRefused ? 60 : 0x12))
    }

    @Test("Writes prepared before a change are not executed after it")
    func writesPreparedBeforeAChangeAreNotExecutedAfterIt() throws {
        let fixture = try BondedFixture()
        try fixture.configureCaching()
        let descriptor = try #require(fixture.heart.clientConfigurationHandle).bytes
        #expect(fixture.send([0x16] + descriptor + [0, 0, 1, 0]).first == 0x17)
        try fixture.change()
        #expect(fixture.send([0x18, 1]) == [0x01, 0x18, 0x00, 0x00, 0x12])
        #expect(fixture.send([0x18, 1]) == [0x19])
        #expect(fixture.session.configuration(of: fixture.heart.valueHandle) == [])
    }

    @Test("Reading the hash and another request make a client aware")
    func readingTheHashAndAnotherRequestMakeAClientAware() throws {
        let fixture = try BondedFixture()
        try fixture.configureCaching()
        try fixture.change()
        #expect(fixture.send([0x08, 1, 0, 0xFF, 0xFF, 0x2A, 0x2B]).first == 0x09)
        #expect(fixture.kept?.knownDatabaseHash != fixture.server.databaseHash)
        #expect(fixture.send([0x0A] + fixture.heart.valueHandle.bytes) == [0x0B, 60])
        #expect(fixture.kept?.knownDatabaseHash == fixture.server.databaseHash)
    }

    @Test("A client that missed a change gets only Service Changed until it is aware")
    func unawareClientGetsOnlyServiceChanged() throws {
        let fixture = try BondedFixture()
        try fixture.configureCaching()
        _ = try fixture.write([1, 0], to: fixture.heart.clientConfigurationHandle)
        #expect(fixture.session.sendable(of: fixture.heart.valueHandle) == .notification)
        try fixture.change()
        #expect(fixture.session.sendable(of: fixture.heart.valueHandle) == [])
        #expect(fixture.session.sendable(of: try #require(fixture.server.serviceChanged)) == .indication)
        _ = try fixture.confirmServiceChanged()
        #expect(fixture.session.sendable(of: fixture.heart.valueHandle) == .notification)
    }

    @Test(
        "A value that needs a secure link is not sent on an insecure one",
        arguments: [
            (AttributePermissions.read, LinkSecurity(), true), (.readEncrypted, LinkSecurity(), false),
            (.readEncrypted, LinkSecurity(hasKey: true), false),
            (.readEncrypted, LinkSecurity(isEncrypted: true, keySize: 16), true),
            (.readEncrypted, LinkSecurity(isEncrypted: true, keySize: 7), false),
            (.readAuthenticated, LinkSecurity(isEncrypted: true, keySize: 16), false),
            (.readAuthenticated, LinkSecurity(isEncrypted: true, isAuthenticated: true, keySize: 16), true),
            (.readAuthorized, LinkSecurity(isEncrypted: true, keySize: 16), false),
            (.readAuthorized, LinkSecurity(isAuthorized: true), true), ([], LinkSecurity(), true),
        ] as [(AttributePermissions, LinkSecurity, Bool)]
    )
    func valueThatNeedsASecureLinkIsNotSentOnAnInsecureOne(
        permissions: AttributePermissions,
        security: LinkSecurity,
        isSent: Bool
    ) throws {
        let fixture = try BondedFixture(permissions: permissions)
        fixture.session.security = LinkSecurity(
            isEncrypted: true,
            isAuthenticated: true,
            keySize: 16,
            isAuthorized: true
        )
        #expect(try fixture.write([1, 0], to: fixture.heart.clientConfigurationHandle) == [0x13])
        fixture.session.security = security
        #expect(fixture.session.sendable(of: fixture.heart.valueHandle) == (isSent ? .notification : []))
    }

    @Test("A descriptor that requires encryption stops notifications on an unencrypted link")
    func descriptorThatNeedsEncryptionStopsNotificationsWithoutIt() throws {
        let server = Server()
        let characteristic = try server.publish([
            ServiceDefinition(
                uuid: "A00A",
                characteristics: [
                    CharacteristicDefinition(
                        uuid: "B001",
                        properties: [.read, .notify],
                        permissions: .read,
                        value: .stored([1]),
                        descriptors: [
                            DescriptorDefinition(
                                uuid: .clientCharacteristicConfiguration,
                                value: .stored([0, 0]),
                                permissions: [.read, .writeEncrypted]
                            )
                        ]
                    )
                ]
            )
        ])[0].characteristics[0]
        let session = ServerSession(server: server)
        let request = try [0x12] + #require(characteristic.clientConfigurationHandle).bytes + [1, 0]
        func write() -> UInt8? {
            var buffer = PacketBuffer()
            _ = session.receive(request.rawSpan, into: &buffer)
            return [UInt8](copying: buffer.bytes).last
        }
        #expect(write() == 0x05)
        session.security = LinkSecurity(isEncrypted: true, keySize: 16)
        #expect(write() == 0x13)
        #expect(session.sendable(of: characteristic.valueHandle) == .notification)
        session.security.isEncrypted = false
        #expect(session.sendable(of: characteristic.valueHandle) == [])
    }

    @Test("The configuration of a removed service is removed")
    func configurationOfARemovedServiceIsRemoved() throws {
        let fixture = try BondedFixture()
        _ = try fixture.write([1, 0], to: fixture.heart.clientConfigurationHandle)
        let range = try #require(fixture.server.remove(serviceAt: AttributeHandle(fixture.heart.handle.rawValue - 1)))
        fixture.session.servicesRemoved(in: range)
        #expect(fixture.kept?.configurations == [])
    }
}
