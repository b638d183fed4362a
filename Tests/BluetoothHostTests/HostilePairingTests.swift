import BLE
import BLEByteCoding
import BLECryptography
import BLEGATT
import BLEHCI
import BLESMP
import BluetoothTypes
import Testing

@testable import BluetoothHost

private let peerAddress = DeviceAddress(0xC0FF_EE00_0001, isRandom: true)
/// Resolvable, with a key that the host does not have.
private let privateAddress = DeviceAddress(0x4123_4567_89AB, isRandom: true)
private let connection: ConnectionHandle = 0x0040

private let secure = KeyStrength(isAuthenticated: false, isSecureConnections: true, keySize: 16)
private let authenticated = KeyStrength(isAuthenticated: true, isSecureConnections: true, keySize: 16)

private func bond(_ strength: KeyStrength, identity: DeviceAddress = peerAddress) -> Bond {
    var bond = Bond(identity: identity)
    let key = LongTermKey(
        value: 0x1234,
        encryptedDiversifier: strength.isSecureConnections ? 0 : 0x4711,
        randomNumber: strength.isSecureConnections ? 0 : 0x0815,
        strength: strength
    )
    bond.centralKey = key
    bond.peripheralKey = key
    return bond
}

@Suite("An attacker that tries to replace a bond")
struct BondTakeoverTests {
    @Test("No replacement without consent if the peer pairs instead of encrypting with its key")
    func peerThatPairsInsteadOfEncryptingReplacesNoBond() throws {
        let encounter = try Encounter(.peripheral, bond: bond(secure))
        let call = try encounter.require()
        encounter.settle()
        #expect(encounter.heard == [[0x0B, 0x09]])
        encounter.pair()
        #expect(encounter.heard.last == [0x05, 0x05])
        #expect(try encounter.run { $0.bondRecords().map(\.bond) } == [bond(secure)])
        #expect(call.all.count == 1)
    }

    @Test("No replacement without consent if the peer has lost its key")
    func peerThatHasLostItsKeyReplacesNoBond() throws {
        let encounter = try Encounter(.central, bond: bond(secure)) {
            $0.security.encryptsBondedLinks = false
            $0.security.keyLoss = .askToPairAgain
        }
        let call = try encounter.require()
        encounter.settle()
        #expect(encounter.heard == [], "no pairing begins")
        #expect(encounter.outcome == nil)
        #expect(try encounter.run { $0.bondRecords().map(\.bond) } == [bond(secure)])
        #expect(call.all.count == 1)
    }

    @Test("The bond is replaced if the app itself asks for it")
    func bondIsReplacedIfTheAppAsksForIt() throws {
        let encounter = try Encounter(.peripheral, bond: bond(secure))
        let call = try encounter.require(pairsAgain: true)
        encounter.settle()
        encounter.pair()
        #expect(encounter.outcome != nil && call.all.count == 1)
        #expect(try encounter.run { $0.bondRecords().map(\.bond) } != [bond(secure)])
    }

    @Test("A bond without an encryption key is not replaced either")
    func bondWithoutAnEncryptionKeyIsNotReplacedEither() throws {
        var kept = Bond(identity: peerAddress)
        kept.peerSigningKey = SigningKey(value: 7, isAuthenticated: true)
        let encounter = try Encounter(.peripheral, bond: kept) { $0.security.justWorks = .always }
        encounter.pair()
        #expect(encounter.outcome == nil && encounter.heard.last?.first == 0x05)
        let bonds = try encounter.run { $0.bondRecords().map(\.bond) }
        #expect(bonds == [kept])
    }

    @Test("Each claim of a bonded identity doubles the wait before the next one")
    func claimsOfAnIdentityDoubleTheWait() throws {
        let identity = DeviceAddress(0x0000_0000_4711, isRandom: false)
        let claim = LocalIdentity(address: identity, resolvingKey: 5)
        let encounter = try Encounter(
            .peripheral,
            bond: bond(authenticated, identity: identity),
            address: privateAddress,
            identity: claim
        ) { $0.security.justWorks = .always }
        for wait in [1, 2] {
            if wait > 1 { encounter.meetAgain(privateAddress, identity: claim) }
            encounter.pair()
            #expect(encounter.outcome != nil, "the peer has done its part")
            #expect(encounter.fixture.controller.opcodes.contains(Disconnect.opcode))
            #expect(try encounter.run { $0.links[connection]?.session.security.isEncrypted } == false)
            encounter.heard = []
            encounter.pair()
            #expect(encounter.heard == [], "the link ends, and no other pairing begins on it")
            let left = try encounter.run { $0.pairing.attempts.wait(for: privateAddress, at: $0.loop.now) }
            #expect(try #require(left) > .seconds(wait) - .milliseconds(100))
            encounter.fixture.loop.run(for: .seconds(wait))
        }
        #expect(try encounter.run { $0.bondRecords().count } == 1)
    }

