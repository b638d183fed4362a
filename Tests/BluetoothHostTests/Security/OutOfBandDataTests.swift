import BLE
import BLESMP
import BluetoothTesting
import Testing

@testable import BluetoothHost

@Suite("Out of band data")
struct OutOfBandDataTests {
    /// Gives a lock its own data, and a phone the data that it has for the lock.
    private static func setPolicies(
        of devices: LockAndPhone,
        own: OwnOutOfBandData,
        peer: OutOfBandData,
        isSecureConnections: Bool
    ) async {
        var lock = SecurityPolicy()
        lock.justWorks = .always
        lock.offersSecureConnections = isSecureConnections
        var phone = lock
        lock.ownOutOfBandData = own
        phone.peerOutOfBandData = peer
        if case .temporaryKey(let key) = own { lock.peerOutOfBandData = .temporaryKey(key) }
        if case .temporaryKey(let key) = peer { phone.ownOutOfBandData = .temporaryKey(key) }
        await devices.lock.setSecurityPolicy(lock)
        await devices.phone.setSecurityPolicy(phone)
    }

    @Test(arguments: [true, false])
    func failedPairingUsesUpOutOfBandData(isSecureConnections: Bool) throws {
        try LockAndPhone.run(limit: .seconds(1200)) { world in
            let devices = try await LockAndPhone(in: world)
            let own = await devices.lock.makeOutOfBandData(isSecureConnections: isSecureConnections)
            // The phone has the data of another device.
            let other = await devices.phone.makeOutOfBandData(isSecureConnections: isSecureConnections)
            await Self.setPolicies(
                of: devices,
                own: own.secret,
                peer: other.forPeer,
                isSecureConnections: isSecureConnections
            )
            let peer = try await devices.connect()
            await #expect(throws: BLEError.self) { try await peer.pair() }
            while devices.lockEvents.failures.isEmpty { try await world.sleep(for: .milliseconds(10)) }
            // Both devices have to wait after a failure.
            try await world.sleep(for: .seconds(300))
            #expect(try await peer.pair().isAuthenticated == false)
            #expect(devices.phoneEvents.results.map(\.model) == [.justWorks])
        }
    }

    @Test func endedLinkUsesUpOutOfBandData() throws {
        try LockAndPhone.run(limit: .seconds(1200)) { world in
            let devices = try await LockAndPhone(in: world)
            let own = await devices.lock.makeOutOfBandData()
            await Self.setPolicies(of: devices, own: own.secret, peer: own.forPeer, isSecureConnections: true)
            let peer = try await devices.connect()
            let pairing = Task(executorPreference: world.taskExecutor) { try await peer.pair() }
            // Both devices have agreed to use the data.
            while await devices.phone.host.securityPolicy.peerOutOfBandData != nil {
                try await world.sleep(for: .milliseconds(1))
            }
            #expect(devices.phoneEvents.results.isEmpty, "the pairing has not ended")
            try await devices.disconnect(peer)
            await #expect(throws: BLEError.self) { try await pairing.value }
            try await world.sleep(for: .seconds(300))
            let again = try await devices.connect()
            #expect(try await again.pair().isAuthenticated == false)
        }
    }

    @Test func refusedPairingLeavesOutOfBandDataAvailable() throws {
        try LockAndPhone.run(limit: .seconds(1200)) { world in
            let devices = try await LockAndPhone(in: world)
            let own = await devices.lock.makeOutOfBandData()
            await Self.setPolicies(of: devices, own: own.secret, peer: own.forPeer, isSecureConnections: true)
            await devices.phone.setPairingDelegate(Person(in: world, mood: .init(refusesConsent: true)).hold())
            await devices.lock.setPairingDelegate(Person(in: world, mood: .init(refusesConsent: true)).hold())
            let peer = try await devices.connect()
            await #expect(throws: BLEError.self) { try await peer.pair() }
            try await world.sleep(for: .seconds(300))
            await devices.phone.setPairingDelegate(nil)
            await devices.lock.setPairingDelegate(nil)
            #expect(try await peer.pair().isAuthenticated)
        }
    }

    @Test(arguments: [true, false])
    func onlyOneOfTwoPairingsUsesOutOfBandData(isSecureConnections: Bool) throws {
        try LockAndPhone.run(limit: .seconds(1200)) { world in
            let devices = try await LockAndPhone(in: world)
            let otherPhone = try await world.device("other phone").openAdapter()
            let own = await devices.lock.makeOutOfBandData(isSecureConnections: isSecureConnections)
            await Self.setPolicies(
                of: devices,
                own: own.secret,
                peer: own.forPeer,
                isSecureConnections: isSecureConnections
            )
            await otherPhone.setSecurityPolicy(devices.phone.host.securityPolicy)
            await devices.lock.setPairingDelegate(ConsentingTogether(count: 2, in: world))
            async let first = Self.strength(of: devices.phone, pairingWith: devices.address)
            async let second = Self.strength(of: otherPhone, pairingWith: devices.address)
            let strengths = await [first, second].compactMap { $0 }
            #expect(strengths.map(\.isAuthenticated) == [true])
            let events = devices.lockEvents
            while events.results.isEmpty || events.failures.isEmpty { try await world.sleep(for: .milliseconds(10)) }
            #expect(events.results.map(\.model) == [.outOfBand])
            #expect(events.failures == [.refused("another pairing has used the out of band data")])
        }
    }

    /// Pairs with a lock.
    ///
    /// - Returns: the strength of the key; nil if the pairing failed.
    private static func strength(of phone: Adapter, pairingWith lock: DeviceAddress) async -> KeyStrength? {
        try? await phone.central.connect(to: lock).pair()
    }
}

/// Consents to pairings once it was asked about several.
private actor ConsentingTogether: PairingDelegate {
    private let count: Int
    private let world: World
    private var asked = 0

    init(count: Int, in world: World) {
        self.count = count
        self.world = world
    }

    func answer(_ inquiry: PairingInquiry) async -> PairingAnswer {
        asked += 1
        while asked < count { try? await world.sleep(for: .milliseconds(1)) }
        return .accept
    }
}
