import BLESMP
import BluetoothTypes
import Testing

private let request: [UInt8] = [0x01, 0x03, 0x00, 0x09, 0x10, 0x07, 0x07]
private let response: [UInt8] = [0x02, 0x03, 0x00, 0x09, 0x10, 0x06, 0x06]
private let justWorks = KeyStrength(isAuthenticated: false, isSecureConnections: true, keySize: 16)

private func method(_ name: String) throws -> Method {
    try #require(Method.all.first { $0.description == name })
}

@Suite("A Security Request")
struct SecurityRequestTests {
    @Test(
        arguments: [
            (.noInputNoOutput, true, true, 0x09), (.noInputNoOutput, false, true, 0x08),
            (.displayOnly, true, true, 0x0D),
            (.displayOnly, true, false, 0x05),
        ] as [(IOCapability, Bool, Bool, UInt8)]
    )
    func securityRequestContainsThePeripheralsRequirements(
        capability: IOCapability,
        bonds: Bool,
        secure: Bool,
        octet: UInt8
    ) {
        var device = Device(.peripheral) {
            $0.ioCapability = capability
            $0.bonds = bonds
            if !secure { $0.peerOutOfBandData = .temporaryKey(1) }
        }
        #expect(device.start() == [.send([0x0B, octet])])
        #expect(device.channel.deadline == device.now + .seconds(30))
        #expect(!device.channel.isPairing && device.start() == [])
    }

    @Test func securityRequestIsReportedAndTheCentralMayRefuseEncryptOrPair() {
        let requirements = SecurityRequirements(bonds: true, isAuthenticated: true, isSecureConnections: true)
        var device = Device(.central)
        #expect(device.receive([0x0B, 0x0D]) == [.securityRequested(requirements)])
        #expect(device.channel.deadline == nil && !device.channel.isPairing)
        #expect(device.channel.cancel(.pairingNotSupported) == [.send([0x05, 0x05])])
        #expect(device.channel.cancel(.pairingNotSupported) == [])

        #expect(device.receive([0x0B, 0x0D]) == [.securityRequested(requirements)])
        #expect(device.encryptionChanged(to: justWorks) == [])
        #expect(device.channel.cancel(.pairingNotSupported) == [])

        #expect(device.receive([0x0B, 0x00]).count == 1)
        #expect(device.start() == [.send([0x01, 0x03, 0x00, 0x09, 0x10, 0x07, 0x07])])
        // Another Security Request, which has crossed with the Pairing Request.
        #expect(device.receive([0x0B, 0x0D]) == [])
        #expect(device.receive(response) == [.ask(.consent(.justWorks, justWorks))])
    }

    @Test func securityRequestMakesTwoDevicesPair() throws {
        var meeting = try method("Secure Connections, just works").meeting()
        meeting.start(.peripheral)
        meeting.run()
        #expect(meeting.central.securityRequests.count == 1)
        meeting.pair()
        #expect(meeting.central.outcome != nil && meeting.peripheral.outcome != nil)
    }

    @Test func securityRequestDuringEncryptionIsIgnoredByTheCentralOnly() throws {
        var meeting = try method("Secure Connections, just works").meeting()
        meeting.encrypts = false
        meeting.pair()
        var central = meeting.central
        #expect(central.channel.receive([0x0B, 0x09].rawSpan, at: meeting.now, random: &central.random) == [])
        #expect(central.channel.isPairing)
        var peripheral = meeting.peripheral
        let steps = peripheral.channel.receive([0x0B, 0x09].rawSpan, at: meeting.now, random: &peripheral.random)
        #expect(steps == .ending(.unspecifiedReason))
    }

    @Test func encryptionOrRefusalAnswersASecurityRequest() {
        var device = Device(.peripheral)
        _ = device.start()
        for strength in [justWorks, nil] {
            #expect(device.encryptionChanged(to: strength) == [] && device.channel.deadline == nil, "in vain or not")
            _ = device.start()
        }
        #expect(device.receive([0x05, 0x05]) == [.failed(.endedByPeer(.pairingNotSupported))])
        #expect(device.channel.deadline == nil)
    }
}

@Suite("The Security Manager's timer")
struct TimerTests {
    private let closed: [PairingStep] = [.failed(.timedOut)]

