import BLESMP
import BluetoothTypes
import Testing

/// Just Works, as a peer requests it and answers, with LE Secure Connections and without.
private let secureRequest: [UInt8] = [0x01, 0x03, 0x00, 0x09, 0x10, 0x07, 0x07]
private let secureResponse: [UInt8] = [0x02, 0x03, 0x00, 0x09, 0x10, 0x06, 0x06]
private let legacyRequest: [UInt8] = [0x01, 0x03, 0x00, 0x01, 0x10, 0x07, 0x07]
private let legacyResponse: [UInt8] = [0x02, 0x03, 0x00, 0x01, 0x10, 0x07, 0x07]

/// The debug public key, whose private key is public knowledge (Vol 3, Part H, 2.3.5.6.1).
private let debugKey: (x: [UInt8], y: [UInt8]) = (
    [
        0xE6, 0x9D, 0x35, 0x0E, 0x48, 0x01, 0x03, 0xCC, 0xDB, 0xFD, 0xF4, 0xAC, 0x11, 0x91, 0xF4, 0xEF,
        0xB9, 0xA5, 0xF9, 0xE9, 0xA7, 0x83, 0x2C, 0x5E, 0x2C, 0xBE, 0x97, 0xF2, 0xD2, 0x03, 0xB0, 0x20,
    ],
    [
        0x8B, 0xD2, 0x89, 0x15, 0xD0, 0x8E, 0x1C, 0x74, 0x24, 0x30, 0xED, 0x8F, 0xC2, 0x45, 0x63, 0x76,
        0x5C, 0x15, 0x52, 0x5A, 0xBF, 0x9A, 0x32, 0x63, 0x6D, 0xEB, 0x2A, 0x65, 0x49, 0x9C, 0x80, 0xDC,
    ]
)

/// A point of the curve that is no debug key (Vol 2, Part G, 7.1.2.1, key B).
private let somePoint: (x: [UInt8], y: [UInt8]) = (
    [
        0x90, 0xA1, 0xAA, 0x2F, 0xB2, 0x77, 0x90, 0x55, 0x9F, 0xA6, 0x15, 0x86, 0xFD, 0x8A, 0xB5, 0x47,
        0x00, 0x4C, 0x9E, 0xF1, 0x84, 0x22, 0x59, 0x09, 0x96, 0x1D, 0xAF, 0x1F, 0xF0, 0xF0, 0xA1, 0x1E,
    ],
    [
        0x4A, 0x21, 0xB1, 0x15, 0xF9, 0xAF, 0x89, 0x5F, 0x76, 0x36, 0x8E, 0xE2, 0x30, 0x11, 0x2D, 0x47,
        0x60, 0x51, 0xB8, 0x9A, 0x3A, 0x70, 0x56, 0x73, 0x37, 0xAD, 0x9D, 0x42, 0x3E, 0xF3, 0x55, 0x4C,
    ]
)

private let zeros = [UInt8](repeating: 0, count: 32)
private let ones = [UInt8](repeating: 0xFF, count: 32)

/// Expects that a device has no pairing state left after an attack, and can begin a new pairing.
private func expectNothingLeft(_ device: Device) {
    #expect(!device.channel.isPairing && device.channel.deadline == nil)
    var device = device
    let steps = device.channel.role == .central ? device.start() : device.receive(secureRequest)
    #expect(steps.count == 1 && device.channel.isPairing, "a new pairing does not begin")
}

@Suite("An attack with the public key")
struct PublicKeyAttackTests {
    /// CVE-2018-5383.
    @Test(
        arguments: [
            somePoint.x + zeros, zeros + zeros, zeros + somePoint.y, ones + ones, somePoint.x + somePoint.x,
            somePoint.y + somePoint.x,
        ],
        [Channel.Role.central, .peripheral]
    )
    func publicKeyThatIsNoPointOfTheCurveEndsThePairing(key: [UInt8], role: Channel.Role) {
        var (device, _) = Device.agreed(role, with: role == .central ? secureResponse : secureRequest)
        #expect(device.receive([0x0C] + key) == .ending(.dhKeyCheckFailed))
        expectNothingLeft(device)
    }

