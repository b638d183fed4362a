import BLE
import BluetoothHost
import BluetoothTesting
import BluetoothTypes
import Testing

@testable import CoreBluetooth

@Suite("Functions of a manager's security")
struct SecurityFunctionTests {
    /// An app that consents to each pairing.
    private struct Consent: PairingDelegate {
        func answer(_ inquiry: PairingInquiry) async -> PairingAnswer { .accept }
    }

    @Test(arguments: [true, false]) func outOfBandDataAuthenticateAPairing(isSecureConnections: Bool) throws {
        try World.run(seed: 121) { world in
            let pair = try await LampAndPhone(world)
            let lamp = CBSecurity(shared: pair.lampDevice.shared)
            let phone = CBSecurity(shared: pair.phoneDevice.shared)
            let data = try #require(await lamp.makeOutOfBandData(isSecureConnections: isSecureConnections))
            var policy = SecurityPolicy()
            policy.offersSecureConnections = isSecureConnections
            var lampPolicy = policy
            lampPolicy.ownOutOfBandData = data.secret
            policy.peerOutOfBandData = data.forPeer
            if case .temporaryKey(let key) = data.forPeer {
                lampPolicy.peerOutOfBandData = .temporaryKey(key)
                policy.ownOutOfBandData = .temporaryKey(key)
            }
            lamp.setPolicy(lampPolicy)
            phone.setPolicy(policy)
            for security in [lamp, phone] { security.setPairingDelegate(Consent()) }
            let events = phone.events
            let peer = try await pair.phoneDevice.adapter.central.connect(to: pair.lampDevice.device.address)
            #expect(try await peer.pair(RequiredSecurity(isAuthenticated: true)).isAuthenticated)
            var model: AssociationModel?
            for await event in events {
                guard case .paired(_, let result) = event else { continue }
                model = result.model
                break
            }
            #expect(model == .outOfBand)
        }
    }

    @Test func usedOutOfBandDataDoNotReturnWithThePolicyOfTheApp() throws {
        try World.run(seed: 123) { world in
            let device = world.device("lamp")
            let adapter = try await device.openAdapter()
            let data = await adapter.makeOutOfBandData()
            var own = SecurityPolicy()
            own.ownOutOfBandData = data.secret
            await adapter.setSecurityPolicy(own)
            let shared = HostRegistry.host(on: adapter, for: .peripheral)
            let lamp = TestPeripheral(HostPeripheral(shared))
            await lamp.events.next { if case .stateChanged(.poweredOn) = $0 { () } else { nil } }
            var policy = own
            policy.usesKeypressNotifications = true
            let security = CBSecurity(shared: shared)
            security.setPolicy(policy)
            security.setPairingDelegate(Consent())
            try await lamp.advertise("lamp", [])
            let phone = try await BackendDevice("phone", in: world).adapter
            var phonePolicy = SecurityPolicy()
            phonePolicy.peerOutOfBandData = data.forPeer
            await phone.setSecurityPolicy(phonePolicy)
            let peer = try await phone.central.connect(to: device.address)
            #expect(try await peer.pair(RequiredSecurity(isAuthenticated: true)).isAuthenticated)
            lamp.backend.stop()
            try await world.sleep(for: .seconds(1))
            own.ownOutOfBandData = nil
            #expect(await adapter.host.currentSecurityPolicy == own)
        }
    }

    @Test func bondBecomesPrivileged() throws {
        try World.run(seed: 122) { world in
            let pair = try await LampAndPhone(world)
            _ = try await pair.lamp.publish(Lamp.encrypted)
            let peer = try await pair.phoneDevice.adapter.central.connect(to: pair.lampDevice.device.address)
            try await peer.pair()
            // The last keys may still be on their way.
            try await world.sleep(for: .seconds(1))
            let security = CBSecurity(shared: pair.lampDevice.shared)
            let identity = try #require(await security.bonds().first).identity
            #expect(await security.bonds().map(\.isPrivileged) == [false])
            for isPrivileged in [true, false] {
                #expect(await security.setBondPrivileged(isPrivileged, for: identity))
                #expect(await security.bonds().map(\.isPrivileged) == [isPrivileged])
            }
            #expect(await !security.setBondPrivileged(true, for: DeviceAddress(1, isRandom: false)))
        }
    }
}

extension Lamp {
    /// A service with a value that needs encryption, so that managers consent to pairings.
    fileprivate static let encrypted = ServiceDefinition(
        uuid: "FFB0",
        characteristics: [
            CharacteristicDefinition(
                uuid: "FFB1",
                properties: [.read],
                permissions: [.read, .readEncrypted],
                value: .stored([1])
            )
        ]
    )
}