    @Test(arguments: [0, 1, 2])
    func timerEndsTheProcedureAndTheSecurityManagerAfter30Seconds(stage: Int) {
        var device = Device(stage == 1 ? .central : .peripheral)
        switch stage {
        case 0, 1: #expect(device.start().count == 1)
        default: #expect(device.receive(request).count == 1)
        }
        #expect(device.advance(by: .seconds(30) - .nanoseconds(1)) == [])
        #expect(device.advance(by: .nanoseconds(1)) == closed)
        #expect(device.channel.deadline == nil && !device.channel.isPairing)
        #expect(device.advance(by: .seconds(30)) == [])
        // Nothing is sent or accepted any more.
        #expect(device.receive(request) == [] && device.receive(response) == [] && device.receive([0xFF]) == [])
        #expect(device.answer(.accept) == [] && device.channel.cancel(.unspecifiedReason) == [])
        #expect(device.start() == closed)
    }

    @Test func onlySentPDUsRestartTheTimer() {
        var device = Device(.central) { $0.ioCapability = .displayOnly }
        _ = device.start()
        _ = device.advance(by: .seconds(20))
        #expect(device.receive([0x02, 0x02, 0x00, 0x05, 0x10, 0x07, 0x07]).sent.isEmpty)
        _ = device.advance(by: .seconds(9))
        #expect(device.answer(.accept).sent.map(\.first) == [0x03])
        #expect(device.channel.deadline == device.now + .seconds(30))
        _ = device.advance(by: .seconds(20))
        #expect(device.receive([0x0E, 0x01]) == [])
        #expect(device.channel.deadline == device.now + .seconds(10))
    }

    @Test func expiredTimerIsNoticedAtTheNextInput() {
        for step in 0..<3 {
            var device = Device(.peripheral)
            _ = device.receive(request)
            device.now = device.now + .seconds(31)
            switch step {
            case 0: #expect(device.receive(request) == closed)
            case 1: #expect(device.answer(.accept) == closed)
            default: #expect(device.encryptionChanged(to: justWorks) == closed)
            }
        }
    }
}

@Suite("A pairing's end")
struct EndTests {
    @Test(arguments: [0x01, 0x08, 0x77, 0xFF] as [UInt8])
    func pairingFailedOfThePeerIsReportedAndNotAnswered(reason: UInt8) {
        for role in [Channel.Role.central, .peripheral] {
            var (device, _) = Device.agreed(role, with: role == .central ? response : request)
            #expect(device.receive([0x05, reason]) == [.failed(.endedByPeer(PairingFailedReason(rawValue: reason)))])
            #expect(!device.channel.isPairing)
            #expect(device.receive([0x05, reason]) == [])
        }
    }

    @Test(
        arguments: [[0x05], [0x05, 1, 2]] as [[UInt8]]
    )
    func pairingFailedOfWrongLengthEndsThePairing(pdu: [UInt8]) {
        var (device, _) = Device.agreed(.central, with: response)
        #expect(device.receive(pdu) == [.failed(.endedByPeer(.unspecifiedReason))])
        #expect(device.receive(pdu) == [])
    }

    @Test(
        arguments: [
            ([0x01, 0x03, 0x00, 0x09, 0x10, 0x07], .invalidParameters),
            ([0x01, 0x03, 0x00, 0x09, 0x10, 0x07, 0x07, 0x00], .invalidParameters),
            ([0x01, 0x05, 0x00, 0x09, 0x10, 0x07, 0x07], .invalidParameters),
            ([0x0C] + [UInt8](repeating: 1, count: 65), .invalidParameters),
            ([0x03] + [UInt8](repeating: 1, count: 600), .invalidParameters),
        ] as [([UInt8], PairingFailedReason)]
    )
    func pduOfWrongLengthOrValueIsAnsweredByPairingFailed(pdu: [UInt8], reason: PairingFailedReason) {
        for role in [Channel.Role.central, .peripheral] {
            var (device, _) = Device.agreed(role, with: role == .central ? response : request)
            #expect(device.receive(pdu) == .ending(reason))
            #expect(device.receive(pdu) == [.send([0x05, reason.rawValue])])
            #expect(!device.channel.isPairing && device.channel.deadline == nil)
        }
    }

    /// Vol 3, Part H, 3.5.5.
    @Test func pairingRequestWithExcessBytesIsAnsweredByInvalidParameters() {
        var device = Device(.peripheral)
        #expect(device.receive(request + [0x00]) == [.send([0x05, 0x0A])])
        #expect(!device.channel.isPairing)
    }

    /// An empty PDU has no code, so it is no command (Vol 3, Part H, 3.3).
    @Test func emptyPDUIsIgnored() {
        for role in [Channel.Role.central, .peripheral] {
            var (device, _) = Device.agreed(role, with: role == .central ? response : request)
            #expect(device.receive([]) == [])
            #expect(device.channel.isPairing)
            _ = device.channel.cancel(.unspecifiedReason)
            #expect(device.receive([]) == [])
        }
    }

