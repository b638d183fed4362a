import BLECryptography
import BLEHCI
import BLESMP
import BluetoothTypes
import Testing

@testable import BluetoothHost

/// Vol 3, Part H, 2.4.6: the central encrypts if its key has the requested properties, and pairs otherwise.
@Suite("A Security Request with MITM protection to a central whose bond is unauthenticated")
struct SecurityRequestAuthenticationTests {
    private typealias Side = SecuritySide

    /// Bonding, MITM protection and LE Secure Connections.
    private static let request: [UInt8] = [0x0B, 0x0D]
    private static let pairingRequest: UInt8 = 0x01
    private static let enableEncryption = SecurityEffect.enableEncryption(Side.key)

    private func central(
        _ capability: IOCapability,
        peer: IOCapability?,
        policy change: (inout SecurityPolicy) -> Void = { _ in }
    ) -> Side {
        var bond = Side.bond(.central)
        bond.peerIOCapability = peer
        return Side(.central, bond: bond) {
            $0.ioCapability = capability
            change(&$0)
        }
    }

    /// Pairs of capabilities with which no pairing can be authenticated.
    private static let hopeless: [(IOCapability, IOCapability?)] = [
        (.noInputNoOutput, nil), (.noInputNoOutput, .keyboardDisplay), (.displayYesNo, .noInputNoOutput),
        (.keyboardDisplay, .noInputNoOutput), (.displayOnly, .displayYesNo),
    ]

    @Test(arguments: hopeless)
    func requestDuringTheEncryptionIsMetByIt(own: IOCapability, peer: IOCapability?) {
        var side = central(own, peer: peer)
        #expect(side.begin().contains(Self.enableEncryption))
        #expect(side.receive(Self.request) == [])
        let effects = side.encryptionChanged(isOn: true)
        #expect(effects.pdus.isEmpty && effects.contains(Side.success(.peer)))
        #expect(side.state == .settled(Side.encrypted(.bond)))
    }

    @Test(arguments: hopeless)
    func requestOnAnEncryptedLinkIsAnsweredByARefresh(own: IOCapability, peer: IOCapability?) {
        var side = central(own, peer: peer)
        side.enter(.settled(Side.encrypted(.bond)))
        for _ in 0..<2 {
            #expect(side.receive(Self.request) == [Self.enableEncryption])
            // One refresh answers all requests that arrive during it.
            for _ in 0..<3 { #expect(side.receive(Self.request) == []) }
            #expect(side.engine.published.gate == .open)
            #expect(
                side.encryptionChanged(isOn: true) == [
                    side.encryptionReport(isOn: true), .setAuthenticatedPayloadTimeout, .identityVerified,
                    Side.success(.peer),
                ]
            )
            #expect(side.engine.isIdentityVerified && !side.state.isBusy)
        }
    }

    @Test func keyOfAPairingWithoutABondRefreshesTheEncryption() {
        var side = Side(.central)
        side.engine.transientKeys = Side.bond(.central)
        side.enter(.settled(Side.encrypted(.transient)))
        #expect(side.receive(Self.request) == [Self.enableEncryption])
        #expect(side.encryptionChanged(isOn: true).contains(Side.success(.peer)))
        #expect(side.state == .settled(Side.encrypted(.transient)))
    }

    @Test func requestOnAnEncryptedLinkWithoutAKeyIsRefused() {
        var side = Side(.central)
        side.enter(.settled(Side.encrypted(.transient)))
        let refusal = SecurityError.refused("the link is encrypted, and there is no key to refresh that")
        for _ in 0..<2 {
            #expect(side.receive(Self.request) == [.send([0x05, 0x05]), Side.failure(refusal, .peer)])
        }
        #expect(side.state == .settled(Side.encrypted(.transient)))
    }