    @Test(arguments: [Channel.Role.central, .peripheral])
    func publicKeyOnTheCurveContinuesThePairing(role: Channel.Role) {
        var (device, sent) = Device.agreed(role, with: role == .central ? secureResponse : secureRequest)
        let steps = device.receive([0x0C] + somePoint.x + somePoint.y)
        #expect(device.channel.isPairing)
        // The responder sends its own key and its confirm value; the initiator waits for the latter.
        #expect((sent + steps.sent).map(\.first) == (role == .central ? [0x01, 0x0C] : [0x02, 0x0C, 0x03]))
    }

    /// CVE-2020-26558.
    @Test(arguments: [false, true])
    func publicKeyReflectedWithEitherYEndsThePairing(negated: Bool) throws {
        var (device, sent) = Device.agreed(.central, with: secureResponse)
        var key = try #require(sent.last)
        #expect(key.count == 65 && key[0] == 0x0C)
        if negated { key.replaceSubrange(33..., with: negative(ofY: Array(key[33...]))) }
        #expect(device.receive(key) == .ending(.dhKeyCheckFailed))
        expectNothingLeft(device)
    }

    /// Returns p - y, least significant byte first.
    private func negative(ofY y: [UInt8]) -> [UInt8] {
        let prime: [UInt8] =
            [UInt8](repeating: 0xFF, count: 12) + [UInt8](repeating: 0, count: 12) + [
                0x01, 0x00, 0x00, 0x00, 0xFF, 0xFF, 0xFF, 0xFF,
            ]
        var borrow = 0
        return zip(prime, y).map { minuend, subtrahend in
            let difference = Int(minuend) - Int(subtrahend) - borrow
            borrow = difference < 0 ? 1 : 0
            return UInt8(truncatingIfNeeded: difference)
        }
    }

    @Test(arguments: [false, true])
    func debugKeyEndsThePairingUnlessItIsAllowed(allowed: Bool) {
        for role in [Channel.Role.central, .peripheral] {
            var (device, _) = Device.agreed(role, with: role == .central ? secureResponse : secureRequest) {
                $0.allowsDebugKey = allowed
            }
            let steps = device.receive([0x0C] + debugKey.x + debugKey.y)
            #expect((steps == .ending(.invalidParameters)) != allowed)
            #expect(device.channel.isPairing == allowed)
        }
    }
}

@Suite("An attack by reflection")
struct ReflectionAttackTests {
    private func method(_ model: AssociationModel, secure: Bool) throws -> Method {
        try #require(Method.all.first { $0.model == model && $0.isSecureConnections == secure })
    }

    /// CVE-2020-26558.
    @Test func reflectedLegacyConfirmValueEndsThePairing() throws {
        var (device, sent) = Device.agreed(.central, with: legacyResponse)
        let confirm = try #require(sent.last)
        #expect(confirm.count == 17 && confirm[0] == 0x03)
        #expect(device.receive(confirm) == .ending(.confirmValueFailed))
        expectNothingLeft(device)
    }

    /// CVE-2020-26558.
    @Test(
        arguments: [AssociationModel.passkeyShownHere, .passkeyTypedHere, .passkeyTypedOnBoth]
    )
    func reflectedConfirmValueOrNonceOfPasskeyEntryEndsThePairing(model: AssociationModel) throws {
        // Pairing Request, Response, public keys; then the central's confirm value, the peripheral's, their nonces.
        for (reflected, number) in [(4, 5), (6, 7), (40, 41), (42, 43)] {
            var meeting = try method(model, secure: true).meeting()
            meeting.pair()
            let own = meeting.sent[reflected].pdu
            #expect(meeting.sent[reflected].to == .peripheral && meeting.sent[number].to == .central)
            #expect(own[0] == meeting.sent[number].pdu[0])

            meeting = try method(model, secure: true).meeting()
            meeting.replacement = { $0 == number ? own : $1 }
            meeting.pair()
            #expect(meeting.central.failure == .ended(.confirmValueFailed))
            #expect(meeting.peripheral.failure == .endedByPeer(.confirmValueFailed))
            #expect(meeting.sent.last?.pdu == [0x05, 0x04])
        }
    }

