import BLECryptography
import BLEHCI
import BLESMP
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("The verification of a bonded peer's identity")
struct LinkSecurityVerificationTests {
    private typealias Side = SecuritySide
    typealias Role = SecurityChannel<SwiftCryptography>.Role

    private static let roles: [Role] = [.central, .peripheral]

    // MARK: Beginning

    @Test("A new link to a bonded peer is encrypted by a central, and by a peripheral whose policy asks for it")
    func newLinkToABondedPeerIsEncrypted() {
        var central = Side(.central, bond: Side.bond(.central))
        #expect(central.begin() == [.enableEncryption(Side.key), Side.bonded(.verifying)])
        var silent = Side(.peripheral, bond: Side.bond(.peripheral))
        #expect(silent.begin() == [])
        var asking = Side(.peripheral, bond: Side.bond(.peripheral)) { $0.requestsEncryption = true }
        #expect(asking.begin().pdus == [[0x0B, 0x09]])
    }

    @Test("A peripheral whose policy asks for it requests encryption also of a peer that need not be verified")
    func peripheralRequestsEncryptionOfAPeerThatNeedNotBeVerified() {
        func asking(bond: Bond?) -> Side {
            Side(.peripheral, bond: bond) {
                $0.encryptsBondedLinks = false
                $0.requestsEncryption = true
            }
        }
        var bonded = asking(bond: Side.bond(.peripheral))
        #expect(bonded.begin().pdus == [[0x0B, 0x09]])
        #expect(bonded.engine.published.gate == .open)
        let refusal = SecurityError.pairing(.endedByPeer(.pairingNotSupported))
        #expect(bonded.receive([0x05, 0x05]) == [Side.failure(refusal, .verification)])
        #expect(bonded.engine.verificationFailure == nil)
        #expect(bonded.changeContext() == [], "the central is asked once")
        var unbonded = asking(bond: nil)
        #expect(unbonded.begin() == [])
    }

    @Test("A bond that is imported on an idle link closes the gate, and the peer is verified")
    func importedBondClosesTheGateAndVerifiesThePeer() {
        var side = Side(.central)
        _ = side.begin()
        side.setBond(Side.bond(.central))
        #expect(side.changeContext() == [.enableEncryption(Side.key), Side.bonded(.verifying)])
    }

    @Test("Encryption that ends during a pairing begins again after the pairing")
    func encryptionEndedDuringAPairingBeginsAgainAfterIt() {
        var side = Side(.central, bond: Side.bond(.central))
        side.enter(.settled(Side.encrypted(.bond)))
        _ = side.require(pairsAgain: true)
        #expect(side.engine.securityManager.isPairing)
        #expect(!side.encryptionChanged(isOn: false).contains(.enableEncryption(Side.key)))
        #expect(side.receive([0x05, 0x08]).contains(.enableEncryption(Side.key)))
        #expect(side.state.waiting == [.verification])
    }

    @Test("Encryption that ends while the app is asked about a bond begins again after the answer")
    func encryptionEndedDuringAQuestionBeginsAgainAfterIt() throws {
        var side = Side(.central, bond: Side.bond(.central))
        side.enter(.awaitingBondDecision(side.completedPairing()))
        let question = try #require(side.decide(.replacesOther(Side.strength)).question)
        _ = side.encryptionChanged(isOn: false)
        _ = side.engine.answered(question, .accept, &side.context)
        let effects = side.decide(.bonded)
        #expect(effects.contains(.enableEncryption(Side.key)) && !effects.contains(.identityVerified))
    }

    @Test("A cancelled call does not begin another verification", arguments: roles)
    func cancelledCallDoesNotWaitForTheVerificationAnyMore(role: SecurityChannel<SwiftCryptography>.Role) {
        var side = Side(role, bond: Side.bond(role)) { $0.requestsEncryption = true }
        _ = side.begin()
        #expect(!side.state.waiting.isEmpty)
        _ = side.cancel(.verification)
        #expect(side.state.waiting.isEmpty)
    }

