import BLESMP
import BluetoothTypes
import Testing

@Suite("Two devices that pair")
struct PairingTests {
    @Test(arguments: Method.all, [1, 2, 3] as [UInt64])
    func pairingGivesBothDevicesTheSameKeysWithEachMethod(method: Method, seed: UInt64) throws {
        var meeting = method.meeting(seed: seed)
        meeting.pair()
        #expect(meeting.central.failure == nil && meeting.peripheral.failure == nil)
        let central = try #require(meeting.central.outcome)
        let peripheral = try #require(meeting.peripheral.outcome)
        let strength = KeyStrength(
            isAuthenticated: method.model != .justWorks,
            isSecureConnections: method.isSecureConnections,
            keySize: 16
        )
        #expect(central.model == method.model && peripheral.model == method.modelOfPeripheral)
        #expect(central.strength == strength && peripheral.strength == strength)
        #expect(central.isBonded && peripheral.isBonded)
        #expect(central.bond.strength == strength && peripheral.bond.strength == strength)

        #expect(central.bond.centralKey == peripheral.bond.peripheralKey)
        #expect(central.bond.peripheralKey == peripheral.bond.centralKey)
        #expect(central.bond.centralKey != nil && central.bond.peripheralKey != nil)
        let key = try #require(meeting.encryptionKey)
        if method.isSecureConnections {
            #expect(central.bond.centralKey == key && central.bond.peripheralKey == key)
            #expect(key.encryptedDiversifier == 0 && key.randomNumber == 0)
        } else {
            #expect(Set([key.value, central.bond.centralKey?.value, central.bond.peripheralKey?.value]).count == 3)
        }
        #expect(central.bond.identity == Meeting.peripheralIdentity.address)
        #expect(peripheral.bond.identity == Meeting.centralIdentity.address)
        #expect(central.bond.identityResolvingKey == Meeting.peripheralIdentity.resolvingKey)
        #expect(peripheral.bond.identityResolvingKey == Meeting.centralIdentity.resolvingKey)
        #expect(central.bond.ownSigningKey != nil && central.bond.ownSigningKey == peripheral.bond.peerSigningKey)
        #expect(central.bond.peerSigningKey != nil && central.bond.peerSigningKey == peripheral.bond.ownSigningKey)
        #expect(central.bond.peerIOCapability == meeting.peripheral.channel.parameters.ioCapability)
        #expect(peripheral.bond.peerIOCapability == meeting.central.channel.parameters.ioCapability)
        #expect(!meeting.central.channel.isPairing && !meeting.peripheral.channel.isPairing)
        #expect(meeting.central.channel.deadline == nil && meeting.peripheral.channel.deadline == nil)
    }

    @Test(arguments: Method.all)
    func consentIsAskedFirstWithModelAndStrength(method: Method) throws {
        var meeting = method.meeting()
        meeting.pair()
        let strength = try #require(meeting.central.outcome?.strength)
        for role in [Channel.Role.central, .peripheral] {
            let first = meeting.asked.first { $0.of == role }
            let model = role == .central ? method.model : method.modelOfPeripheral
            #expect(first?.0 == .consent(model, strength))
        }
    }

    @Test(arguments: [Channel.Role.central, .peripheral])
    func delayedConsentToJustWorksIsAskedWhenTheNoncesHaveBeenExchanged(role: Channel.Role) throws {
        var parameters = PairingParameters()
        parameters.delaysJustWorksConsent = true
        var meeting = Meeting(
            central: role == .central ? parameters : PairingParameters(),
            peripheral: role == .peripheral ? parameters : PairingParameters()
        )
        meeting.consents = false
        meeting.pair()
        // Only the other device asks before the pairing.
        #expect(meeting.asked.map(\.of) == [role == .central ? .peripheral : .central])
        meeting.consents = true
        meeting.run()
        let strength = KeyStrength(isAuthenticated: false, isSecureConnections: true, keySize: 16)
        #expect(meeting.asked.last?.0 == .consent(.justWorks, strength) && meeting.asked.last?.of == role)
        #expect(meeting.central.outcome?.strength == strength && meeting.peripheral.outcome?.strength == strength)
    }

    @Test(arguments: [Channel.Role.central, .peripheral])
    func refusedDelayedConsentEndsThePairing(role: Channel.Role) throws {
        var parameters = PairingParameters()
        parameters.delaysJustWorksConsent = true
        var meeting = Meeting(central: parameters, peripheral: parameters)
        meeting.consents = false
        meeting.pair()
        #expect(meeting.central.questions.count == 1 && meeting.peripheral.questions.count == 1)
        #expect(meeting.sent.last?.pdu.first == 0x04, "Pairing Random")
        meeting.answer(.refuse, as: role)
        meeting.run()
        let (refusing, other) =
            role == .central ? (meeting.central, meeting.peripheral) : (meeting.peripheral, meeting.central)
        #expect(refusing.failure == .ended(.unspecifiedReason))
        #expect(other.failure == .endedByPeer(.unspecifiedReason))
    }