    @Test(
        arguments: [AssociationModel.numericComparison, .justWorks, .outOfBand]
    )
    func reflectedNonceEndsThePairing(model: AssociationModel) throws {
        let method = try method(model, secure: true)
        var meeting = method.meeting()
        meeting.pair()
        let number = try #require(meeting.sent.firstIndex { $0.to == .central && $0.pdu[0] == 0x04 })
        let own = try #require(meeting.sent.first { $0.to == .peripheral && $0.pdu[0] == 0x04 }).pdu
        meeting = method.meeting()
        meeting.replacement = { $0 == number ? own : $1 }
        meeting.pair()
        #expect(meeting.central.failure == .ended(.confirmValueFailed))
        #expect(meeting.peripheral.outcome == nil)
    }

    @Test func reflectedDHKeyCheckEndsThePairing() throws {
        let method = try method(.justWorks, secure: true)
        var meeting = method.meeting()
        meeting.pair()
        let own = meeting.sent[7].pdu
        #expect(own[0] == 0x0D && meeting.sent[8].pdu[0] == 0x0D)
        meeting = method.meeting()
        meeting.replacement = { $0 == 8 ? own : $1 }
        meeting.pair()
        #expect(meeting.central.failure == .ended(.dhKeyCheckFailed))
    }
}

@Suite("An attack on the negotiated features")
struct AgreementAttackTests {
    @Test(arguments: 7...15 as ClosedRange<UInt8>)
    func keyShorterThanTheMinimumEndsThePairing(size: UInt8) {
        var peripheral = Device(.peripheral)
        var request = secureRequest
        request[4] = size
        #expect(peripheral.receive(request) == .ending(.encryptionKeySize))
        expectNothingLeft(peripheral)

        var central = Device(.central)
        _ = central.start()
        var response = secureResponse
        response[4] = size
        #expect(central.receive(response) == .ending(.encryptionKeySize))
        expectNothingLeft(central)
    }

    @Test(arguments: [0, 6, 17, 0xFF] as [UInt8])
    func invalidKeySizeEndsThePairing(size: UInt8) {
        var central = Device(.central)
        _ = central.start()
        var response = secureResponse
        response[4] = size
        #expect(central.receive(response) == .ending(.invalidParameters))
    }

    @Test func responseWithUnrequestedKeysEndsThePairing() {
        for (octet, keys) in [(5, 0x08), (6, 0x08), (5, 0x0F)] as [(Int, UInt8)] {
            var central = Device(.central)
            _ = central.start()
            var response = secureResponse
            response[octet] = keys
            #expect(central.receive(response) == .ending(.invalidParameters))
        }
        var central = Device(.central) { $0.bonds = false }
        #expect(central.start() == [.send([0x01, 0x03, 0x00, 0x08, 0x10, 0x00, 0x00])])
        #expect(central.receive(secureResponse) == .ending(.invalidParameters))
    }

    @Test func downgradeBelowTheRequirementsEndsThePairing() {
        for (pdu, role) in [(legacyRequest, Channel.Role.peripheral), (legacyResponse, .central)] {
            var device = Device(role) { $0.requiresSecureConnections = true }
            if role == .central { _ = device.start() }
            #expect(device.receive(pdu) == .ending(.authenticationRequirements))
        }
        for (pdu, role) in [(secureRequest, Channel.Role.peripheral), (secureResponse, .central)] {
            var device = Device(role) {
                $0.requiresAuthentication = true
                $0.ioCapability = .keyboardDisplay
            }
            if role == .central { _ = device.start() }
            #expect(device.receive(pdu) == .ending(.authenticationRequirements))
        }
    }