    // MARK: Failures

    @Test("A failure of the bond's key is kept by a pairing that fails later")
    func failedPairingKeepsFailure() {
        var side = Side(.central, bond: Side.bond(.central))
        side.enter(.settled(Side.unencrypted(.keyMissing)))
        _ = side.require(pairsAgain: true)
        guard case .pairing(var work) = side.state else {
            Issue.record("\(side.state)")
            return
        }
        work.encryption = .inProgress(Side.key, deadline: Side.start + .seconds(40))
        side.enter(.pairing(work))
        _ = side.encryptionChanged(.pinOrKeyMissing, isOn: false)
        let effects = side.receive([0x05, 0x08])
        #expect(side.state == .settled(Side.unencrypted(.keyMissing)))
        #expect(!effects.contains(.enableEncryption(Side.key)))
        #expect(effects.last == Side.bonded(.failed(.security(.keyMissing))))
        #expect(side.require(Side.otherCall) == [Side.failure(.keyMissing, Side.otherCall)])
    }

    @Test("The failure of a key without a bond says nothing about bonds, and devices can pair afterwards")
    func failureOfATransientKeySaysNothingAboutBonds() {
        var side = Side(.peripheral)
        side.enter(Side.encrypting(.transient, Side.waiting()))
        #expect(
            side.encryptionChanged(.pinOrKeyMissing, isOn: false) == [
                Side.failure(.encryptionFailed(.pinOrKeyMissing))
            ]
        )
        #expect(side.state == .settled(.unencrypted))
        #expect(side.require(Side.otherCall).pdus == [[0x0B, 0x09]])
    }

    @Test("Calls that wait for the end of a failed pairing's encryption get a pairing of their own")
    func callsAfterAFailedPairingGetAPairingOfTheirOwn() {
        var side = Side(.central)
        side.enter(Side.encrypting(.incompletePairing, Side.waiting()))
        let effects = side.encryptionChanged(.pinOrKeyMissing, isOn: false)
        #expect(effects.pdus.map(\.first) == [0x01])
        #expect(side.state.waiting.map(\.caller) == [Side.call])
    }

    @Test("A link that ends while a key without a bond is tried reports no lost bond")
    func linkThatEndsWithATransientKeyReportsNoLostBond() {
        var side = Side(.peripheral)
        side.enter(Side.encrypting(.transient, Side.waiting()))
        let error = HostError.disconnected(.controller(.pinOrKeyMissing))
        #expect(side.linkEnded(.pinOrKeyMissing) == [.finish(Side.call, .failure(error))])
    }

    @Test("The failure of a key that an imported bond replaces does not count")
    func failureOfAReplacedKeyDoesNotCount() {
        var side = Side(.central, bond: Side.bond(.central))
        side.enter(.settled(Side.unencrypted(.keyMissing)))
        let other = LongTermKey(value: 0x77, strength: Side.strength)
        side.engine.verificationFailure = .keyMissing
        side.setBond(Side.bond(.central, key: other))
        #expect(side.changeContext() == [.enableEncryption(other), Side.bonded(.verifying)])
    }

    @Test("A key that the policy accepts from now on is tried at once")
    func keyAcceptedByANewPolicyIsTriedAtOnce() {
        var short = Side.key
        short.strength = KeyStrength(isAuthenticated: false, isSecureConnections: false, keySize: 7)
        var side = Side(.central, bond: Side.bond(.central, key: short), hasPairingHandler: false) {
            $0.minimumKeySizeInBytes = 16
        }
        _ = side.begin()
        guard case .failed = side.engine.published.gate else {
            Issue.record("\(side.engine.published)")
            return
        }
        var policy = side.engine.policy
        policy.minimumKeySizeInBytes = 7
        #expect(side.engine.setPolicy(policy, &side.context).first == .enableEncryption(short))
    }

    @Test("The failure of a key that the bond no longer has is not that of the bond", arguments: [true, false])
    func failureOfAKeyReplacedMeanwhileIsNotThatOfTheBond(linkEnds: Bool) {
        var side = Side(.central, bond: Side.bond(.central))
        _ = side.require()
        let other = LongTermKey(value: 0x77, strength: Side.strength)
        side.setBond(Side.bond(.central, key: other))
        _ = side.changeContext()
        if linkEnds {
            let error = HostError.disconnected(.controller(.pinOrKeyMissing))
            #expect(side.linkEnded(.pinOrKeyMissing) == [.finish(Side.call, .failure(error))])
        } else {
            #expect(side.encryptionChanged(.pinOrKeyMissing, isOn: false).first == .enableEncryption(other))
        }
    }

    // MARK: Pairings that have not succeeded

    /// A side whose bonded peer pairs again, and whose link is encrypted with the key of the pairing.
    private func pairing(_ role: Role, from current: CurrentEncryption) throws -> Side {
        var side = Side(role, bond: Side.bond(role))
        side.enter(.settled(current))
        _ =
            role == .central
            ? side.require(pairsAgain: true) : side.receive([0x01, 0x03, 0x00, 0x09, 0x10, 0x01, 0x01])
        guard case .pairing(var work) = side.state else { throw HostError.closed }
        var key = ActiveKey(strength: Side.strength, origin: .incompletePairing)
        key.followsVerifiedKey = current.key?.origin == .bond
        work.current = CurrentEncryption(key: key, keyFailure: current.keyFailure)
        side.enter(.pairing(work))
        return side
    }

    @Test("The key of a pairing opens no gate before the pairing has succeeded", arguments: roles)
    func keyOfAPairingOpensNoGateBeforeItSucceeds(role: Role) throws {
        var side = try pairing(role, from: .unencrypted)
        #expect(side.engine.published.gate == .verifying && !side.engine.published.isIdentityUnverified)
        let effects = side.receive([0x05, 0x08])
        #expect(side.engine.published.isIdentityUnverified)
        switch role {
        case .central:
            #expect(effects.contains(.enableEncryption(Side.key)))
            #expect(side.engine.published.gate == .verifying)
        case .peripheral:
            #expect(side.engine.published.gate == .unverified)
            #expect(side.advance(.seconds(31)).contains(.disconnect(.authenticationFailure)))
        }
    }

    @Test("A peer that was verified before a pairing stays verified during it, and if it fails", arguments: roles)
    func verifiedPeerStaysVerifiedDuringAPairing(role: Role) throws {
        var side = try pairing(role, from: Side.encrypted(.bond))
        #expect(side.engine.published.gate == .open)
        _ = side.receive([0x05, 0x08])
        #expect(side.engine.published.gate == .open)
    }

    @Test("A failed bond key is not tried again after a pairing that fails once it has encrypted the link")
    func failureIsKeptByUnsavedKey() throws {
        var side = try pairing(.central, from: Side.unencrypted(.keyMissing))
        _ = side.receive([0x05, 0x08])
        #expect(side.engine.published.gate == .failed(.security(.keyMissing)))
        #expect(!side.encryptionChanged(isOn: false).contains(.enableEncryption(Side.key)))
    }

    @Test("A failure is forgotten when the gate opens for another reason")
    func failureIsForgottenWhenTheGateOpens() {
        var side = Side(.central, bond: Side.bond(.central)) { $0.securesOnDemand = false }
        side.engine.verificationFailure = .timedOut
        _ = side.changeContext()
        var policy = side.engine.policy
        policy.encryptsBondedLinks = false
        _ = side.engine.setPolicy(policy, &side.context)
        #expect(side.engine.verificationFailure == nil)
        policy.encryptsBondedLinks = true
        #expect(side.engine.setPolicy(policy, &side.context).first == .enableEncryption(Side.key))
    }

    @Test("A removed bond no longer verifies the peer")
    func removedBondNoLongerVerifiesThePeer() {
        var side = Side(.peripheral, bond: Side.bond(.peripheral)) { $0.pairable = .never }
        side.enter(.settled(Side.encrypted(.bond)))
        side.setBond(nil)
        _ = side.changeContext()
        #expect(!side.engine.isIdentityVerified && side.engine.strength == Side.strength)
        let refusal = [UInt8]([0x05, 0x05])
        #expect(side.receive([0x01, 0x03, 0x00, 0x09, 0x10, 0x01, 0x01]).pdus == [refusal])
    }

    @Test("The consent of a cancelled call to replace the bond ends with the call")
    func consentOfACancelledCallEndsWithTheCall() {
        var side = Side(.peripheral, bond: Side.bond(.peripheral))
        _ = side.require(pairsAgain: true)
        _ = side.require(.verification, for: .demand)
        _ = side.cancel()
        guard case .requesting(let work) = side.state else {
            Issue.record("\(side.state)")
            return
        }
        #expect(!work.replacesBond && work.initiative == .demand)
    }

    @Test("Two calls for another pairing are served by one")
    func pairingServesBothCalls() {
        var pair = SecurityPair(Side(.central), Side(.peripheral, bond: Side.bond(.peripheral)))
        pair.perform(.peripheral) { $0.require(pairsAgain: true) + $0.require(Side.otherCall, pairsAgain: true) }
        let ended = pair.log[.peripheral]?.filter { $0 == Side.success() || $0 == Side.success(Side.otherCall) }
        #expect(ended?.count == 2)
        #expect(pair.peripheral.state == .settled(Side.encrypted(.bond)))
    }

    // MARK: Links that this host ends

    @Test("A central that is not verified in time is disconnected once", arguments: [30, 1, 0, -1])
    func unverifiedCentralIsDisconnectedOnce(seconds: Int) {
        var side = Side(.peripheral, bond: Side.bond(.peripheral)) {
            $0.identityVerificationTimeout = .seconds(seconds)
        }
        var disconnections = 0
        var inputs = 0
        while let deadline = side.engine.deadline, inputs < 10 {
            side.context.now = deadline
            disconnections += side.engine.advance(&side.context).count { $0 == .disconnect(.authenticationFailure) }
            inputs += 1
        }
        #expect(disconnections == 1)
        #expect(side.context.now == Side.start + .seconds(max(seconds, 0)))
        #expect(side.engine.deadline == nil && side.advance(.seconds(60)) == [])
        #expect(side.receive([0x01, 0x03, 0x00, 0x09, 0x10, 0x01, 0x01]) == [], "the peer cannot pair any longer")
        #expect(side.requestKey() == [.keyReply(nil)])
    }

    @Test("A peer whose pairing was rejected is served as unverified until its link has ended")
    func rejectedPeerIsServedAsUnverifiedUntilTheEnd() {
        var side = Side(.central)
        side.enter(.awaitingBondDecision(side.completedPairing(Side.waiting())))
        let error = HostError.security(.tooManyBonds(3))
        #expect(
            side.decide(.refused(.tooManyBonds(3))) == [
                side.pairingFailed(.tooManyBonds(3)), .attemptFailed(side.peer, countsForAll: false),
                Side.failure(.tooManyBonds(3)), .disconnect(.authenticationFailure),
                Side.ending(error),
            ]
        )
        #expect(side.engine.strength == nil)
        #expect(side.require() == [Side.failure(.tooManyBonds(3))])
        #expect(side.encryptionChanged(isOn: true) == [] && side.encryptionChanged(isOn: false) == [])
        #expect(side.changeContext() == [])
    }

    @Test("If the host ends the link, each call that waits ends", arguments: roles)
    func waitingCallsEndIfTheHostEndsTheLink(role: SecurityChannel<SwiftCryptography>.Role) {
        var side = Side(role, bond: Side.bond(role))
        _ = side.require()
        let error = HostError.disconnected(.controller(.connectionTerminatedByLocalHost))
        let effects = side.engine.disconnectionBegan(error, &side.context)
        #expect(effects.first == .finish(Side.call, .failure(error)))
        #expect(effects.last == Side.ending(error))
        side.setBond(nil)
        #expect(side.changeContext() == [], "the gate stays closed")
        #expect(side.engine.contradiction(side.context) == nil)
    }

    // MARK: Pairing Requests

    @Test("A Pairing Request that arrives before the report of an encryption is handled after it")
    func pairingRequestBeforeAnEncryptionReportIsHandledAfterIt() {
        var side = Side(.peripheral, bond: Side.bond(.peripheral))
        _ = side.requestKey()
        let request: [UInt8] = [0x01, 0x03, 0x00, 0x09, 0x10, 0x01, 0x01]
        #expect(side.receive(request) == [] && side.receive(request) == [])
        #expect(!side.engine.securityManager.isPairing)
        let effects = side.encryptionChanged(isOn: true)
        #expect(effects.contains(.identityVerified))
        #expect(effects.contains(.report(.pairingStarted(Side.link, peer: side.peer))))
        #expect(side.engine.securityManager.isPairing)
        #expect(side.engine.contradiction(side.context) == nil)
    }

    @Test("Pairing Failed discards a Pairing Request that waits; one of wrong length is refused at once")
    func pairingFailedDiscardsAWaitingPairingRequest() {
        var side = Side(.peripheral, bond: Side.bond(.peripheral))
        _ = side.requestKey()
        #expect(side.receive([0x01, 0x03, 0x00, 0x09, 0x10, 0x01, 0x01, 0x00]).pdus == [[0x05, 0x0A]])
        #expect(side.receive([0x01, 0x03, 0x00, 0x09, 0x10, 0x01, 0x01]) == [])
        #expect(side.receive([0x05, 0x08]) == [])
        _ = side.encryptionChanged(isOn: true)
        #expect(!side.engine.securityManager.isPairing)
    }

    @Test("A pairing that this host ends is no failed attempt of the peer; a disconnection during a question is")
    func onlyADisconnectionDuringAQuestionIsAFailedAttempt() {
        var side = Side(.central)
        _ = side.require()
        let error = HostError.disconnected(.controller(.connectionTerminatedByLocalHost))
        let effects = side.engine.disconnectionBegan(error, &side.context)
        #expect(effects.contains(side.pairingFailed(.pairing(.linkEnded))))
        #expect(!effects.contains(.attemptFailed(side.peer, countsForAll: false)))
        _ = side.linkEnded(.connectionTimeout)
        #expect(side.engine.disconnectionBegan(error, &side.context) == [], "the link has ended")
        var asking = Side(.central)
        asking.enter(.awaitingBondDecision(asking.completedPairing()))
        _ = asking.decide(.replacesOther(Side.strength))
        #expect(asking.linkEnded(.connectionTimeout).contains(.attemptFailed(asking.peer, countsForAll: false)))
    }

    @Test("A Security Request for more than the bond's key has, during an encryption, is refused")
    func securityRequestBeyondTheKeyOfTheBondIsRefused() {
        var side = Side(.central, bond: Side.bond(.central)) {
            $0.pairsOnRequest = false
            $0.ioCapability = .keyboardDisplay
        }
        _ = side.require()
        #expect(side.receive([0x0B, 0x05]) == [])
        let effects = side.encryptionChanged(isOn: true)
        #expect(effects.pdus == [[0x05, 0x05]])
        #expect(effects.contains(Side.success()))
    }

    @Test("On a channel that is closed, a call fails at once and counts as no attempt")
    func callOnAClosedChannelFailsAtOnce() {
        var side = Side(.central)
        _ = side.engine.securityManager.linkEnded()
        #expect(side.require() == [Side.failure(.timedOut)])
    }
}
