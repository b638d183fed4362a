import BLE
import BLEGATT
import BluetoothHost
import BluetoothTesting
import BluetoothTypes
import Foundation
import Testing

@testable import CoreBluetooth

@Suite("Pairing by managers")
struct PairingBackendTests {
    private static let vault = ServiceDefinition(
        uuid: "FFB0",
        characteristics: [
            CharacteristicDefinition(
                uuid: "FFB1",
                properties: [.read],
                permissions: [.read, .readEncrypted],
                value: .stored([0x5E, 0xC2])
            )
        ]
    )

    @Test("Reading a value that needs encryption causes pairing, and the bond serves the next connection")
    func readingAnEncryptedValueCausesPairing() throws {
        try World.run(seed: 61) { world in
            let pair = try await LampAndPhone(world)
            let vault = try await pair.lamp.publish(Self.vault)
            let handle = vault.characteristics[0].valueHandle
            let peripheral = await pair.connect()
            #expect(await pair.phoneDevice.adapter.bonds().isEmpty)
            #expect(await pair.phone.read(handle, of: peripheral) == .success([0x5E, 0xC2]))
            for adapter in [pair.phoneDevice.adapter, pair.lampDevice.adapter] {
                let strengths = await adapter.bonds().map(\.strength)
                #expect(
                    strengths == [KeyStrength(isAuthenticated: false, isSecureConnections: true, keySize: 16)]
                )
            }

            pair.phone.backend.cancelConnection(peripheral)
            await pair.phone.events.next { if case .disconnected = $0 { true } else { nil } }
            var events = await pair.phoneDevice.adapter.securityEvents().makeAsyncIterator()
            await pair.phone.connect(peripheral, ConnectionRequest())
            #expect(await pair.phone.read(handle, of: peripheral) == .success([0x5E, 0xC2]))
            // The first event is the encryption of the link, so no new pairing took place.
            let first = await events.next()
            guard case .encryptionChanged(_, .some) = first else {
                Issue.record("\(String(describing: first))")
                return
            }
        }
    }

    @Test("Connecting does not pair if the peer's Device Name needs encryption; reading the name does")
    func connectingDoesNotPair() throws {
        try World.run(seed: 67) { world in
            let pair = try await LampAndPhone(world)
            // The lamp's own GAP service has a Device Name that needs no encryption.
            await pair.lampDevice.adapter.host.removeService(at: 0x0001)
            let name = CharacteristicDefinition(
                uuid: .deviceName,
                properties: [.read],
                permissions: [.read, .readEncrypted],
                value: .stored(Array("lock".utf8))
            )
            let published = try await pair.lamp.publish(ServiceDefinition(uuid: "FFB2", characteristics: [name]))
            let peripheral = await pair.connect()
            // The requests of the host are answered by then.
            try await world.sleep(for: .seconds(5))
            #expect(try await pair.phone.services(nil, of: peripheral).contains { $0.uuid == "FFB2" })
            let adapters = [pair.phoneDevice.adapter, pair.lampDevice.adapter]
            for adapter in adapters { #expect(await adapter.bonds().isEmpty) }
            let read = await pair.phone.read(published.characteristics[0].valueHandle, of: peripheral)
            #expect(read == .success(Array("lock".utf8)))
            // The last keys are still on their way.
            try await world.sleep(for: .seconds(1))
            for adapter in adapters { #expect(await adapter.bonds().count == 1) }
        }
    }

    @Test(
        "A pairing that a central begins is accepted only if a value here needs encryption"
    )
    func pairingOfACentralIsAcceptedOnlyIfAValueNeedsIt() throws {
        try World.run(seed: 62) { world in
            let pair = try await LampAndPhone(world)
            let phone = pair.phoneDevice.adapter
            let peer = try await phone.central.connect(to: pair.lampDevice.device.address)
            await #expect(throws: BLEError.self) { try await peer.pair() }
            #expect(await pair.lampDevice.adapter.bonds().isEmpty)
            _ = try await pair.lamp.publish(Self.vault)
            // After a failure a device has to wait before it tries again (Vol 3, Part H, 2.3.6).
            try await world.sleep(for: .seconds(60))
            try await peer.pair()
            // The last keys are still on their way.
            try await world.sleep(for: .seconds(1))
            #expect(await pair.lampDevice.adapter.bonds().count == 1)
        }
    }

    @Test("A delegate can refuse, and the reader gets the security error of the value")
    func refusingDelegateGivesTheReaderTheSecurityError() throws {
        struct Refusal: PairingDelegate {
            func answer(_ inquiry: PairingInquiry) async -> PairingAnswer { .refuse }
        }
        try World.run(seed: 63) { world in
            let pair = try await LampAndPhone(world)
            let vault = try await pair.lamp.publish(Self.vault)
            let peripheral = await pair.connect()
            CBSecurity(shared: pair.phoneDevice.shared).setPairingDelegate(Refusal())
            let failure = await pair.phone.read(vault.characteristics[0].valueHandle, of: peripheral).failure
            #expect(failure == .attribute(.insufficientAuthentication))
            #expect(await pair.phoneDevice.adapter.bonds().isEmpty)
        }
    }

    @Test("An adapter that the app has opened keeps its own pairing delegate until a manager sets another")
    func adoptedAdapterKeepsItsPairingDelegate() throws {
        struct Delegate: PairingDelegate {
            let asked = Mailroom<String>()
            func answer(_ inquiry: PairingInquiry) async -> PairingAnswer {
                asked.post("asked")
                return .refuse
            }
        }
        try World.run(seed: 64) { world in
            let (own, other) = (Delegate(), Delegate())
            let device = world.device("lamp")
            let adapter = try await device.openAdapter { $0.pairingDelegate = own }
            let shared = HostRegistry.host(on: adapter, for: .peripheral)
            let lamp = TestPeripheral(HostPeripheral(shared))
            let handle = try await lamp.publish(Self.vault).characteristics[0].valueHandle
            try await lamp.advertise("lamp", [])
            let phone = try await BackendDevice("phone", in: world).adapter
            let peer = try await phone.central.connect(to: device.address)
            await #expect(throws: BLEError.self) { try await peer.read(handle) }
            #expect(own.asked.waiting == ["asked"])

            CBSecurity(shared: shared).setPairingDelegate(other)
            // After a failure a device has to wait before it tries again (Vol 3, Part H, 2.3.6).
            try await world.sleep(for: .seconds(60))
            await #expect(throws: BLEError.self) { try await peer.read(handle) }
            #expect(own.asked.waiting == ["asked"] && other.asked.waiting == ["asked"])
        }
    }

    @Test("An adapter that the app has opened gets its own pairing delegate back after its managers ended")
    func adapterHasItsDelegateAgain() throws {
        struct Delegate: PairingDelegate {
            let asked = Mailroom<String>()
            func answer(_ inquiry: PairingInquiry) async -> PairingAnswer {
                asked.post("asked")
                return .refuse
            }
        }
        try World.run(seed: 66) { world in
            let (own, other) = (Delegate(), Delegate())
            let device = world.device("lamp")
            let adapter = try await device.openAdapter { $0.pairingDelegate = own }
            CBSecurity(shared: HostRegistry.host(on: adapter, for: .peripheral)).setPairingDelegate(other)
            try await world.sleep(for: .seconds(1))
            _ = try await adapter.peripheral.publish([Self.vault])
            let advertising = try await adapter.peripheral.startAdvertising(AdvertisementConfiguration())
            let phone = try await BackendDevice("phone", in: world).adapter
            let peer = try await phone.central.connect(to: device.address)
            await #expect(throws: BLEError.self) { try await peer.pair() }
            #expect(own.asked.waiting == ["asked"] && other.asked.waiting.isEmpty)
            await advertising.stop()
        }
    }

    @Test("An adapter that the app has opened gets its own security policy back after its managers ended")
    func adapterHasItsPolicyAgain() throws {
        try World.run(seed: 68) { world in
            let device = world.device("lamp")
            let adapter = try await device.openAdapter()
            var own = SecurityPolicy()
            own.pairsOnRequest = false
            await adapter.setSecurityPolicy(own)
            let shared = HostRegistry.host(on: adapter, for: .peripheral)
            for pairable in [SecurityPolicy.Pairable.never, .duringWindow] {
                let lamp = TestPeripheral(HostPeripheral(shared))
                await lamp.events.next { if case .stateChanged(.poweredOn) = $0 { () } else { nil } }
                var policy = SecurityPolicy()
                policy.pairable = pairable
                for requestsEncryption in [true, false] {
                    policy.requestsEncryption = requestsEncryption
                    CBSecurity(shared: shared).setPolicy(policy)
                    try await world.sleep(for: .seconds(1))
                    #expect(await adapter.host.currentSecurityPolicy == policy)
                }
                lamp.backend.stop()
                try await world.sleep(for: .seconds(1))
                #expect(await adapter.host.currentSecurityPolicy == own)
            }
        }
    }

    @Test("A security policy that the app sets on its adapter after a manager's policy stays after the managers ended")
    func laterPolicyOfTheAppStays() throws {
        try World.run(seed: 69) { world in
            let device = world.device("lamp")
            let adapter = try await device.openAdapter()
            let shared = HostRegistry.host(on: adapter, for: .peripheral)
            let lamp = TestPeripheral(HostPeripheral(shared))
            await lamp.events.next { if case .stateChanged(.poweredOn) = $0 { () } else { nil } }
            var policy = SecurityPolicy()
            policy.pairable = .never
            CBSecurity(shared: shared).setPolicy(policy)
            try await world.sleep(for: .seconds(1))
            policy.requestsEncryption = true
            await adapter.setSecurityPolicy(policy)
            lamp.backend.stop()
            try await world.sleep(for: .seconds(1))
            #expect(await adapter.host.currentSecurityPolicy == policy)
        }
    }

    @Test("Managers decide about pairings on an opened adapter without a pairing delegate")
    func adoptedAdapterWithoutDelegatePairs() throws {
        try World.run(seed: 65) { world in
            let device = world.device("lamp")
            let adapter = try await device.openAdapter()
            let lamp = TestPeripheral(HostPeripheral(HostRegistry.host(on: adapter, for: .peripheral)))
            let handle = try await lamp.publish(Self.vault).characteristics[0].valueHandle
            try await lamp.advertise("lamp", [])
            let phone = try await BackendDevice("phone", in: world).adapter
            let peer = try await phone.central.connect(to: device.address)
            #expect(try await peer.read(handle) == [0x5E, 0xC2])
        }
    }

    @Test("A peer that sends its identity at pairing keeps the identifier that the app knows")
    func peerThatSendsItsIdentityKeepsItsIdentifier() {
        let directory = PeerDirectory(store: .inMemory()) { UUID() }
        let privateAddress = DeviceAddress(0x4000_0000_0001, isRandom: true)
        let identity = DeviceAddress(0xC000_0000_0001, isRandom: true)
        let identifier = directory.heard(privateAddress, name: "lock", services: ["180F"]).identifier
        directory.identify(privateAddress, as: identity)
        #expect(directory.identifier(of: identity) == identifier)
        #expect(directory.identifier(of: privateAddress) == identifier)
        #expect(directory.address(of: identifier) == identity)
        #expect(directory.known([identifier]) == [KnownPeripheral(identifier: identifier, name: "lock")])
        #expect(directory.has(identifier, anyOf: ["180F"]))
    }
}