    @Test(arguments: [Channel.Role.central, .peripheral])
    func ownerMayRefuseAPairingToWhichTheUserConsentsLater(role: Channel.Role) throws {
        var parameters = PairingParameters()
        parameters.delaysJustWorksConsent = true
        var meeting = Meeting(
            central: role == .central ? parameters : PairingParameters(),
            peripheral: role == .peripheral ? parameters : PairingParameters()
        )
        meeting.policyAnswer = .refuse
        meeting.pair()
        let reason: PairingFailedReason = role == .central ? .unspecifiedReason : .pairingNotSupported
        let refusing = role == .central ? meeting.central : meeting.peripheral
        #expect(refusing.failure == .ended(reason) && !meeting.asked.contains { $0.of == role })
        // Without the option, the refusal has the same reason and follows the same PDUs.
        let codes: [UInt8] = role == .central ? [0x01, 0x02, 0x05] : [0x01, 0x05]
        #expect(meeting.sent.compactMap(\.pdu.first) == codes)
    }

    @Test func consentToOtherModelsIsNotDelayed() {
        for method in Method.all where method.model != .justWorks || !method.isSecureConnections {
            var meeting = method.meeting()
            meeting.peripheral.channel.parameters.delaysJustWorksConsent = true
            meeting.consents = false
            meeting.pair()
            #expect(meeting.asked.map(\.of) == [.peripheral])
        }
    }

    /// Vol 3, Part C, 10.7.
    @Test func zeroIdentityAddressIsReplacedByTheAddressOfTheConnection() throws {
        let method = try #require(Method.all.first { $0.description == "legacy, just works" })
        for type in [0, 1] as [UInt8] {
            var meeting = method.meeting()
            meeting.replacement = { $0 == 9 ? [0x09, type, 0, 0, 0, 0, 0, 0] : $1 }
            meeting.pair()
            let bond = try #require(meeting.central.outcome?.bond)
            #expect(bond.identity == Meeting.peripheral)
            #expect(bond.identityResolvingKey == Meeting.peripheralIdentity.resolvingKey)
            #expect(meeting.peripheral.outcome != nil)
        }
    }

    /// Vol 3, Part C, 10.7. The central has a private address.
    @Test func zeroIdentityAddressOfAPrivatePeerIsReplacedByOneThatDependsOnItsKey() throws {
        let method = try #require(Method.all.first { $0.description == "legacy, just works" })
        func bond(seed: UInt64, replacing key: [UInt8]? = nil) throws -> Bond {
            var meeting = method.meeting(seed: seed)
            // The central's IRK and identity address follow its LTK, after the peripheral's keys.
            meeting.replacement = { number, pdu in
                if number == 13, let key { return [0x08] + key }
                return number == 14 ? [0x09, 0, 0, 0, 0, 0, 0, 0] : pdu
            }
            meeting.pair()
            #expect(meeting.sent[13].pdu.first == 0x08 && meeting.sent[14].pdu.first == 0x09)
            #expect(meeting.central.outcome != nil)
            return try #require(meeting.peripheral.outcome?.bond)
        }
        let first = try bond(seed: 1)
        #expect(first.identity.kind == .randomStatic)
        #expect(first.identityResolvingKey == Meeting.centralIdentity.resolvingKey)
        let second = try bond(seed: 2)
        #expect(second.identity == first.identity, "the peer has another identity when it pairs again")
        let other = try bond(seed: 1, replacing: [UInt8](repeating: 7, count: 16))
        #expect(other.identity.kind == .randomStatic && other.identity != first.identity)
        let unidentified = try bond(seed: 1, replacing: [UInt8](repeating: 0, count: 16))
        #expect(unidentified.identity == Meeting.central && unidentified.identityResolvingKey == nil)
    }

    /// The central has a private address, which the owner has resolved.
    @Test func zeroIdentityAddressOfAKnownPeerIsReplacedByItsIdentity() throws {
        let method = try #require(Method.all.first { $0.description == "legacy, just works" })
        func bond(_ identity: DeviceAddress?, hasKey: Bool = true) throws -> Bond {
            var meeting = method.meeting()
            meeting.peripheral.channel.peerIdentity = identity
            meeting.replacement = { number, pdu in
                if number == 13, !hasKey { return [0x08] + [UInt8](repeating: 0, count: 16) }
                return number == 14 ? [0x09, 0, 0, 0, 0, 0, 0, 0] : pdu
            }
            meeting.pair()
            return try #require(meeting.peripheral.outcome?.bond)
        }
        let unknown = try bond(nil)
        for address in ["00:1A:7D:DA:71:13/P", "F0:12:34:56:78:9A"] as [DeviceAddress] {
            let known = try bond(address)
            #expect(known.identity == address)
            #expect(known.identityResolvingKey == Meeting.centralIdentity.resolvingKey)
            let unidentified = try bond(address, hasKey: false)
            #expect(unidentified.identity == Meeting.central && unidentified.identityResolvingKey == nil)
        }
        let unresolved = try bond(Meeting.central)
        #expect(unresolved.identity == unknown.identity)
    }

    @Test func substituteForAZeroIdentityAddressIsNotThisDevicesOwn() throws {
        let method = try #require(Method.all.first { $0.description == "legacy, just works" })
        func meeting(ownAddress: DeviceAddress) -> Meeting {
            var meeting = method.meeting()
            meeting.peripheral.channel.identity = LocalIdentity(
                address: ownAddress,
                resolvingKey: Meeting.peripheralIdentity.resolvingKey
            )
            meeting.replacement = { $0 == 14 ? [0x09, 0, 0, 0, 0, 0, 0, 0] : $1 }
            meeting.pair()
            return meeting
        }
        let earlier = meeting(ownAddress: Meeting.peripheralIdentity.address)
        let substitute = try #require(earlier.peripheral.outcome?.bond.identity)
        #expect(meeting(ownAddress: substitute).peripheral.failure == .ended(.keyRejected))
    }
}