    @Test func outOfBandDataThatWasNotHandedOverEndsThePairing() {
        var device = Device(.peripheral)
        #expect(device.receive([0x01, 0x03, 0x01, 0x09, 0x10, 0x07, 0x07]) == .ending(.outOfBandNotAvailable))
    }

    @Test func wrongOutOfBandConfirmValueEndsThePairingBeforeTheOwnKeyIsSent() {
        var (device, sent) = Device.agreed(.peripheral, with: [0x01, 0x03, 0x00, 0x09, 0x10, 0x07, 0x07]) {
            $0.peerOutOfBandData = .secureConnections(confirm: 1, random: 2)
        }
        #expect(sent.count == 1)
        #expect(device.receive([0x0C] + somePoint.x + somePoint.y) == .ending(.confirmValueFailed))
    }

    @Test func linkKeyForBREDRIsNeitherOfferedNorAccepted() {
        var (_, sent) = Device.agreed(.peripheral, with: [0x01, 0x03, 0x00, 0x09, 0x10, 0x0F, 0x0F])
        #expect(sent == [[0x02, 0x03, 0x00, 0x09, 0x10, 0x06, 0x06]])
        sent = Device.agreed(.peripheral, with: [0x01, 0x03, 0x00, 0x01, 0x10, 0x0F, 0x0F]).sent
        #expect(sent == [[0x02, 0x03, 0x00, 0x09, 0x10, 0x07, 0x07]])
    }
}

@Suite("An attack with PDUs out of order")
struct OrderAttackTests {
    private let confirm: [UInt8] = [0x03] + [UInt8](repeating: 0x55, count: 16)
    private let random: [UInt8] = [0x04] + [UInt8](repeating: 0x66, count: 16)

    @Test(arguments: [false, true])
    func randomValueBeforeTheConfirmValueEndsThePairing(types: Bool) {
        let response: [UInt8] = types ? [0x02, 0x02, 0x00, 0x05, 0x10, 0x07, 0x07] : legacyResponse
        var (central, sent) = Device.agreed(.central, with: response) { if types { $0.ioCapability = .displayOnly } }
        #expect(sent.map(\.first) == [0x01, 0x03])
        #expect(central.receive(random) == .ending(.unspecifiedReason))
        expectNothingLeft(central)

        let request: [UInt8] = types ? [0x01, 0x02, 0x00, 0x05, 0x10, 0x07, 0x07] : legacyRequest
        var (peripheral, _) = Device.agreed(.peripheral, with: request) { if types { $0.ioCapability = .displayOnly } }
        #expect(peripheral.receive(random) == .ending(.unspecifiedReason))
        expectNothingLeft(peripheral)
    }

    @Test func secondConfirmValueEndsThePairing() {
        var (peripheral, _) = Device.agreed(.peripheral, with: legacyRequest)
        #expect(peripheral.receive(confirm).sent.map(\.first) == [0x03])
        #expect(peripheral.receive(confirm) == .ending(.unspecifiedReason))
        expectNothingLeft(peripheral)
    }

    @Test func randomValueThatDoesNotMatchItsConfirmValueGetsNoneInReturn() {
        var (peripheral, _) = Device.agreed(.peripheral, with: [0x01, 0x02, 0x00, 0x05, 0x10, 0x07, 0x07]) {
            $0.ioCapability = .displayOnly
        }
        #expect(peripheral.receive(confirm).sent.map(\.first) == [0x03])
        #expect(peripheral.receive(random) == .ending(.confirmValueFailed))
        expectNothingLeft(peripheral)
    }