    @Test func requestDuringTheDecisionAboutABondIsAnsweredAfterIt() throws {
        var side = Side(.central)
        side.enter(.awaitingBondDecision(side.completedPairing()))
        let question = try #require(side.decide(.replacesOther(Side.strength)).question)
        #expect(side.receive(Self.request) == [])
        _ = side.engine.answered(question, .accept, &side.context)
        side.setBond(Side.bond(.central))
        #expect(side.decide(.bonded).contains(Self.enableEncryption))
    }

    @Test func refreshThatTheControllerRefusesIsNotRepeated() {
        var side = central(.noInputNoOutput, peer: nil)
        side.enter(.settled(Side.encrypted(.bond)))
        _ = side.receive(Self.request)
        let refused = side.engine.encryptionRefused(Side.key, .commandDisallowed, &side.context)
        #expect(refused.pdus == [[0x05, 0x05]])
        #expect(side.engine.strength == Side.strength && side.engine.published.gate == .open)
        #expect(side.receive(Self.request).pdus == [[0x05, 0x05]])
    }

    @Test func refusedRefreshDoesNotPreventAPairing() {
        var side = central(.keyboardDisplay, peer: nil)
        side.enter(.settled(Side.encrypted(.bond)))
        _ = side.receive([0x0B, 0x01])
        _ = side.engine.encryptionRefused(Side.key, .commandDisallowed, &side.context)
        let effects = side.require(Side.call, RequiredSecurity(isAuthenticated: true))
        #expect(effects.pdus.map(\.first) == [Self.pairingRequest])
    }

    @Test(arguments: hopeless)
    func requestIsAnsweredByEncryption(own: IOCapability, peer: IOCapability?) {
        var side = central(own, peer: peer) { $0.encryptsBondedLinks = false }
        #expect(side.receive(Self.request) == [Self.enableEncryption])
        let effects = side.encryptionChanged(isOn: true)
        #expect(effects.pdus.isEmpty && effects.contains(Side.success(.peer)))
    }

    @Test(
        arguments: [
            (.keyboardDisplay, nil), (.keyboardDisplay, .displayOnly), (.displayYesNo, .displayYesNo),
        ] as [(IOCapability, IOCapability?)]
    )
    func requestThatAPairingMayMeetIsAnsweredByAPairing(own: IOCapability, peer: IOCapability?) {
        var side = central(own, peer: peer)
        _ = side.begin()
        #expect(side.receive(Self.request) == [])
        #expect(side.encryptionChanged(isOn: true).pdus.map(\.first) == [Self.pairingRequest])
    }

    @Test func outOfBandDataAllowAPairing() {
        var side = central(.keyboardDisplay, peer: .noInputNoOutput) {
            $0.peerOutOfBandData = .secureConnections(confirm: 1, random: 2)
        }
        _ = side.begin()
        _ = side.receive(Self.request)
        #expect(side.encryptionChanged(isOn: true).pdus.map(\.first) == [Self.pairingRequest])
    }

    @Test func callThatNeedsAuthenticationPairsNevertheless() {
        var side = central(.keyboardDisplay, peer: .noInputNoOutput)
        _ = side.begin()
        _ = side.encryptionChanged(isOn: true)
        let required = RequiredSecurity(isAuthenticated: true)
        #expect(side.require(Side.call, required, for: .app).pdus.map(\.first) == [Self.pairingRequest])
    }

    /// A peripheral without input and output that requests MITM protection on each link. The bond is of an earlier
    /// version or was imported, so the host does not know the peer's capability at first.
    @Test func devicesPairAtMostOnce() {
        var bond = Side.bond(.central)
        var pairings: [Int] = []
        for _ in 0..<3 {
            let central = Side(.central, bond: bond) { $0.ioCapability = .keyboardDisplay }
            var peripheralBond = Side.bond(.peripheral, key: bond.centralKey)
            peripheralBond.peerIOCapability = .keyboardDisplay
            var pair = SecurityPair(central, Side(.peripheral, bond: peripheralBond))
            pair.perform(.central) { $0.begin() }
            pair.perform(.central) { $0.receive(Self.request) }
            pairings.append(
                pair.log[.central]?.count { if case .report(.pairingStarted) = $0 { true } else { false } } ?? 0
            )
            #expect(pair.central.engine.isIdentityVerified && pair.central.engine.published.gate == .open)
            bond = pair.central.context.bond ?? bond
        }
        #expect(pairings == [1, 0, 0])
        #expect(bond.peerIOCapability == .noInputNoOutput)
    }

