import BLEGATT
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("The app's decisions about the authorization of clients")
struct AuthorizerTests {
    @Test("Without an authorizer, a request that waits for a decision is refused, and a later decision has no effect")
    func waitingRequestIsRefusedWithoutAnAuthorizer() throws {
        let bonded = try BondedHost()
        let handle = try bonded.publish([.read, .readAuthorized]).valueHandle.bytes
        let refusal = [0x01, 0x0A] + handle + [0x08]
        bonded.fixture.connect(peer: bondedPeer)
        let asked = Recorder<(LinkIdentifier, AuthorizationRequest)>()
        try bonded.run { $0.setAuthorizer { asked.append(($0, $1)) } }
        #expect(bonded.fixture.exchange([0x0A] + handle) == [])
        let (link, request) = try #require(asked.all.first)
        bonded.fixture.controller.forgetData()
        try bonded.run { $0.setAuthorizer(nil) }
        #expect(bonded.sent == [refusal])
        bonded.fixture.controller.forgetData()
        try bonded.run { $0.authorize(request.identifier, on: link, isAuthorized: true) }
        #expect(bonded.sent == [])
        #expect(bonded.fixture.exchange([0x0A] + handle) == [refusal])
    }

    @Test("Without an authorizer, requests on enhanced bearers are refused, also if their bearer has ended")
    func waitingRequestsOfEnhancedBearersAreRefused() throws {
        let fixture = try EnhancedBearerFixture()
        let handle = try publishAuthorized(on: fixture)
        let refusal = [0x01, 0x0A] + handle + [0x08]
        let asked = Recorder<AuthorizationRequest>()
        try fixture.run { $0.setAuthorizer { _, request in asked.append(request) } }
        _ = fixture.peerOpens(2)
        for bearer in 0..<2 { #expect(fixture.exchange([0x0A] + handle, on: bearer).isEmpty) }
        // The peer ends the first bearer.
        fixture.send([0x06, 5, 4, 0, 0x40, 0, 0x41, 0], on: 5)
        fixture.security.controller.forgetData()
        try fixture.run { $0.setAuthorizer(nil) }
        #expect(fixture.sent(on: 1) == [refusal])
        let (link, requests) = (fixture.link, asked.all.map(\.identifier))
        #expect(requests.count == 2)
        try fixture.run { host in
            for request in requests { host.authorize(request, on: link, isAuthorized: true) }
        }
        #expect(fixture.security.exchange([0x0A] + handle) == [refusal], "the client is not authorized")
    }

    /// Publishes a value that needs the app's authorization.
    ///
    /// - Returns: the bytes of its handle.
    private func publishAuthorized(on fixture: EnhancedBearerFixture) throws -> [UInt8] {
        try fixture.run { host in
            let definition = CharacteristicDefinition(
                uuid: "2A37",
                properties: .read,
                permissions: [.read, .readAuthorized],
                value: .stored([60])
            )
            let services = try host.publish([ServiceDefinition(uuid: "180D", characteristics: [definition])])
            return services[0].characteristics[0].valueHandle
        }.bytes
    }

    @Test("Without an authorizer, refused requests of ended bearers do not count against their limit")
    func refusedRequestsOfEndedBearersDoNotCount() throws {
        let fixture = try EnhancedBearerFixture(limit: 1)
        let handle = try publishAuthorized(on: fixture)
        try fixture.run { $0.setAuthorizer { _, _ in } }
        for number in 0..<EnhancedBearers.orphanLimit {
            let identifier = UInt8(2 * number + 1)
            #expect(fixture.peerOpens(identifier: identifier)?[10] == 0)
            #expect(fixture.exchange([0x0A] + handle, on: number).isEmpty)
            fixture.send([0x06, identifier + 1, 4, 0, 0x40 + UInt8(number), 0, 0x41, 0], on: 5)
        }
        _ = fixture.peerOpens(identifier: 0xF0)
        #expect(try fixture.bearerMTUs.isEmpty)
        try fixture.run { $0.setAuthorizer(nil) }
        _ = fixture.peerOpens(identifier: 0xF1, firstSource: 0x50)
        #expect(try fixture.bearerMTUs == [100])
    }

    @Test("A decision about a request of an ended bearer does not authorize a device that has paired since")
    func decisionAboutAnEarlierClientHasNoEffect() throws {
        let fixture = try EnhancedBearerFixture()
        let handle = try publishAuthorized(on: fixture)
        let asked = Recorder<AuthorizationRequest>()
        try fixture.run { $0.setAuthorizer { _, request in asked.append(request) } }
        _ = fixture.peerOpens()
        #expect(fixture.exchange([0x0A] + handle).isEmpty)
        // The peer ends the bearer.
        fixture.send([0x06, 5, 4, 0, 0x40, 0, 0x41, 0], on: 5)
        let (link, request) = (fixture.link, try #require(asked.all.first).identifier)
        try fixture.run { host in
            guard let earlier = host.links[link] else { return }
            earlier.att.forgetPeer()
            host.performServerEffects(of: earlier)
            host.authorize(request, on: link, isAuthorized: true)
        }
        #expect(fixture.security.exchange([0x0A] + handle).isEmpty)
        #expect(asked.all.count == 2, "the app is asked about this client")
    }

    @Test("A decision about a link that has ended does not authorize the next link of the client")
    func decisionAfterTheEndOfTheLinkHasNoEffect() throws {
        let bonded = try BondedHost()
        let handle = try bonded.publish([.read, .readAuthorized]).valueHandle.bytes
        let asked = Recorder<(LinkIdentifier, AuthorizationRequest)>()
        try bonded.run { $0.setAuthorizer { asked.append(($0, $1)) } }
        bonded.fixture.connect(peer: bondedPeer)
        #expect(bonded.fixture.exchange([0x0A] + handle) == [])
        let (link, request) = try #require(asked.all.first)
        bonded.disconnect()
        bonded.fixture.connect(peer: bondedPeer)
        try bonded.run { $0.authorize(request.identifier, on: link, isAuthorized: true) }
        #expect(bonded.fixture.exchange([0x0A] + handle) == [])
        #expect(asked.all.count == 2, "the app is asked again")
    }
}