    @Test(arguments: [0x00, 0x0F, 0xFF])
    func commandWithAReservedCodeIsIgnored(code: UInt8) {
        for role in [Channel.Role.central, .peripheral] {
            var (device, _) = Device.agreed(role, with: role == .central ? response : request)
            #expect(device.receive([code, 0x00]) == [])
            #expect(device.channel.isPairing)
            _ = device.channel.cancel(.unspecifiedReason)
            #expect(device.receive([code]) == [])
        }
    }

    @Test func commandOfTheOtherRoleIsAnsweredByCommandNotSupported() {
        var central = Device(.central)
        #expect(central.receive(request) == [.send([0x05, 0x07])])
        var peripheral = Device(.peripheral)
        #expect(peripheral.receive([0x0B, 0x01]) == [.send([0x05, 0x07])])
        #expect(!central.channel.isPairing && !peripheral.channel.isPairing)
    }

    @Test func pdusAndAnswersWithoutAPairingAreIgnored() {
        for role in [Channel.Role.central, .peripheral] {
            var device = Device(role)
            for code in [0x03, 0x04, 0x06, 0x08, 0x0A, 0x0D] as [UInt8] {
                #expect(device.receive([code] + [UInt8](repeating: 9, count: 16)) == [])
            }
            #expect(device.receive(response) == [])
            #expect(device.answer(.accept) == [] && device.answer(.passkey(1)) == [])
            #expect(device.encryptionChanged(to: justWorks) == [] && device.encryptionChanged(to: nil) == [])
        }
    }

    @Test func cancellationIsSentToThePeerAndLinkEndIsReportedToTheOwner() {
        var (device, _) = Device.agreed(.central, with: response)
        #expect(device.channel.cancel(.repeatedAttempts) == .ending(.repeatedAttempts))
        #expect(device.channel.cancel(.repeatedAttempts) == [])
        _ = device.start()
        #expect(device.channel.linkEnded() == [.failed(.linkEnded)])
        #expect(device.channel.linkEnded() == [])
        #expect(device.start() == [.failed(.linkEnded)])
    }

    @Test func refusalByAPersonSendsTheMatchingReason() {
        var peripheral = Device(.peripheral)
        _ = peripheral.receive(request)
        #expect(peripheral.answer(.refuse) == .ending(.pairingNotSupported))
        var central = Device(.central)
        _ = central.start()
        _ = central.receive(response)
        #expect(central.answer(.refuse) == .ending(.unspecifiedReason))
        for capability in [IOCapability.keyboardOnly, .displayOnly] {
            let peer: UInt8 = capability == .keyboardOnly ? 0x00 : 0x02
            var (device, _) = Device.agreed(.central, with: [0x02, peer, 0x00, 0x05, 0x10, 0x07, 0x07]) {
                $0.ioCapability = capability
            }
            #expect(device.answer(.accept) == [])
            #expect(device.answer(.refuse) == .ending(.passkeyEntryFailed))
        }
        var (typing, _) = Device.agreed(.central, with: [0x02, 0x00, 0x00, 0x05, 0x10, 0x07, 0x07]) {
            $0.ioCapability = .keyboardOnly
        }
        #expect(typing.answer(.passkey(1_000_000)) == .ending(.passkeyEntryFailed))
    }

    @Test func refusedComparisonEndsThePairingOnBothSides() throws {
        var meeting = try method("Secure Connections, numeric comparison").meeting()
        meeting.verdict = .refuse
        meeting.pair()
        #expect(meeting.central.failure == .ended(.numericComparisonFailed))
        #expect(meeting.peripheral.failure == .endedByPeer(.numericComparisonFailed))
        #expect(meeting.sent.last?.pdu == [0x05, 0x0C])
    }

    @Test(arguments: [false, true], [0, 1, 0xF_0000] as [UInt32])
    func passkeyThatDiffersFromTheShownOneEndsThePairing(secure: Bool, difference: UInt32) throws {
        let name = "\(secure ? "Secure Connections" : "legacy"), passkey shown by the peripheral"
        var meeting = try method(name).meeting()
        meeting.pair()
        let shown = meeting.asked.lazy.compactMap { if case .showPasskey(let passkey) = $0.0 { passkey } else { nil } }
            .first
        let passkey = try #require(shown)
        meeting = try method(name).meeting()
        meeting.typed = passkey ^ difference
        meeting.pair()
        #expect((meeting.central.outcome != nil) == (difference == 0))
        #expect((meeting.peripheral.outcome != nil) == (difference == 0))
        if difference != 0, passkey ^ difference <= 999_999 {
            #expect(meeting.sent.last?.pdu == [0x05, 0x04])
        }
    }
}

