import BLEATT
import BLEGATT
import BluetoothTypes
import Testing

/// A session whose link another device may use by now.
@Suite("A client that the server forgets")
struct ForgottenClientTests {
    private func fixture() throws -> ServerFixture {
        try ServerFixture([
            CharacteristicDefinition(
                uuid: "2A37",
                properties: [.read, .notify],
                permissions: [.read, .readAuthorized],
                value: .stored([60])
            )
        ])
    }

    @Test("Its subscriptions, features and authorization end, and the end of a subscription is reported")
    func stateOfTheClientEnds() throws {
        let fixture = try fixture()
        let value = fixture.service.characteristics[0].valueHandle
        fixture.session.security.isAuthorized = true
        let state = ServerSession.PersistentState(
            configurations: [.init(handle: 0x0100, configuration: .notification)],
            clientFeatures: ClientSupportedFeatures.robustCaching.rawValue
        )
        fixture.session.restore(state)
        let subscription = [0x12] + (try fixture.configurationHandle(0)) + [1, 0]
        #expect(fixture.send(subscription).response == [0x01, 0x12, 0, 0, 0x12], "the client has missed a change")
        #expect(fixture.send(subscription).response == [0x13])
        #expect(fixture.session.sendable(of: value) == .notification)
        _ = fixture.outputs
        fixture.session.forgetClient()
        #expect(fixture.session.takeOutput() == .event(.configured(value, from: .notification, to: [])))
        #expect(fixture.session.takeOutput() == nil)
        let forgotten = fixture.session.persistentState
        #expect(forgotten.configurations.isEmpty && forgotten.clientFeatures == 0)
        #expect(!fixture.session.security.isAuthorized)
        #expect(fixture.session.sendable(of: value) == [])
    }

    @Test("The next client counts as unaware only of a change on this connection", arguments: [true, false])
    func nextClientMayHaveMissedAChange(isChanged: Bool) throws {
        let fixture = try ServerFixture([], cmac: Conversation.digest)
        if isChanged { _ = try fixture.server.publish([ServiceDefinition(uuid: "180F")]) }
        fixture.session.forgetClient()
        let hash = try #require(fixture.server.databaseHash)
        #expect(fixture.session.persistentState.knownDatabaseHash == (isChanged ? nil : hash))
    }

    private static func characteristic(
        _ permissions: AttributePermissions = [.read, .write],
        value: CharacteristicDefinition.Value = .stored([1])
    ) -> CharacteristicDefinition {
        CharacteristicDefinition(uuid: "B001", properties: [.read, .write], permissions: permissions, value: value)
    }

    @Test("The next client does not execute the writes that it prepared")
    func preparedWritesEnd() throws {
        let fixture = try ServerFixture([Self.characteristic()])
        #expect(fixture.send([0x16] + fixture.handle(0) + [0, 0, 9]).response.first == 0x17)
        fixture.session.forgetClient()
        #expect(fixture.send([0x18, 1]).response == [0x19])
        #expect(fixture.server.value(of: fixture.service.characteristics[0].valueHandle) == [1])
    }

    @Test("The next client does not get the value that the app has read for it")
    func waitingReadFails() throws {
        let fixture = try ServerFixture([Self.characteristic(value: .handled)])
        let read = [0x0A] + fixture.handle(0)
        guard case .access(let first) = fixture.send(read).action else {
            Issue.record("the app was not asked")
            return
        }
        fixture.session.forgetClient()
        #expect(fixture.complete(first.identifier, .success([7])).1 == [0x01, 0x0A, 0, 0, 0x0E])
        guard case .access(let second) = fixture.send(read).action else {
            Issue.record("the app was not asked about the next client")
            return
        }
        #expect(fixture.complete(second.identifier, .success([8])).1 == [0x0B, 8])
    }

    @Test("The app's consent to it does not authorize the next client")
    func waitingConsentAuthorizesNobody() throws {
        let fixture = try ServerFixture([Self.characteristic([.read, .readAuthorized])])
        fixture.session.asksForAuthorization = true
        guard case .authorize(let question) = fixture.send([0x0A] + fixture.handle(0)).action else {
            Issue.record("the app was not asked")
            return
        }
        #expect(fixture.session.awaitedAuthorization == question.identifier)
        fixture.session.forgetClient()
        #expect(fixture.authorize(question.identifier, true).1 == [0x01, 0x0A, 0, 0, 0x0E])
        #expect(!fixture.session.security.isAuthorized)
        #expect(fixture.session.awaitedAuthorization == nil)
    }
}
