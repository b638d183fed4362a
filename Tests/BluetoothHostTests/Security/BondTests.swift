import BLE
import BLESMP
import BluetoothHost
import BluetoothTesting
import Testing

@Suite("Reconnecting bonded peers")
struct BondTests {
    private static let authenticated = KeyStrength(isAuthenticated: true, isSecureConnections: true, keySize: 16)

    /// Two bonded devices without a connection.
    private static func bonded(
        in world: World,
        lock: (inout Adapter.Configuration) -> Void = { _ in },
        phone: (inout Adapter.Configuration) -> Void = { _ in }
    ) async throws -> LockAndPhone {
        let person = Person(in: world)
        let devices = try await LockAndPhone(
            in: world,
            lock: {
                $0.security.ioCapability = .displayYesNo
                $0.pairingDelegate = person.hold()
                lock(&$0)
            },
            phone: {
                $0.security.ioCapability = .displayYesNo
                $0.pairingDelegate = person.hold()
                phone(&$0)
            }
        )
        let peer = try await devices.connect()
        #expect(try await peer.pair() == authenticated)
        while devices.lockEvents.results.isEmpty { try await world.sleep(for: .milliseconds(10)) }
        try await devices.disconnect(peer)
        devices.phoneEvents.clear()
        devices.lockEvents.clear()
        return devices
    }