    @Test func firstConfirmValueIsKeptAndFurtherPDUsEndThePairingWhileTyping() {
        for secure in [false, true] {
            let flags: UInt8 = secure ? 0x0D : 0x05
            func typing() -> Device {
                var (device, _) = Device.agreed(.peripheral, with: [0x01, 0x00, 0x00, flags, 0x10, 0x07, 0x07]) {
                    $0.ioCapability = .keyboardOnly
                }
                if secure { _ = device.receive([0x0C] + somePoint.x + somePoint.y) }
                return device
            }
            var device = typing()
            #expect(device.receive(confirm) == [])
            #expect(device.receive(confirm) == .ending(.unspecifiedReason))
            device = typing()
            #expect(device.receive(random) == .ending(.unspecifiedReason))
            device = typing()
            #expect(device.receive(confirm) == [])
            #expect(device.answer(.passkey(123_456)).sent.map(\.first) == [0x03])
        }
    }

    @Test func outOfOrderPDUsDuringAPairingEndIt() {
        let key = [UInt8](repeating: 1, count: 16)
        let early: [[UInt8]] = [
            secureRequest, secureResponse, [0x06] + key, [0x07] + key.prefix(10), [0x08] + key,
            [0x09, 1, 1, 2, 3, 4, 5, 0xC6], [0x0A] + key, [0x0D] + key, [0x0B, 0x01], [0x0E, 0x00],
        ]
        for pdu in early {
            for (role, peer) in [
                (Channel.Role.central, legacyResponse), (.central, secureResponse), (.peripheral, legacyRequest),
                (.peripheral, secureRequest),
            ] {
                var (device, _) = Device.agreed(role, with: peer)
                #expect(device.receive(pdu) == .ending(.unspecifiedReason), "\(pdu)")
                expectNothingLeft(device)
            }
        }
    }

    @Test func pduBeforeConsentEndsThePairing() {
        for pdu in [secureRequest, confirm, [0x0C] + somePoint.x + somePoint.y] {
            var device = Device(.peripheral)
            #expect(device.receive(secureRequest).sent.isEmpty)
            #expect(device.receive(pdu) == .ending(.unspecifiedReason))
            #expect(device.answer(.accept) == [])
        }
    }

    @Test(arguments: [false, true])
    func anyPDUWhileTheLinkIsBeingEncryptedEndsThePairing(secure: Bool) throws {
        let method = try #require(Method.all.first { $0.model == .justWorks && $0.isSecureConnections == secure })
        var meeting = method.meeting()
        meeting.pair()
        let plain = try #require(meeting.sentInPlain)
        let sent = meeting.sent
        for (key, _) in sent.dropFirst(plain) + sent.prefix(plain) {
            for role in [Channel.Role.central, .peripheral] {
                var meeting = method.meeting()
                meeting.encrypts = false
                meeting.pair()
                #expect(meeting.sent.count == plain)
                meeting.receive(key, as: role)
                let party = role == .central ? meeting.central : meeting.peripheral
                #expect(party.failure == .ended(.unspecifiedReason))
                #expect(meeting.sent.last?.pdu == [0x05, 0x08])
            }
        }
    }

    @Test func encryptionByAnotherKeyThanNegotiatedEndsThePairing() throws {
        let method = try #require(Method.all.first { $0.model == .passkeyTypedOnBoth && $0.isSecureConnections })
        for strength in [
            KeyStrength(isAuthenticated: false, isSecureConnections: true, keySize: 16),
            KeyStrength(isAuthenticated: true, isSecureConnections: false, keySize: 16),
            KeyStrength(isAuthenticated: true, isSecureConnections: true, keySize: 15),
            nil,
        ] {
            var meeting = method.meeting()
            meeting.encrypts = false
            meeting.pair()
            meeting.encryptionChanged(to: strength, as: .peripheral)
            #expect(meeting.peripheral.failure == .encryptionFailed)
            #expect(meeting.sent.last?.pdu == [0x05, 0x08])
        }
    }