    // MARK: The peripheral

    @Test func peripheralRequestsNoMoreThanTheKeyOfTheBondGives() {
        let legacy = KeyStrength(isAuthenticated: false, isSecureConnections: false, keySize: 16)
        let strong = KeyStrength(isAuthenticated: true, isSecureConnections: true, keySize: 16)
        for (strength, request) in [(Side.strength, 0x09), (legacy, 0x01), (strong, 0x0D)] as [(KeyStrength, UInt8)] {
            let bond = Side.bond(.peripheral, key: LongTermKey(value: 1, strength: strength))
            var side = Side(.peripheral, bond: bond) {
                $0.ioCapability = .keyboardDisplay
                $0.requestsEncryption = true
            }
            #expect(side.begin().pdus == [[0x0B, request]])
        }
    }

    @Test func peripheralRequestsAuthenticationIfItIsNeededOrThereIsNoBond() {
        var bonded = Side(.peripheral, bond: Side.bond(.peripheral)) { $0.ioCapability = .keyboardDisplay }
        #expect(bonded.require(Side.call, RequiredSecurity(isAuthenticated: true)).pdus == [[0x0B, 0x0D]])
        var unbonded = Side(.peripheral) { $0.ioCapability = .keyboardDisplay }
        #expect(unbonded.require().pdus == [[0x0B, 0x0D]])
    }

    @Test func centralThatPairsInsteadIsOfferedAuthentication() throws {
        var side = Side(.peripheral, bond: Side.bond(.peripheral)) { $0.ioCapability = .keyboardDisplay }
        #expect(side.require().pdus == [[0x0B, 0x09]])
        let question = try #require(side.receive([0x01, 0x04, 0x00, 0x0D, 0x10, 0x01, 0x01]).question)
        let effects = side.engine.answered(question, .accept, &side.context)
        let response = try #require(effects.pdus.first)
        #expect(response.first == 0x02 && response[3] == 0x0D)
    }

    @Test func twoDevicesWithInputAndOutputDoNotReplaceAnUnauthenticatedBond() {
        var pair = SecurityPair(
            central(.keyboardDisplay, peer: nil) { $0.encryptsBondedLinks = false },
            Side(.peripheral, bond: Side.bond(.peripheral)) { $0.ioCapability = .keyboardDisplay }
        )
        pair.perform(.peripheral) { $0.require() }
        #expect(pair.log[.peripheral]?.last == Side.success())
        #expect(pair.central.context.bond?.centralKey == Side.key)
    }
}

/// Vol 3, Part H, 2.3.6: no Security Request follows a failed pairing before the waiting interval is over.
@Suite("A Security Request after a failed pairing")
struct SecurityRequestWaitTests {
    private typealias Side = SecuritySide

    private static let request: [[UInt8]] = [[0x0B, 0x09]]

    /// A bonded peripheral whose central pairs again.
    private func pairing(_ change: (inout SecurityPolicy) -> Void = { _ in }) -> Side {
        var side = Side(.peripheral, bond: Side.bond(.peripheral), policy: change)
        _ = side.receive([0x01, 0x03, 0x00, 0x09, 0x10, 0x01, 0x01])
        return side
    }