    @Test("A peer connected under its identity address gets no bond for another identity")
    func contradictoryIdentityIsNotKept() throws {
        let victim = DeviceAddress(0x0000_0000_4711, isRandom: false)
        for kept in [nil, bond(secure, identity: victim)] {
            let encounter = try Encounter(
                .peripheral,
                bond: kept,
                identity: LocalIdentity(address: victim, resolvingKey: 5)
            ) { $0.security.justWorks = .always }
            encounter.pair()
            let bonds = try encounter.run { $0.bondRecords().map(\.bond) }
            #expect(bonds.map(\.identity) == (kept.map { [$0.identity] } ?? []) + [peerAddress])
            #expect(bonds.last?.identityResolvingKey == nil, "the key would make addresses of the other device")
            #expect(kept == nil || bonds.first == kept)
        }
    }

    @Test("A peer gets no bond in the name of a connected device, whose link is unchanged")
    func identityOfLiveLinkIsRefused() throws {
        let victim = DeviceAddress(0x0000_0000_4711, isRandom: false)
        let encounter = try Encounter(
            .peripheral,
            address: privateAddress,
            identity: LocalIdentity(address: victim, resolvingKey: 5)
        ) { $0.security.justWorks = .always }
        encounter.fixture.connect(0x0041, role: .peripheral, peer: victim)
        encounter.pair()
        #expect(encounter.outcome != nil, "the peer has done its part")
        #expect(try encounter.run { $0.bondRecords().count } == 0)
        let ended = encounter.fixture.controller.commands.compactMap { $0.decode(Disconnect.self)?.connectionHandle }
        #expect(ended == [connection])
        let isSilenced = try encounter.run { host in
            host.links[ConnectionHandle(0x0041)]?.isGateClosed
        }
        #expect(isSilenced == false)
    }

    @Test("The configuration of a peer is kept if it had verified its bond before pairing again")
    func configurationOfAVerifiedPeerIsKeptWhenItPairsAgain() throws {
        let encounter = try Encounter(.peripheral) { $0.security.justWorks = .always }
        encounter.pair()
        let serviceChanged = try #require(try encounter.run { $0.services.server.serviceChanged })
        let descriptor = serviceChanged.rawValue + 1
        let pdu = [0x12, UInt8(truncatingIfNeeded: descriptor), UInt8(descriptor >> 8), 0x02, 0x00]
        #expect(encounter.fixture.exchange(pdu, on: connection) == [[0x13]])
        let before = try encounter.run { $0.bondRecords()[0] }
        #expect(before.serverState?.configurations.count == 1)
        _ = try encounter.require(pairsAgain: true)
        encounter.settle()
        encounter.pair()
        let after = try encounter.run { $0.bondRecords()[0] }
        #expect(after.bond != before.bond && after.serverState == before.serverState)
    }

    @Test("The state of a peer is not kept if encryption had ended before the peer paired again")
    func stateOfAPeerIsNotKeptAfterEncryptionHasEnded() throws {
        let encounter = try Encounter(.peripheral, meets: false) { $0.security.justWorks = .always }
        let heart = try encounter.run { host in
            let definition = CharacteristicDefinition(
                uuid: "2A37",
                properties: [.read, .notify],
                permissions: .read,
                value: .stored([60])
            )
            return try host.publish([ServiceDefinition(uuid: "180D", characteristics: [definition])])[0]
                .characteristics[0]
        }
        encounter.meet()
        encounter.pair()
        let serviceChanged = try #require(try encounter.run { $0.services.server.serviceChanged })
        let descriptor = AttributeHandle(serviceChanged.rawValue + 1)
        let heartDescriptor = try #require(heart.clientConfigurationHandle)
        #expect(encounter.configure(heartDescriptor, 1) == [[0x13]])
        #expect(try encounter.notify(of: heart.valueHandle).map(\.first) == [0x1B])
        encounter.fixture.controller.emit {
            EncryptionChange(connectionHandle: connection, encryptionEnabled: .off).encodePacket(into: &$0)
        }
        encounter.settle()
        let before = try encounter.run { $0.bondRecords()[0] }
        #expect(before.serverState?.configurations.count == 1)
        _ = try encounter.require(pairsAgain: true)
        encounter.settle()
        encounter.pair()
        let after = try encounter.run { $0.bondRecords()[0] }
        #expect(after.bond != before.bond, "another device may have paired")
        #expect(after.serverState?.configurations.isEmpty == true)
        #expect(try encounter.notify(of: heart.valueHandle).isEmpty)
        #expect(encounter.configure(descriptor, 2) == [[0x13]])
        #expect(
            try encounter.run { $0.bondRecords()[0].serverState?.configurations.map(\.handle) } == [descriptor]
        )
        #expect(try encounter.notify(of: heart.valueHandle).isEmpty)
    }
}