    @Test("A peripheral that has lost its key gets no requests and is not trusted until the bond is removed")
    func peripheralThatHasLostItsKeyGetsNoRequests() throws {
        try LockAndPhone.run { world in
            let devices = try await Self.bonded(in: world)
            await devices.lock.removeBond(devices.phoneAddress)
            var peer = try await devices.connect()
            let open = try devices.handle(LockAndPhone.open)
            // Even reads that need no security fail: the peer may be another device.
            await #expect(throws: BLEError.security(.keyMissing)) { try await peer.read(open) }
            await #expect(throws: BLEError.security(.keyMissing)) { try await peer.write([1], to: open) }
            await #expect(throws: BLEError.security(.keyMissing)) {
                try await peer.write([1], to: open, kind: .withoutResponse)
            }
            await #expect(throws: BLEError.security(.keyMissing)) { try await peer.openChannel(psm: 0x80) }
            await #expect(throws: BLEError.security(.keyMissing)) { try await peer.pair() }
            #expect(devices.phoneEvents.missingKeys == 1)
            #expect(devices.lockEvents.results.isEmpty, "nothing was paired anew")
            #expect(await devices.lock.peripheral.value(of: open) == [0x2A])
            #expect(await devices.phone.bonds().count == 1)

            #expect(await devices.phone.removeBond(devices.address))
            #expect(await !peer.isConnected)
            peer = try await devices.connect()
            #expect(try await peer.pair() == Self.authenticated)
            #expect(try await peer.read(open) == [0x2A])
        }
    }

    @Test("A peripheral without its key pairs again if the policy and a person allow it", arguments: [true, false])
    func peripheralWithoutItsKeyPairsAgainIfAllowed(isWanted: Bool) throws {
        try LockAndPhone.run { world in
            let person = Person(in: world, mood: .init(refusesToReplace: !isWanted))
            let devices = try await Self.bonded(in: world)
            await devices.lock.removeBond(devices.phoneAddress)
            await devices.phone.setPairingDelegate(person.hold())
            var policy = SecurityPolicy()
            policy.ioCapability = .displayYesNo
            policy.keyLoss = .askToPairAgain
            await devices.phone.setSecurityPolicy(policy)
            let peer = try await devices.connect()
            let open = try devices.handle(LockAndPhone.open)
            if isWanted {
                #expect(try await peer.read(open) == [0x2A])
                #expect(await peer.security == Self.authenticated)
            } else {
                await #expect(throws: BLEError.self) { try await peer.read(open) }
                #expect(await peer.security == nil)
                #expect(await devices.phone.bonds().count == 1)
            }
            #expect(person.inquiries.first?.replaces == Self.authenticated)
        }
    }

    @Test("A central that has lost its key replaces the bond only with a person's consent", arguments: [true, false])
    func centralThatHasLostItsKeyNeedsConsentToReplaceTheBond(isWanted: Bool) throws {
        try LockAndPhone.run { world in
            let devices = try await Self.bonded(in: world)
            let person = Person(in: world, mood: .init(refusesToReplace: !isWanted))
            await devices.lock.setPairingDelegate(person.hold())
            await devices.phone.setPairingDelegate(person.hold())
            await devices.phone.removeBond(devices.address)
            let before = await devices.lock.host.bondRecords()
            let peer = try await devices.connect()
            if isWanted {
                #expect(try await peer.pair() == Self.authenticated)
                while devices.lockEvents.results.isEmpty { try await world.sleep(for: .milliseconds(10)) }
                #expect(await devices.lock.host.bondRecords() != before)
            } else {
                await #expect(throws: BLEError.security(.pairing(.endedByPeer(.pairingNotSupported)))) {
                    try await peer.pair()
                }
                #expect(await devices.lock.host.bondRecords() == before)
            }
            #expect(person.inquiries.contains { $0.replaces == Self.authenticated })
        }
    }

    @Test("Without consent no bond is replaced")
    func noBondIsReplacedWithoutConsent() throws {
        try LockAndPhone.run { world in
            let devices = try await Self.bonded(in: world)
            await devices.lock.setPairingDelegate(nil)
            var policy = SecurityPolicy()
            policy.justWorks = .always
            await devices.lock.setSecurityPolicy(policy)
            await devices.phone.removeBond(devices.address)
            let peer = try await devices.connect()
            await #expect(throws: BLEError.self) { try await peer.pair() }
            #expect(devices.lockEvents.failures.count == 1)
            #expect(await devices.lock.bonds().map(\.strength) == [Self.authenticated])
        }
    }

    @Test(
        "A weaker key never replaces a bond's key, whoever consents",
        arguments: [(.noInputNoOutput, true), (.keyboardOnly, false)] as [(IOCapability, Bool)]
    )
    func weakerKeyNeverReplacesThatOfABond(capability: IOCapability, isSecure: Bool) throws {
        try LockAndPhone.run { world in
            let devices = try await Self.bonded(in: world)
            await devices.phone.removeBond(devices.address)
            let before = await devices.lock.host.bondRecords()
            var policy = SecurityPolicy()
            policy.ioCapability = capability
            policy.offersSecureConnections = isSecure
            await devices.phone.setSecurityPolicy(policy)
            let peer = try await devices.connect()
            await #expect(throws: BLEError.self) { try await peer.pair() }
            guard case .weakerThanBond = devices.lockEvents.failures.first else {
                Issue.record("\(devices.lockEvents.failures)")
                return
            }
            #expect(await devices.lock.host.bondRecords() == before)
        }
    }

    @Test("A peer that claims a bonded identity at the end of pairing does not replace that bond unasked")
    func claimedIdentityDoesNotReplaceABondUnasked() throws {
        try LockAndPhone.run { world in
            let devices = try await Self.bonded(in: world)
            let before = await devices.lock.host.bondRecords()
            // The same identity from an address for which the lock has no key, and without the bond's key.
            let identity = devices.phoneAddress
            let stranger = try await world.device("stranger") { $0.address = identity }.openAdapter {
                $0.usesPrivateAddresses = true
                $0.security.ioCapability = .displayYesNo
                $0.pairingDelegate = Person(in: world).hold()
            }
            let wary = Person(in: world, mood: .init(refusesToReplace: true))
            await devices.lock.setPairingDelegate(wary.hold())
            let peer = try await stranger.central.connect(to: devices.address)
            _ = try? await peer.pair()
            _ = try await peer.disconnection()
            #expect(wary.inquiries.map(\.replaces).contains(Self.authenticated))
            #expect(await devices.lock.host.bondRecords() == before)
        }
    }

    @Test("A bonded device is recognized after its private address has changed")
    func bondedDeviceIsRecognizedAfterAChangeOfItsAddress() throws {
        try LockAndPhone.run(limit: .seconds(7200)) { world in
            let devices = try await Self.bonded(in: world, phone: { $0.usesPrivateAddresses = true })
            #expect(await devices.lock.bonds().map(\.identity) == [devices.phoneAddress])
            #expect(await devices.lock.bonds().map(\.resolvesAddresses) == [true])
            try await world.sleep(for: .seconds(3600))
            let peer = try await devices.connect()
            #expect(try await peer.read(devices.handle(LockAndPhone.authenticated)) == [0x2A])
            #expect(devices.lockEvents.results.isEmpty && devices.phoneEvents.results.isEmpty)
        }
    }

    @Test("A stronger key is made on an encrypted link if it is needed, and replaces the bond's key")
    func neededStrongerKeyReplacesThatOfTheBond() throws {
        try LockAndPhone.run { world in
            let person = Person(in: world)
            let devices = try await LockAndPhone(
                in: world,
                lock: { $0.pairingDelegate = person.hold() },
                phone: { $0.pairingDelegate = person.hold() }
            )
            let peer = try await devices.connect()
            #expect(try await peer.pair().isAuthenticated == false)
            var policy = SecurityPolicy()
            policy.ioCapability = .displayYesNo
            await devices.lock.setSecurityPolicy(policy)
            await devices.phone.setSecurityPolicy(policy)
            // The server answers that its value needs a stronger key.
            #expect(try await peer.read(devices.handle(LockAndPhone.authenticated)) == [0x2A])
            #expect(devices.phoneEvents.encryptions.map { $0?.isAuthenticated } == [false, true])
            #expect(await devices.phone.bonds().map(\.strength) == [Self.authenticated])
            #expect(person.inquiries.contains { $0.replaces?.isAuthenticated == false })
        }
    }

    @Test("Removing a bond ends its link, because the peer could no longer be verified")
    func removingABondEndsItsLink() throws {
        try LockAndPhone.run { world in
            let devices = try await Self.bonded(in: world)
            let peer = try await devices.connect()
            try await peer.pair()
            #expect(await devices.lock.removeBond(devices.phoneAddress))
            #expect(try await peer.disconnection() == .controller(.remoteUserTerminatedConnection))
            #expect(await !devices.lock.removeBond(devices.phoneAddress))
        }
    }

    @Test("A bonded central is asked to encrypt if the policy says so, and when security is needed")
    func bondedCentralIsAskedToEncryptByPolicyOrOnDemand() throws {
        for requests in [true, false] {
            try LockAndPhone.run { world in
                let devices = try await Self.bonded(
                    in: world,
                    lock: { $0.security.requestsEncryption = requests },
                    phone: { $0.security.encryptsBondedLinks = false }
                )
                let peer = try await devices.connect()
                try await world.sleep(for: .seconds(1))
                #expect(await peer.isEncrypted == requests)
                guard !requests else { return }
                let client = try await devices.client()
                let strength = try await devices.lock.peripheral.requestSecurity(of: client)
                #expect(strength == Self.authenticated)
                #expect(devices.phoneEvents.results.isEmpty, "the bond's key was used")
            }
        }
    }

    @Test("At the maximum number of bonds a new one is refused, and none is removed")
    func newBondIsRefusedAtTheMaximumAndNoneIsRemoved() throws {
        try LockAndPhone.run { world in
            let devices = try await LockAndPhone(in: world, phone: { $0.bondLimit = 1 })
            try await devices.phone.host.importBond(BondRecord(bond: Bond(identity: DeviceAddress(1, isRandom: false))))
            let peer = try await devices.connect()
            await #expect(throws: BLEError.security(.tooManyBonds(1))) { try await peer.pair() }
            var policy = SecurityPolicy()
            policy.bonds = false
            await devices.lock.setPairingDelegate(Person(in: world).hold())
            try await peer.pair(policy: policy)
            #expect(await devices.phone.bonds().map(\.identity.value) == [1])
        }
    }

    @Test("A controller reset during a pairing or encryption leaves no trace of either")
    func resetDuringAPairingOrEncryptionLeavesNoTrace() throws {
        try LockAndPhone.run { world in
            let devices = try await Self.bonded(in: world)
            for delay in [0, 5, 20, 40, 60, 100, 150] {
                let peer = try await devices.connect()
                let task = Task(executorPreference: world.taskExecutor) { try await peer.pair(again: true) }
                try await world.sleep(for: .milliseconds(delay))
                devices.phoneDevice.failWithHardwareError()
                _ = try? await task.value
                try await world.sleep(for: .seconds(6))
                let left = await devices.phone.host.inspect()
                #expect(left.links == 0 && left.waiters == 0 && left.questions == 0 && left.pairings == 0)
                #expect(await devices.phone.bonds().count == 1)
            }
            let peer = try await devices.connect()
            #expect(try await peer.pair(again: true) == Self.authenticated)
        }
    }

    @Test("Accesses that need the app's consent are refused until the app has consented")
    func accessThatNeedsConsentIsRefusedUntilTheAppConsents() throws {
        try LockAndPhone.run { world in
            let devices = try await LockAndPhone(in: world)
            let published = try await devices.lock.peripheral.publish([
                ServiceDefinition(
                    uuid: "10D4",
                    characteristics: [
                        CharacteristicDefinition(
                            uuid: "10D5",
                            properties: .read,
                            permissions: .readAuthorized,
                            value: .stored([7])
                        )
                    ]
                )
            ])
            let handle = published[0].characteristics[0].valueHandle
            let peer = try await devices.connect()
            await #expect(throws: BLEError.attribute(.insufficientAuthorization, handle: handle)) {
                try await peer.read(handle)
            }
            let client = try await devices.client()
            try await devices.lock.peripheral.setAuthorized(true, client)
            #expect(try await peer.read(handle) == [7])
        }
    }

    @Test("A channel that needs encryption is refused without it, and waits for a bonded peer's verification")
    func channelThatNeedsEncryptionIsRefusedWithoutIt() throws {
        try LockAndPhone.run { world in
            let devices = try await LockAndPhone(in: world, lock: { $0.security.justWorks = .always })
            let listener = try await devices.lock.peripheral.publishChannel(security: .init(needsEncryption: true))
            var peer = try await devices.connect()
            await #expect(throws: BLEError.channel(.refused(.insufficientAuthentication))) {
                try await peer.openChannel(psm: listener.psm)
            }
            try await peer.pair()
            _ = try await peer.openChannel(psm: listener.psm)
            try await devices.disconnect(peer)
            peer = try await devices.connect()
            _ = try await peer.openChannel(psm: listener.psm)
        }
    }

    @Test(
        "The key of encrypted advertising data is kept only of a peer that has verified its bond",
        arguments: [true, false]
    )
    func advertisingKeyIsKeptOfAVerifiedPeerOnly(isEncrypted: Bool) throws {
        let fixture = try SecurityFixture { $0.security.encryptsBondedLinks = false }
        let link = try fixture.connect(.central)
        if isEncrypted {
            _ = fixture.start { _ = try await $0.secure(link) }
            fixture.encryptionChanged()
        }
        let isKept = try fixture.run { $0.setAdvertisingKey(EncryptedDataKeyMaterial(), of: link) }
        #expect(isKept == isEncrypted)
    }
}