    @Test func verificationIsPutOffUntilTheWaitIsOver() {
        var side = pairing { $0.requestsEncryption = true }
        #expect(side.engine.securityManager.isPairing)
        let failed = side.receive([0x05, 0x08])
        #expect(failed.contains(.attemptFailed(side.peer, countsForAll: false)) && failed.pdus.isEmpty)
        #expect(side.engine.published.gate == .unverified)
        #expect(side.engine.deadline == side.context.now + .seconds(1))
        // The wait is longer than the engine assumed.
        side.context.waitOfPeer = .seconds(3)
        let early = side.advance(.seconds(1))
        #expect(early.pdus.isEmpty && side.engine.deadline == side.context.now + .seconds(3))
        side.context.waitOfPeer = nil
        let late = side.advance(.seconds(3))
        #expect(late.pdus == Self.request)
        #expect(side.engine.contradiction(side.context) == nil)
    }

    @Test func verificationThatWasPutOffDoesNotBeginIfTheCentralHasEncrypted() {
        var side = pairing { $0.requestsEncryption = true }
        _ = side.receive([0x05, 0x08])
        _ = side.requestKey()
        _ = side.encryptionChanged(isOn: true)
        #expect(side.engine.isIdentityVerified)
        let effects = side.advance(.seconds(1))
        #expect(effects.pdus.isEmpty && side.engine.verificationRetry == nil)
    }

    @Test func verificationThatWasPutOffFollowsACallThatIsCancelled() {
        var side = pairing { $0.requestsEncryption = true }
        _ = side.receive([0x05, 0x08])
        let call = side.require()
        #expect(call.pdus == Self.request)
        let due = side.advance(.seconds(1))
        #expect(due.pdus.isEmpty && side.engine.verificationRetry == nil)
        let cancelled = side.cancel()
        #expect(cancelled.pdus == [[0x05, 0x08]] + Self.request)
        #expect(side.state.waiting.map(\.caller) == [.verification])
        #expect(side.engine.contradiction(side.context) == nil)
    }

    @Test func callFailsUntilTheWaitIsOver() {
        var side = pairing()
        _ = side.receive([0x05, 0x08])
        side.context.waitOfPeer = .seconds(2)
        let early = side.require()
        #expect(early == [Side.failure(.repeatedAttempts(.seconds(2)))])
        side.context.waitOfPeer = nil
        let late = side.require()
        #expect(late.pdus == Self.request)
    }

    /// The central offers a key of 7 bytes, with and without a Security Request before.
    @Test(arguments: [true, false])
    func refusedParametersAreAFailedAttempt(isRequested: Bool) {
        var side = Side(.peripheral, bond: Side.bond(.peripheral))
        if isRequested {
            let effects = side.require()
            #expect(effects.pdus == Self.request)
        }
        let effects = side.receive([0x01, 0x03, 0x00, 0x09, 0x07, 0x01, 0x01])
        #expect(effects.pdus == [[0x05, 0x06]])
        #expect(effects.count { $0 == .attemptFailed(side.peer, countsForAll: false) } == 1)
        let error = SecurityError.pairing(.ended(.encryptionKeySize))
        #expect(effects.contains(isRequested ? Side.failure(error) : side.pairingFailed(error)))
        #expect(side.state == .settled(.unencrypted))
    }

    @Test func requestToACentralThatHasNotEncryptedWaits() {
        var side = Side(.peripheral, bond: Side.bond(.peripheral))
        _ = side.begin()
        side.context.waitOfPeer = .seconds(4)
        let early = side.advance(.seconds(5))
        #expect(early.pdus.isEmpty && side.engine.deadline == side.context.now + .seconds(4))
        side.context.waitOfPeer = .seconds(60)
        let stillEarly = side.advance(.seconds(4))
        #expect(stillEarly.pdus.isEmpty)
        // The central is disconnected in time, whatever its wait.
        #expect(side.engine.deadline == Side.start + .seconds(30))
        let end = side.advance(.seconds(21))
        #expect(end.contains(.disconnect(.authenticationFailure)))
    }
}
