import BLECryptography
import BLEHCI
import BLESMP
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("The outcome of a pairing")
struct LinkSecurityOutcomeTests {
    private typealias Side = SecuritySide

    private static let stranger = DeviceAddress(0xC000_0000_0077, isRandom: true)
    /// The refusal of a replacement that no app can consent to.
    private static let nobody = SecurityError.refused(
        "it would replace a bond, and there is no pairing delegate to consent"
    )

    /// A side whose pairing has just succeeded.
    private func complete(_ identity: DeviceAddress, on side: inout Side) -> [SecurityEffect] {
        var outcome = Side.outcome(side.engine.role)
        outcome.bond.identity = identity
        side.engine.perform([.completed(outcome)], &side.context)
        return side.engine.finishInput(&side.context)
    }

    @Test("The bond database decides about the keys of a pairing")
    func databaseDecidesAboutTheKeysOfAPairing() {
        var side = Side(.central)
        _ = side.require()
        let outcome = Side.outcome(.central)
        #expect(complete(side.peer, on: &side) == [.decideBond(outcome, isForApp: true, isConfirmed: false)])
    }

    @Test("A peer that gives an identity that it must not have is disconnected")
    func peerWithAForbiddenIdentityIsDisconnected() {
        var unlisted = Side(.central) { $0.pairingAcceptList = [Side.peer(of: .central)] }
        _ = unlisted.require()
        let refusal = SecurityError.refused("\(Self.stranger) is not on the pairing accept list")
        #expect(
            complete(Self.stranger, on: &unlisted) == [
                unlisted.pairingFailed(refusal), .attemptFailed(unlisted.peer, countsForAll: false),
                Side.failure(refusal), .disconnect(.authenticationFailure), Side.ending(.security(refusal)),
            ]
        )
        var bound = Side(.peripheral, bond: Side.bond(.peripheral)) { $0.pairable = .never }
        bound.enter(.settled(Side.encrypted(.bond)))
        _ = bound.receive([0x01, 0x03, 0x00, 0x09, 0x10, 0x01, 0x01])
        let claim = SecurityError.refused("the peer is bonded as \(bound.peer) and claims to be \(Self.stranger)")
        #expect(complete(Self.stranger, on: &bound).contains(bound.pairingFailed(claim)))
    }

    @Test("A passkey that is refused after the peer has proved it ends the link, and no bond is stored")
    func passkeyRefusedAfterItsProofEndsTheLink() throws {
        var side = Side(.central)
        _ = side.require()
        // The Security Manager awaits no answer now. The same holds once the encryption with the pairing's key begins.
        side.engine.perform([.ask(.showPasskey(1))], &side.context)
        let question = try #require(side.engine.finishInput(&side.context).question)
        let refusal = SecurityError.refused("it was not consented to")
        #expect(
            side.engine.answered(question, .refuse, &side.context) == [
                .send([0x05, 0x01]), .attemptFailed(side.peer, countsForAll: false), side.pairingFailed(refusal),
                Side.failure(refusal), .disconnect(.authenticationFailure), Side.ending(.security(refusal)),
            ]
        )
        #expect(!side.engine.securityManager.isPairing)
        #expect(complete(side.peer, on: &side) == [])
    }

    @Test(
        "A bond verifies the peer and serves the calls; keys without a bond only serve them",
        arguments: [true, false]
    )
    func onlyABondVerifiesThePeer(isBonded: Bool) {
        var side = Side(.central)
        // Without a bond, the identity that the peer claims is not reported.
        let pairing = side.completedPairing(
            Side.waiting(hasPairingBegun: true),
            isBonded: isBonded,
            claiming: isBonded ? nil : DeviceAddress(0xC000_0000_0077, isRandom: true)
        )
        side.enter(.awaitingBondDecision(pairing))
        if isBonded {
            side.context.bond = pairing.outcome.bond
            side.context.bondStrength = Side.strength
        }
        let effects = side.decide(isBonded ? .bonded : .keptForLink)
        let expected: [SecurityEffect] =
            [.attemptSucceeded(side.peer), side.paired(isBonded: isBonded)] + (isBonded ? [.identityVerified] : [])
            + [Side.success(), Side.bonded(.open)]
        #expect(effects == expected)
        #expect(side.state == .settled(Side.encrypted(isBonded ? .bond : .transient)))
        #expect((side.engine.transientKeys == nil) == isBonded)
    }

    @Test(
        "A peer that pairs without a bond is the bonded device only if it was verified until then",
        arguments: [true, false]
    )
    func pairingWithoutABondKeepsTheVerification(wasVerified: Bool) {
        var side = Side(.central, bond: Side.bond(.central))
        var pairing = side.completedPairing(isBonded: false)
        pairing.current.key?.followsVerifiedKey = wasVerified
        side.enter(.awaitingBondDecision(pairing))
        _ = side.decide(.keptForLink)
        #expect(side.engine.isVerificationValid == wasVerified)
        #expect(!side.engine.isIdentityVerified)
        _ = side.encryptionChanged(isOn: false)
        #expect(!side.engine.isVerificationValid)
    }

    @Test("The app decides whether the bond of another peer is replaced", arguments: [true, false])
    func appDecidesWhetherABondIsReplaced(isAccepted: Bool) throws {
        var side = Side(.central)
        let pairing = side.completedPairing(Side.waiting(hasPairingBegun: true))
        side.enter(.awaitingBondDecision(pairing))
        let question = try #require(side.decide(.replacesOther(Side.strength)).question)
        #expect(side.engine.deadline == Side.start + .seconds(30))
        let effects = side.engine.answered(question, isAccepted ? .accept : .refuse, &side.context)
        if isAccepted {
            #expect(effects == [.decideBond(pairing.outcome, isForApp: true, isConfirmed: true)])
            #expect(side.state == .awaitingBondDecision(pairing))
        } else {
            let refusal = SecurityError.refused("it was not consented to")
            #expect(
                effects == [
                    side.pairingFailed(refusal), .attemptFailed(side.peer, countsForAll: false),
                    Side.failure(refusal), .disconnect(.authenticationFailure), Side.ending(.security(refusal)),
                ]
            )
        }
    }

    @Test("An accept list that now excludes the peer is stronger than the app's answer")
    func acceptListIsStrongerThanTheAnswerOfTheApp() throws {
        var side = Side(.central)
        side.enter(.awaitingBondDecision(side.completedPairing()))
        let question = try #require(side.decide(.replacesOther(Side.strength)).question)
        var policy = side.engine.policy
        policy.pairingAcceptList = [Self.stranger]
        _ = side.engine.setPolicy(policy, &side.context)
        let effects = side.engine.answered(question, .accept, &side.context)
        let refusal = SecurityError.refused("\(side.peer) is not on the pairing accept list")
        #expect(effects.first == side.pairingFailed(refusal))
        #expect(effects.contains(.disconnect(.authenticationFailure)))
    }

    @Test("A question about a bond that is not answered within 30 s ends the link")
    func unansweredQuestionAboutABondEndsTheLink() throws {
        var side = Side(.central)
        side.enter(.awaitingBondDecision(side.completedPairing(Side.waiting())))
        let question = try #require(side.decide(.replacesOther(Side.strength)).question)
        #expect(side.advance(.seconds(29)) == [])
        let effects = side.advance(.seconds(1))
        #expect(effects.first == .withdraw(question))
        #expect(effects.contains(.disconnect(.authenticationFailure)))
        #expect(effects.count { $0 == .withdraw(question) } == 1)
        #expect(side.engine.strength == nil, "the peer is not served as on an encrypted link")
    }

    @Test("The end of the link, and the cancellation of the only call, end the question about a bond")
    func endOfTheLinkOrTheCallEndsTheQuestionAboutABond() throws {
        var side = Side(.central)
        side.enter(.awaitingBondDecision(side.completedPairing(Side.waiting())))
        var question = try #require(side.decide(.replacesOther(Side.strength)).question)
        var effects = side.linkEnded(.remoteUserTerminatedConnection)
        #expect(effects.contains(.withdraw(question)))
        #expect(effects.contains(side.pairingFailed(.pairing(.linkEnded))))

        side = Side(.central)
        side.enter(.awaitingBondDecision(side.completedPairing(Side.waiting())))
        question = try #require(side.decide(.replacesOther(Side.strength)).question)
        effects = side.cancel()
        #expect(effects.first == .finish(Side.call, .failure(.cancelled)))
        #expect(effects.contains(.withdraw(question)) && effects.contains(.disconnect(.authenticationFailure)))
        effects = side.engine.answered(question, .accept, &side.context)
        #expect(!effects.contains { if case .decideBond = $0 { true } else { false } })
    }

    @Test("The policy can forbid the question about a bond, and nobody answers it without an app")
    func policyCanForbidTheQuestionAboutABond() throws {
        var side = Side(.central) { $0.bondReplacement = .never }
        side.enter(.awaitingBondDecision(side.completedPairing()))
        let refusal = SecurityError.refused("it would replace the bond of \(side.peer)")
        #expect(side.decide(.replacesOther(Side.strength)).first == side.pairingFailed(refusal))
        side = Side(.central)
        side.enter(.awaitingBondDecision(side.completedPairing()))
        let question = try #require(side.decide(.replacesOther(Side.strength)).question)
        #expect(side.engine.unanswered(question, &side.context).first == side.pairingFailed(Self.nobody))
    }

    /// A device that was reset has another key for its private addresses, so it is not recognized.
    @Test(
        "Without a delegate, a bond is replaced if the app asks for a new pairing at a private address",
        arguments: [(true, true, true), (true, false, false), (false, true, false)]
    )
    func newPairingAtAPrivateAddressReplacesABond(isPrivate: Bool, pairsAgain: Bool, isReplaced: Bool) throws {
        for role in [SecurityChannel<SwiftCryptography>.Role.central, .peripheral] {
            let other: SecurityChannel<SwiftCryptography>.Role = role == .central ? .peripheral : .central
            var side = Side(role, privateRole: isPrivate ? other : nil)
            let call = SecurityRequirement(Side.call, for: .app, pairsAgain: pairsAgain).afterPairingBegan
            let pairing = side.completedPairing(call, claiming: Self.stranger)
            side.enter(.awaitingBondDecision(pairing))
            let question = try #require(side.decide(.replacesOther(Side.strength)).question)
            let effects = side.engine.unanswered(question, &side.context)
            // The app has not chosen a central, which connects by itself.
            if isReplaced, role == .central {
                #expect(effects == [.decideBond(pairing.outcome, isForApp: true, isConfirmed: true)])
            } else {
                #expect(effects.first == side.pairingFailed(Self.nobody))
                #expect(effects.contains(.disconnect(.authenticationFailure)))
            }
        }
    }

    @Test("The consent to replace a bond ends with the call that gave it")
    func consentToReplaceABondEndsWithItsCall() throws {
        var side = Side(.central, privateRole: .peripheral)
        let call = SecurityRequirement(Side.call, for: .app, pairsAgain: true).afterPairingBegan
        let pairing = side.completedPairing(call, Side.waiting(Side.otherCall), claiming: Self.stranger)
        side.enter(.awaitingBondDecision(pairing))
        let question = try #require(side.decide(.replacesOther(Side.strength)).question)
        #expect(side.cancel() == [.finish(Side.call, .failure(.cancelled))])
        #expect(side.engine.unanswered(question, &side.context).first == side.pairingFailed(Self.nobody))
    }

    @Test(
        "A call does not consent to a key that it does not accept, nor to a pairing that completed before the call",
        arguments: [true, false]
    )
    func callConsentsOnlyToItsOwnPairing(isOwnPairing: Bool) throws {
        var side = Side(.central, privateRole: .peripheral)
        var call = SecurityRequirement(Side.call, for: .app, pairsAgain: true)
        if isOwnPairing {
            let required = RequiredSecurity(isAuthenticated: true)
            call = SecurityRequirement(Side.call, required, for: .app, pairsAgain: true).afterPairingBegan
        }
        let pairing = side.completedPairing(call, Side.waiting(Side.otherCall), claiming: Self.stranger)
        side.enter(.awaitingBondDecision(pairing))
        let question = try #require(side.decide(.replacesOther(Side.strength)).question)
        #expect(side.engine.unanswered(question, &side.context).first == side.pairingFailed(Self.nobody))
    }

    @Test("A bond that is stored after the encryption has ended verifies nothing")
    func bondStoredAfterTheEndOfEncryptionVerifiesNothing() throws {
        var side = Side(.central)
        side.enter(.awaitingBondDecision(side.completedPairing()))
        let question = try #require(side.decide(.replacesOther(Side.strength)).question)
        _ = side.encryptionChanged(isOn: false)
        _ = side.engine.answered(question, .accept, &side.context)
        #expect(!side.decide(.bonded).contains(.identityVerified))
        #expect(!side.engine.isIdentityVerified)
    }

    @Test("A call for a new pairing succeeds if the new key has to encrypt the link again")
    func callForANewPairingSucceedsWithTheNewKey() throws {
        var side = Side(.central)
        let call = SecurityRequirement(Side.call, for: .app, pairsAgain: true).afterPairingBegan
        side.enter(.awaitingBondDecision(side.completedPairing(call)))
        let question = try #require(side.decide(.replacesOther(Side.strength)).question)
        _ = side.encryptionChanged(isOn: false)
        _ = side.engine.answered(question, .accept, &side.context)
        side.setBond(Side.bond(.central))
        #expect(side.decide(.bonded).contains(.enableEncryption(Side.key)))
        #expect(side.encryptionChanged(isOn: true).contains(Side.success()))
    }

    @Test("A bond that the database refuses ends the link")
    func bondThatTheDatabaseRefusesEndsTheLink() {
        var side = Side(.central)
        side.enter(.awaitingBondDecision(side.completedPairing()))
        #expect(
            side.decide(.refused(.tooManyBonds(3))) == [
                side.pairingFailed(.tooManyBonds(3)), .attemptFailed(side.peer, countsForAll: false),
                .disconnect(.authenticationFailure), Side.ending(.security(.tooManyBonds(3))),
            ]
        )
    }
}
