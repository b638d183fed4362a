import BLE
import BluetoothHost
import BluetoothTesting
import Testing

@Suite("Which peers may begin a pairing, and when")
struct PairingWindowTests {
    private static func devices(
        in world: World,
        lock: @escaping (inout SecurityPolicy) -> Void,
        phone: @escaping (inout Adapter.Configuration) -> Void = { _ in }
    ) async throws -> LockAndPhone {
        try await LockAndPhone(
            in: world,
            lock: {
                $0.security.justWorks = .always
                lock(&$0.security)
            },
            phone: phone
        )
    }

    private static let refusal = BLEError.security(.pairing(.endedByPeer(.pairingNotSupported)))

    @Test("A peer's pairing is refused outside the pairing window and accepted within it")
    func pairingNeedsAnOpenWindow() throws {
        try LockAndPhone.run { world in
            let devices = try await Self.devices(in: world, lock: { $0.pairable = .duringWindow })
            let peer = try await devices.connect()
            await #expect(throws: Self.refusal) { try await peer.pair() }
            #expect(devices.lockEvents.failures == [.refused("the pairing window is closed")])
            #expect(await devices.lock.bonds().isEmpty)

            await devices.lock.openPairingWindow(for: .seconds(30))
            try await world.sleep(for: .seconds(31))
            await #expect(throws: Self.refusal) { try await peer.pair() }
            await devices.lock.openPairingWindow(for: .seconds(60))
            await devices.lock.closePairingWindow()
            try await world.sleep(for: .seconds(31))
            await #expect(throws: Self.refusal) { try await peer.pair() }

            // The phone waits after its failures.
            try await world.sleep(for: .seconds(300))
            await devices.lock.openPairingWindow(for: .seconds(60))
            try await peer.pair()
            while devices.lockEvents.results.isEmpty { try await world.sleep(for: .milliseconds(10)) }
            #expect(await devices.lock.bonds().map(\.isPrivileged) == [false])
            #expect(await devices.phone.bonds().map(\.isPrivileged) == [true])
        }
    }

    @Test("The end of a window's time is reported, that of a window which was closed or replaced is not")
    func expiryIsReported() throws {
        try LockAndPhone.run { world in
            let devices = try await Self.devices(in: world, lock: { $0.pairable = .duringWindow })
            var events = await devices.lock.securityEvents().makeAsyncIterator()
            await devices.lock.openPairingWindow(for: .seconds(10))
            await devices.lock.openPairingWindow(for: .seconds(20))
            try await world.sleep(for: .seconds(5))
            await devices.lock.closePairingWindow()
            await devices.lock.openPairingWindow(for: .seconds(30))
            try await world.sleep(for: .seconds(29))
            #expect(await events.next() == .pairingWindowExpired)
            await devices.lock.openPairingWindow(for: .zero)
            #expect(await events.next() == .pairingWindowExpired)
        }
    }

    @Test("A pairing by Just Works that a peripheral causes by a refusal makes no privileged bond")
    func pairingOnDemandIsNotPrivileged() throws {
        try LockAndPhone.run { world in
            let devices = try await Self.devices(in: world, lock: { _ in }, phone: { $0.security.justWorks = .always })
            let peer = try await devices.connect()
            #expect(try await peer.read(devices.handle(LockAndPhone.encrypted)) == [0x2A])
            #expect(await devices.phone.bonds().map(\.isPrivileged) == [false])
        }
    }

    @Test("Pairings that this device begins, and encryption of bonded peers, need no window")
    func ownPairingsNeedNoWindow() throws {
        try LockAndPhone.run { world in
            let devices = try await Self.devices(
                in: world,
                lock: { $0.pairable = .never },
                phone: { $0.security.justWorks = .always }
            )
            var peer = try await devices.connect()
            await #expect(throws: Self.refusal) { try await peer.pair() }
            try await world.sleep(for: .seconds(10))
            try await devices.lock.peripheral.requestSecurity(of: devices.client())
            while devices.phoneEvents.results.isEmpty { try await world.sleep(for: .milliseconds(10)) }
            #expect(await devices.lock.bonds().map(\.isPrivileged) == [true])
            try await devices.disconnect(peer)
            peer = try await devices.connect()
            #expect(try await peer.read(devices.handle(LockAndPhone.encrypted)) == [0x2A])
        }
    }

