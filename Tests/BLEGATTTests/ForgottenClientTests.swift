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
}