extension Encounter {
    /// Makes the peer write a Client Characteristic Configuration.
    ///
    /// - Returns: the PDUs that the host sent.
    fileprivate func configure(_ descriptor: AttributeHandle, _ value: UInt8) -> [[UInt8]] {
        let handle = descriptor.rawValue
        let pdu = [0x12, UInt8(truncatingIfNeeded: handle), UInt8(truncatingIfNeeded: handle >> 8), value, 0]
        return fixture.exchange(pdu, on: connection)
    }

    /// Makes the app notify the peer.
    ///
    /// - Returns: the PDUs of the Attribute Protocol that the host sent.
    fileprivate func notify(of value: AttributeHandle) throws -> [[UInt8]] {
        fixture.controller.forgetData()
        heardAttributePDUs = []
        try run { host in
            let link = try #require(host.linkIdentifiers().first)
            try await host.notify([61], of: value, to: [link])
        }
        settle()
        return heardAttributePDUs
    }
}

@Suite("A link whose own address is reported late")
struct LateAddressTests {
    @Test func callBegunBeforeALateOwnAddressStillEnds() throws {
        let encounter = try Encounter(.peripheral, bond: bond(secure), meets: false, usesExtendedCommands: true)
        for number in UInt64(1)...2 {
            try encounter.run { host in
                var advertisement = AdvertisementConfiguration()
                advertisement.address = DeviceAddress(0xC000_0000_0000 + number, isRandom: true)
                _ = try await host.startAdvertising(advertisement)
            }
        }
        encounter.meet()
        let call = try encounter.require()
        encounter.settle()
        #expect(encounter.heard == [[0x0B, 0x09]])
        let own = try encounter.run { $0.links[connection]?.ownAddress }
        let entry = try encounter.run { host in
            host.gap.advertising.entries.first { $0.address != own }.map { ($0.handle, $0.address) }
        }
        let (handle, address) = try #require(entry)
        encounter.fixture.controller.emit {
            LEAdvertisingSetTerminated(
                status: .success,
                advertisingHandle: handle,
                connectionHandle: connection,
                numCompletedExtendedAdvertisingEvents: 0
            ).encodePacket(into: &$0)
        }
        encounter.fixture.loop.run(for: .seconds(1))
        #expect(try encounter.run { $0.links[connection]?.ownAddress } == address)
        #expect(call.all.isEmpty)
        // The central does not react, so the operation times out.
        encounter.fixture.loop.run(for: .seconds(30))
        #expect(call.all.count == 1)
    }

    @Test func addressThatIsReportedBeforeTheLinkIsThatOfTheLink() throws {
        let encounter = try Encounter(.peripheral, meets: false, usesExtendedCommands: true)
        let addresses = (UInt64(1)...2).map { DeviceAddress(0xC000_0000_0000 + $0, isRandom: true) }
        try encounter.run { host in
            for address in addresses {
                _ = try await host.startAdvertising(AdvertisementConfiguration(address: address))
            }
        }
        encounter.fixture.controller.emit {
            LEAdvertisingSetTerminated(
                status: .success,
                advertisingHandle: 1,
                connectionHandle: connection,
                numCompletedExtendedAdvertisingEvents: 0
            ).encodePacket(into: &$0)
        }
        encounter.fixture.loop.run(for: .milliseconds(1))
        encounter.meet()
        #expect(try encounter.run { $0.links[connection]?.ownAddress } == addresses[1])
        // The event tells nothing of a later link with this handle.
        encounter.meetAgain(peerAddress)
        #expect(try encounter.run { $0.links[connection]?.ownAddress } == addresses[0])
    }
}

@Suite("Changing the security policy")
struct PolicyTests {
    private static let weak: [(KeyStrength, @Sendable (inout SecurityPolicy) -> Void)] = [
        (
            KeyStrength(isAuthenticated: true, isSecureConnections: false, keySize: 16),
            { $0.requiresSecureConnections = true }
        ),
        (secure, { $0.requiresAuthentication = true }),
        (KeyStrength(isAuthenticated: true, isSecureConnections: true, keySize: 15), { _ in }),
    ]