    @Test("Only peers with identities on the accept list may pair", arguments: [true, false], [true, false])
    func onlyPeersOnTheAcceptListMayPair(isListed: Bool, isPrivate: Bool) throws {
        try LockAndPhone.run { world in
            let devices = try await Self.devices(
                in: world,
                lock: { _ in },
                phone: { $0.usesPrivateAddresses = isPrivate }
            )
            var policy = SecurityPolicy()
            policy.justWorks = .always
            policy.pairingAcceptList = [isListed ? devices.phoneAddress : devices.address]
            await devices.lock.setSecurityPolicy(policy)
            let peer = try await devices.connect()
            if isListed {
                try await peer.pair()
                while devices.lockEvents.results.isEmpty { try await world.sleep(for: .milliseconds(10)) }
                #expect(await devices.lock.bonds().map(\.identity) == [devices.phoneAddress])
            } else {
                _ = try? await peer.pair()
                while devices.lockEvents.failures.isEmpty { try await world.sleep(for: .milliseconds(10)) }
                #expect(
                    devices.lockEvents.failures
                        == [.refused("\(devices.phoneAddress) is not on the pairing accept list")]
                )
                #expect(await devices.lock.bonds().isEmpty)
            }
        }
    }

    @Test("Out of band data is used for one pairing")
    func outOfBandDataAreUsedOnce() throws {
        try LockAndPhone.run { world in
            let devices = try await Self.devices(in: world, lock: { _ in })
            let own = await devices.lock.makeOutOfBandData()
            var lock = SecurityPolicy()
            lock.justWorks = .always
            var phone = lock
            lock.ownOutOfBandData = own.secret
            phone.peerOutOfBandData = own.forPeer
            await devices.lock.setSecurityPolicy(lock)
            await devices.phone.setSecurityPolicy(phone)
            let peer = try await devices.connect()
            #expect(try await peer.pair().isAuthenticated)
            while devices.lockEvents.results.isEmpty { try await world.sleep(for: .milliseconds(10)) }
            for adapter in [devices.lock, devices.phone] {
                await adapter.removeBond(adapter === devices.lock ? devices.phoneAddress : devices.address)
            }
            let again = try await devices.connect()
            #expect(try await again.pair().isAuthenticated == false)
            #expect(devices.phoneEvents.results.map(\.model) == [.outOfBand, .justWorks])
        }
    }

    @Test("Strangers that bond by Just Works replace each other, and never a bond that the app protects")
    func strangersReplaceEachOtherAndNoProtectedBond() throws {
        try LockAndPhone.run { world in
            let person = Person(in: world)
            let devices = try await LockAndPhone(
                in: world,
                lock: {
                    $0.security.ioCapability = .displayYesNo
                    $0.security.justWorks = .always
                    $0.bondLimit = 2
                    $0.pairingDelegate = person.hold()
                },
                phone: {
                    $0.security.ioCapability = .displayYesNo
                    $0.pairingDelegate = person.hold()
                }
            )
            let peer = try await devices.connect()
            #expect(try await peer.pair().isAuthenticated)
            while devices.lockEvents.results.isEmpty { try await world.sleep(for: .milliseconds(10)) }
            try await devices.disconnect(peer)
            await devices.lock.setPairingDelegate(nil)
            var evicted: [DeviceAddress] = []
            for number in 1...4 {
                let stranger = try await world.device("stranger \(number)").openAdapter()
                devices.lockEvents.clear()
                let link = try await stranger.central.connect(to: devices.address)
                try await link.pair()
                while devices.lockEvents.results.isEmpty { try await world.sleep(for: .milliseconds(10)) }
                let bonds = await devices.lock.bonds()
                #expect(bonds.count == 2)
                #expect(bonds.first?.identity == devices.phoneAddress)
                evicted += devices.lockEvents.all.compactMap {
                    if case .bondRemoved(let identity) = $0 { identity } else { nil }
                }
                try await devices.disconnect(link)
            }
            #expect(Set(evicted).count == 3 && !evicted.contains(devices.phoneAddress))
            let last = try #require(await devices.lock.bonds().last)
            #expect(await devices.lock.setBondPrivileged(true, for: last.identity))
            let stranger = try await world.device("late").openAdapter()
            let link = try await stranger.central.connect(to: devices.address)
            devices.lockEvents.clear()
            await #expect(throws: BLEError.self) { try await link.pair() }
            #expect(devices.lockEvents.failures == [.tooManyBonds(2)])
        }
    }
}