@Suite("The features that two devices negotiate")
struct AgreementTests {
    @Test(arguments: 7...16 as ClosedRange<UInt8>, [false, true])
    func negotiatedKeysHaveTheShorterKeySize(size: UInt8, secure: Bool) throws {
        var method = try method(secure ? "Secure Connections, just works" : "legacy, just works")
        method.central.minimumKeySize = 7
        method.peripheral.minimumKeySize = 7
        method.peripheral.maximumKeySize = size
        var meeting = method.meeting()
        meeting.pair()
        let central = try #require(meeting.central.outcome)
        let peripheral = try #require(meeting.peripheral.outcome)
        #expect(central.strength.keySize == size && peripheral.strength.keySize == size)
        let keys = [
            meeting.encryptionKey, central.bond.centralKey, central.bond.peripheralKey, peripheral.bond.centralKey,
            peripheral.bond.peripheralKey,
        ]
        for key in keys {
            let key = try #require(key)
            #expect(key.strength.keySize == size)
            // Only 2^-32 of all keys have four more leading zero bytes.
            #expect(key.value.leadingZeroBitCount >= 128 - 8 * Int(size))
            #expect(key.value.leadingZeroBitCount < 128 - 8 * Int(size) + 32)
        }
        #expect(central.bond.centralKey == peripheral.bond.peripheralKey)
    }

    @Test(
        arguments: [(false, true), (true, false), (false, false)]
    )
    func pairingWithoutBondingOnOneSideDistributesNoKeys(centralBonds: Bool, peripheralBonds: Bool) throws {
        for name in ["legacy, just works", "Secure Connections, just works"] {
            var method = try method(name)
            method.central.bonds = centralBonds
            method.peripheral.bonds = peripheralBonds
            var meeting = method.meeting()
            meeting.pair()
            let central = try #require(meeting.central.outcome)
            let peripheral = try #require(meeting.peripheral.outcome)
            #expect(!central.isBonded && !peripheral.isBonded)
            #expect(meeting.sent.count == meeting.sentInPlain)
            #expect(central.bond.identity == Meeting.peripheral && peripheral.bond.identity == Meeting.central)
            #expect((central.bond.centralKey != nil) == method.isSecureConnections)
        }
    }

    @Test func deviceWithoutAResolvingKeyDistributesNoIdentity() throws {
        var meeting = try method("Secure Connections, just works").meeting()
        meeting.peripheral.channel.identity.resolvingKey = nil
        meeting.pair()
        #expect(meeting.sent[1].pdu == [0x02, 0x03, 0x00, 0x09, 0x10, 0x06, 0x04])
        let bond = try #require(meeting.central.outcome).bond
        #expect(bond.identity == Meeting.peripheral && bond.identityResolvingKey == nil)
        #expect(bond.peerSigningKey != nil && meeting.peripheral.outcome?.bond.identityResolvingKey != nil)
    }

    @Test(arguments: Method.all)
    func pairingAgainOnAnEncryptedLinkGivesAnotherKey(method: Method) throws {
        var meeting = method.meeting()
        meeting.pair()
        let first = try #require(meeting.encryptionKey)
        meeting.forget()
        meeting.pair()
        let second = try #require(meeting.encryptionKey)
        #expect(first.value != second.value)
        #expect(meeting.central.outcome != nil && meeting.peripheral.outcome != nil)
    }

    @Test func parametersChangedDuringAPairingHaveNoEffectOnIt() {
        var device = Device(.peripheral)
        _ = device.receive(request)
        device.channel.parameters.requiresAuthentication = true
        #expect(device.answer(.accept) == [.send([0x02, 0x03, 0x00, 0x09, 0x10, 0x06, 0x06])])
    }

    @Test func onlyASuccessfulRefreshDuringKeyDistributionKeepsThePairing() throws {
        for strength in [justWorks, nil] {
            var meeting = try method("Secure Connections, just works").meeting()
            meeting.encrypts = false
            meeting.pair()
            meeting.encryptionChanged(to: justWorks, as: .peripheral)
            #expect(meeting.peripheral.channel.isPairing)
            meeting.encryptionChanged(to: strength, as: .peripheral)
            #expect(meeting.peripheral.channel.isPairing == (strength != nil))
            #expect(meeting.peripheral.failure == (strength == nil ? .encryptionFailed : nil))
        }
    }
}