    @Test(
        "An earlier bond is not used if its key is too weak for the policy",
        arguments: 0..<3
    )
    func weakEarlierBondIsNotUsed(index: Int) throws {
        let (strength, change) = Self.weak[index]
        let kept = bond(strength)
        let key = try #require(kept.peripheralKey)
        for isStrict in [false, true] {
            func configure(_ configuration: inout BluetoothHost.Configuration) {
                configuration.security.minimumKeySizeInBytes = isStrict ? 16 : 7
                if isStrict { change(&configuration.security) }
            }
            let peripheral = try Encounter(.peripheral, bond: kept, configure: configure)
            #expect(peripheral.requestKey(key) == (isStrict ? nil : key.value))
            let hasKey = try peripheral.run { $0.links[connection]?.session.security.hasKey }
            #expect(hasKey == !isStrict)

            let central = try Encounter(.central, bond: kept, configure: configure)
            #expect(central.fixture.controller.opcodes.contains(LEEnableEncryption.opcode) == !isStrict)
            let isWary = try central.run { $0.links[connection]?.isGateClosed }
            #expect(isWary == true)
        }
    }

    @Test("The policy also sets the key length that attributes require")
    func policySetsTheKeySizeThatAttributesRequire() throws {
        let fixture = HostFixture { $0.security.minimumKeySizeInBytes = 7 }
        let host = fixture.host
        let sizes = try fixture.run { await host.minimumKeySizes() }
        #expect(sizes == [7, 16])
    }

    @Test("Required authentication also applies to a pairing that the peer begins on request")
    func requiredAuthenticationAppliesToARequestedPairing() throws {
        let encounter = try Encounter(.peripheral) { $0.security.ioCapability = .displayYesNo }
        let call = try encounter.require(RequiredSecurity(isAuthenticated: true))
        encounter.settle()
        encounter.pair()
        #expect(encounter.heard.last == [0x05, 0x03])
        #expect(encounter.outcome == nil && call.all.count == 1)
    }
}

extension BluetoothHost {
    /// The minimum key size for attributes, before and after setting the default policy.
    fileprivate func minimumKeySizes() -> [UInt8] {
        let before = services.server.minimumKeySize
        setSecurityPolicy(SecurityPolicy())
        return [before, services.server.minimumKeySize]
    }
}

@Suite("A peer that pairs too often")
struct RepeatedAttemptsTests {
    private static let request: [UInt8] = [0x01, 0x03, 0x00, 0x09, 0x10, 0x00, 0x00]

    @Test("While the peer has to wait, its Security Request is still answered with the bond's key")
    func waitingBondedCentralMayBeAskedToEncrypt() throws {
        for kept in [bond(secure), nil] {
            let encounter = try Encounter(.central, bond: kept, meets: false)
            try encounter.run { $0.pairing.attempts.failed(peerAddress, at: $0.loop.now) }
            encounter.expectedKey = kept?.centralKey
            encounter.meet()
            encounter.send([0x0B, 0x01])
            encounter.settle()
            #expect(encounter.heard == (kept == nil ? [[0x05, 0x09]] : []))
            let strength = try encounter.run { $0.links[connection]?.security.strength }
            #expect(strength == (kept == nil ? nil : secure))
        }
    }

    @Test("Each pairing that it gives up counts, whatever the reason", arguments: [0x04, 0x08, 0x09] as [UInt8])
    func eachAbandonedPairingCounts(reason: UInt8) throws {
        let encounter = try Encounter(.peripheral) { $0.pairingHandler = { _, _ in {} } }
        encounter.send(Self.request)
        encounter.send([0x05, reason])
        let wait = try encounter.run { $0.pairing.attempts.wait(for: peerAddress, at: $0.loop.now) }
        #expect(wait != nil)
    }

    @Test func peerGetsNoAnswerAfterTheTimeoutOfAPairing() throws {
        let encounter = try Encounter(.peripheral) { $0.pairingHandler = { _, _ in {} } }
        encounter.send(Self.request)
        encounter.fixture.loop.run(for: .seconds(30))
        let isClosed = try encounter.run { $0.links[connection]?.security.securityManager.deadline == nil }
        #expect(isClosed)
        encounter.send(Self.request)
        encounter.settle()
        #expect(encounter.heard == [])
    }
}