    @Test func encryptionBeforeThereIsAKeyEndsThePairing() {
        var (device, _) = Device.agreed(.peripheral, with: secureRequest)
        let strength = KeyStrength(isAuthenticated: false, isSecureConnections: true, keySize: 16)
        #expect(device.encryptionChanged(to: strength) == .ending(.unspecifiedReason))
        expectNothingLeft(device)
    }
}

@Suite("An attack with the distributed keys")
struct DistributionAttackTests {
    /// The keys that the peripheral sends in legacy pairing, in order: LTK, EDIV and Rand, IRK, address, CSRK.
    private func failure(replacing index: Int, by pdu: [UInt8]) throws -> Meeting {
        let method = try #require(Method.all.first { $0.description == "legacy, just works" })
        var meeting = method.meeting()
        meeting.replacement = { $0 == 6 + index ? pdu : $1 }
        meeting.pair()
        return meeting
    }

    @Test(
        arguments: [
            (0, [0x06] + [UInt8](repeating: 0, count: 16), .keyRejected),
            (3, [0x09, 0x00, 0xEF, 0x32, 0x07, 0xDC, 0x1B, 0x00], .keyRejected),  // the central's own
            (3, [0x09, 0x01, 1, 2, 3, 4, 5, 0x4A], .invalidParameters),
            (3, [0x09, 0x01, 1, 2, 3, 4, 5, 0x0A], .invalidParameters),
            (3, [0x09, 0x02, 1, 2, 3, 4, 5, 0xCA], .invalidParameters),
        ] as [(Int, [UInt8], PairingFailedReason)]
    )
    func zeroLongTermKeyOrInvalidIdentityAddressEndsThePairing(index: Int, pdu: [UInt8], reason: PairingFailedReason)
        throws
    {
        let meeting = try failure(replacing: index, by: pdu)
        #expect(meeting.central.failure == .ended(reason))
        #expect(meeting.peripheral.failure == .endedByPeer(reason))
        #expect(meeting.sent.last?.pdu == [0x05, reason.rawValue])
    }

    /// Vol 3, Part H, 3.6.4.
    @Test func zeroIdentityResolvingKeyCountsAsNoKey() throws {
        let meeting = try failure(replacing: 2, by: [0x08] + [UInt8](repeating: 0, count: 16))
        let outcome = try #require(meeting.central.outcome)
        #expect(outcome.bond.identityResolvingKey == nil)
        #expect(outcome.bond.identity == Meeting.peripheralIdentity.address)
    }

    @Test func zeroSigningKeyCountsAsNoKey() throws {
        let meeting = try failure(replacing: 4, by: [0x0A] + [UInt8](repeating: 0, count: 16))
        let outcome = try #require(meeting.central.outcome)
        #expect(outcome.bond.peerSigningKey == nil && outcome.bond.identityResolvingKey != nil)
        #expect(meeting.peripheral.outcome != nil)
    }

    @Test(arguments: 0..<5)
    func keysInAnotherOrderOrNotNegotiatedEndThePairing(index: Int) throws {
        let key = [UInt8](repeating: 7, count: 16)
        let all: [[UInt8]] = [
            [0x06] + key, [0x07] + key.prefix(10), [0x08] + key, [0x09, 1, 1, 2, 3, 4, 5, 0xCA], [0x0A] + key,
        ]
        for (other, pdu) in all.enumerated() where other != index {
            let meeting = try failure(replacing: index, by: pdu)
            #expect(meeting.central.failure == .ended(.unspecifiedReason))
        }
        // Secure Connections has no long term key to distribute.
        let method = try #require(Method.all.first { $0.description == "Secure Connections, just works" })
        var meeting = method.meeting()
        meeting.replacement = { $0 == 9 ? [0x06] + key : $1 }
        meeting.pair()
        #expect(meeting.central.failure == .ended(.unspecifiedReason))
    }
}
