import BLECryptography
import BLEHCI
import BLESMP
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("The pairing of a link")
struct LinkSecurityPairingTests {
    private typealias Side = SecuritySide

    /// LE Secure Connections, just works, with bonding.
    private static let pairingRequest: [UInt8] = [0x01, 0x03, 0x00, 0x09, 0x10, 0x01, 0x01]
    private static let stranger = DeviceAddress(0xC000_0000_0077, isRandom: true)

    /// A peripheral whose central has begun to pair, and the question about it.
    private func asked(_ side: Side = Side(.peripheral)) throws -> (Side, UInt64) {
        var side = side
        let question = side.receive(Self.pairingRequest).question
        return (side, try #require(question))
    }

    private func work(of side: Side) throws -> PairingWork {
        guard case .pairing(let work) = side.state else {
            Issue.record("\(side.state)")
            throw CancellationError()
        }
        return work
    }

    // MARK: Pairing Requests

    @Test(
        "The Security Manager of a pairing knows the identity of a peer whose private address the host has resolved",
        arguments: [true, false]
    )
    func securityManagerKnowsTheIdentityOfThePeer(isRequestedByThePeer: Bool) {
        var side = Side(.peripheral, privateRole: .central)
        side.context.peer = Side.centralAddress
        _ = isRequestedByThePeer ? side.receive(Self.pairingRequest) : side.require()
        #expect(side.engine.securityManager.peerAddress == Side.privateAddress)
        #expect(side.engine.securityManager.peerIdentity == Side.centralAddress)
    }

    @Test("A peer that begins a pairing is answered once the app has consented")
    func peerIsAnsweredOnceTheAppHasConsented() throws {
        var (side, question) = try asked()
        #expect(try work(of: side).initiative == .peer)
        let effects = side.engine.answered(question, .accept, &side.context)
        #expect(effects.pdus.map(\.first) == [0x02])
        #expect(side.engine.answered(question, .accept, &side.context) == [], "it is answered")
    }

    @Test("A peer that has to wait is answered so, and nothing changes", arguments: [true, false])
    func waitingPeerIsAnsweredSoAndNothingChanges(isForAll: Bool) {
        var side = Side(.peripheral)
        if isForAll { side.context.waitOfAll = .seconds(1) } else { side.context.waitOfPeer = .seconds(1) }
        #expect(side.receive(Self.pairingRequest) == [.send([0x05, 0x09])])
        #expect(side.state == .settled(.unencrypted))
    }

    @Test("A peer that must not pair is refused")
    func peerThatMustNotPairIsRefused() {
        var closed = Side(.peripheral) { $0.pairable = .duringWindow }
        #expect(
            closed.receive(Self.pairingRequest) == [
                closed.pairingFailed(.refused("the pairing window is closed")), .send([0x05, 0x05]),
            ]
        )
        closed.context.isPairingWindowOpen = true
        #expect(closed.receive(Self.pairingRequest).question != nil)
        var bonded = Side(.peripheral, bond: Side.bond(.peripheral)) { $0.bondReplacement = .whenIdentityVerified }
        let refusal = SecurityError.refused("it would replace the bond of a peer whose identity is not verified")
        #expect(bonded.receive(Self.pairingRequest) == [bonded.pairingFailed(refusal), .send([0x05, 0x05])])
        bonded.enter(.settled(Side.encrypted(.bond)))
        #expect(bonded.receive(Self.pairingRequest).question != nil)
    }

    @Test("A central that pairs instead of encrypting is refused, and the calls that wait for encryption end")
    func centralThatPairsInsteadOfEncryptingIsRefused() {
        var side = Side(.peripheral, bond: Side.bond(.peripheral)) { $0.bondReplacement = .never }
        _ = side.require()
        let refusal = SecurityError.refused("it would replace a bond, and the policy lets no pairing do that")
        #expect(
            side.receive(Self.pairingRequest) == [
                side.pairingFailed(refusal), Side.failure(refusal), .send([0x05, 0x05]), Side.bonded(.unverified),
            ]
        )
        #expect(side.engine.securityManager.deadline == nil)
    }

    @Test("A pairing that answers a Security Request is the app's, and needs no window")
    func pairingThatIsAskedFor() throws {
        var side = Side(.peripheral) { $0.pairable = .never }
        _ = side.require()
        (side, _) = try asked(side)
        let work = try work(of: side)
        #expect(work.initiative == .app && work.waiting == [Side.waiting(hasPairingBegun: true)])
    }

    @Test("A pairing on demand is the central's, because a central can cause the demand: it needs a window")
    func pairingOnDemandNeedsAWindow() {
        for pairable in [SecurityPolicy.Pairable.never, .duringWindow] {
            var closed = Side(.peripheral) { $0.pairable = pairable }
            #expect(closed.require(for: .demand).pdus.isEmpty, "no Security Request is sent")
            #expect(closed.state == .settled(.unencrypted))
        }
        var side = Side(.peripheral) { $0.pairable = .duringWindow }
        side.context.isPairingWindowOpen = true
        #expect(side.require(for: .demand).pdus == [[0x0B, 0x09]])
        side.context.isPairingWindowOpen = false
        let refusal = SecurityError.refused("the pairing window is closed")
        #expect(
            side.receive(Self.pairingRequest) == [
                side.pairingFailed(refusal), Side.failure(refusal), .send([0x05, 0x05]),
            ]
        )
        #expect(side.state == .settled(.unencrypted))
    }

    @Test("A pairing on demand that no app could consent to is not requested from the central")
    func pairingOnDemandNeedsConsent() {
        var side = Side(.peripheral, hasPairingHandler: false)
        let reason = "the app has not asked for it, and there is no pairing delegate to consent"
        #expect(side.require(for: .demand) == [Side.failure(.refused(reason))])
        side = Side(.peripheral, hasPairingHandler: false) { $0.justWorks = .always }
        #expect(side.require(for: .demand).pdus == [[0x0B, 0x09]])
    }

    /// Begins a pairing for a call of the app, with a demand that waits as well, and cancels the call.
    private func cancelCallDuringPairing(_ side: inout Side) throws -> [SecurityEffect] {
        _ = side.require(pairsAgain: true)
        _ = side.require(.clientLane, for: .demand)
        (side, _) = try asked(side)
        let work = try work(of: side)
        #expect(work.initiative == .app && work.onlyIdentity == nil)
        return side.cancel()
    }

    @Test("A pairing whose call is cancelled ends, if the central could not begin it for the demand that waits")
    func pairingOfACancelledCallNeedsAWindow() throws {
        let closed = "the pairing window is closed"
        let unattended = "the app has not asked for it, and there is no pairing delegate to consent"
        for (pairable, hasPairingHandler, reason) in [
            (SecurityPolicy.Pairable.duringWindow, true, closed), (.always, false, unattended),
        ] {
            var side = Side(.peripheral, hasPairingHandler: hasPairingHandler) { $0.pairable = pairable }
            let effects = try cancelCallDuringPairing(&side)
            let refusal = SecurityError.refused(reason)
            #expect(effects.pdus == [[0x05, 0x08]])
            #expect(effects.contains(side.pairingFailed(refusal)))
            #expect(effects.contains(Side.failure(refusal, .clientLane)))
            #expect(side.state == .settled(.unencrypted))
            #expect(!side.engine.securityManager.isPairing)
        }
    }

    @Test("A pairing whose call is cancelled continues for a demand, with the limits of a pairing on demand")
    func pairingOfACancelledCallContinuesForADemand() throws {
        var open = Side(.peripheral) { $0.pairable = .duringWindow }
        open.context.isPairingWindowOpen = true
        var verified = Side(.peripheral, bond: Side.bond(.peripheral)) { $0.pairable = .never }
        verified.enter(.settled(Side.encrypted(.bond)))
        for (side, identity) in [(open, nil), (verified, verified.peer)] as [(Side, DeviceAddress?)] {
            var side = side
            let effects = try cancelCallDuringPairing(&side)
            #expect(effects == [.finish(Side.call, .failure(.cancelled))])
            let work = try work(of: side)
            #expect(work.initiative == .demand && work.onlyIdentity == identity)
        }
    }

    @Test(
        "As the peripheral, this host has begun the pairing only if the app has asked for security",
        arguments: [(SecurityInitiative.app, true), (.demand, false)]
    )
    func pairingOnDemandIsBegunByTheCentral(initiative: SecurityInitiative, isStartedHere: Bool) throws {
        var side = Side(.peripheral)
        _ = side.require(for: initiative)
        (side, _) = try asked(side)
        #expect(side.state.question?.inquiry.isStartedHere == isStartedHere)
    }

    @Test("A Pairing Request while the app is asked about a bond is refused")
    func pairingRequestDuringABondDecisionIsRefused() {
        var side = Side(.peripheral, bond: Side.bond(.peripheral))
        side.enter(.awaitingBondDecision(side.completedPairing()))
        _ = side.decide(.replacesOther(Side.strength))
        #expect(side.receive(Self.pairingRequest) == [.send([0x05, 0x10])])
    }

    @Test("A peer that may pair only because its identity is verified must keep that identity")
    func peerThatMayPairOnlyByItsBondMustKeepItsIdentity() throws {
        let cases: [(SecurityPolicy.Pairable, Bool, Bool)] = [
            (.always, false, false), (.duringWindow, true, false), (.duringWindow, false, true), (.never, false, true),
        ]
        for (pairable, isOpen, isBound) in cases {
            var side = Side(.peripheral, bond: Side.bond(.peripheral)) { $0.pairable = pairable }
            side.enter(.settled(Side.encrypted(.bond)))
            side.context.isPairingWindowOpen = isOpen
            (side, _) = try asked(side)
            #expect(try work(of: side).onlyIdentity == (isBound ? side.peer : nil))
        }
    }

    // MARK: Questions

    @Test("The policy refuses what the app need not be asked about")
    func policyRefusesWithoutAskingTheApp() {
        let strong = KeyStrength(isAuthenticated: true, isSecureConnections: true, keySize: 16)
        var justWorks = Side(.peripheral) { $0.justWorks = .never }
        var full = Side(.peripheral)
        full.context.reachedBondLimit = 4
        var weaker = Side(.peripheral, bond: Side.bond(.peripheral, key: LongTermKey(value: 1, strength: strong)))
        let justWorksEffects = justWorks.receive(Self.pairingRequest)
        let fullEffects = full.receive(Self.pairingRequest)
        let weakerEffects = weaker.receive(Self.pairingRequest)
        #expect(justWorksEffects.contains(justWorks.pairingFailed(.refused("the policy refuses just works"))))
        #expect(fullEffects.contains(full.pairingFailed(.tooManyBonds(4))))
        #expect(weakerEffects.contains(weaker.pairingFailed(.weakerThanBond(Side.strength))))
        for effects in [justWorksEffects, fullEffects, weakerEffects] {
            #expect(effects.question == nil && effects.pdus.map(\.first) == [0x05])
        }
    }

    @Test("A refusal of the app ends the pairing and counts as an attempt")
    func refusalOfTheAppEndsThePairingAndCountsAsAnAttempt() throws {
        var (side, question) = try asked()
        let effects = side.engine.answered(question, .refuse, &side.context)
        #expect(
            effects.dropFirst() == [
                .attemptFailed(side.peer, countsForAll: false), side.pairingFailed(.refused("it was not consented to")),
            ]
        )
        #expect(effects.pdus.map(\.first) == [0x05])
        #expect(side.state == .settled(.unencrypted))
    }

    @Test("Without an app, what the peer has begun is refused, unless the policy accepts it")
    func pairingOfAPeerIsRefusedWithoutAnApp() throws {
        var (side, question) = try asked(Side(.peripheral, hasPairingHandler: false))
        let refusal = SecurityError.refused("the peer began it, and there is no pairing delegate to consent")
        #expect(side.engine.unanswered(question, &side.context).contains(side.pairingFailed(refusal)))
        (side, question) = try asked(Side(.peripheral, hasPairingHandler: false) { $0.justWorks = .always })
        #expect(side.engine.unanswered(question, &side.context).pdus.map(\.first) == [0x02])
    }

    @Test("The end of a pairing withdraws its question")
    func endOfAPairingWithdrawsItsQuestion() throws {
        var (side, question) = try asked()
        let effects = side.receive([0x05, 0x08])
        #expect(effects.first == .withdraw(question))
        #expect(side.engine.answered(question, .accept, &side.context) == [])
    }

    @Test("Out-of-band data are used once")
    func outOfBandDataIsUsedOnce() throws {
        var (side, question) = try asked()
        var work = try work(of: side)
        work.usesOutOfBandData = true
        side.enter(.pairing(work))
        var spent = side
        let effects = side.engine.answered(question, .accept, &side.context)
        #expect(effects.first == .outOfBandDataUsed(side.engine.securityManager.parameters))
        work.isOutOfBandDataSpent = true
        spent.enter(.pairing(work))
        let refusal = SecurityError.refused("another pairing has used the out of band data")
        let refused = spent.engine.answered(question, .accept, &spent.context)
        #expect(refused.contains(spent.pairingFailed(refusal)))
    }

    @Test("Out-of-band data that another pairing has used are removed, and spent for a pairing in progress")
    func outOfBandDataOfAnotherPairingIsRemovedOrSpent() throws {
        let data = OutOfBandData.temporaryKey(5)
        var used = PairingParameters()
        used.peerOutOfBandData = data
        var idle = Side(.peripheral) { $0.peerOutOfBandData = data }
        idle.engine.outOfBandDataWasUsed(by: used, isOwn: false)
        #expect(idle.engine.policy.peerOutOfBandData == nil)
        var (side, _) = try asked()
        side.engine.policy.peerOutOfBandData = data
        side.engine.securityManager.parameters.peerOutOfBandData = data
        side.engine.outOfBandDataWasUsed(by: used, isOwn: false)
        #expect(try work(of: side).isOutOfBandDataSpent)
        #expect(side.engine.policy.peerOutOfBandData == nil)
    }

    // MARK: Failures

    @Test("A pairing that the peer ends fails its calls")
    func pairingEndedByThePeerFailsItsCalls() {
        var side = Side(.central)
        _ = side.require()
        let error = SecurityError.pairing(.endedByPeer(.unspecifiedReason))
        #expect(
            side.receive([0x05, 0x08]) == [
                .attemptFailed(side.peer, countsForAll: false), side.pairingFailed(error), Side.failure(error),
            ]
        )
        #expect(side.state == .settled(.unencrypted))
    }

    @Test("If a pairing fails during the encryption with its key, the engine waits for the end of the encryption")
    func pairingFailsWhileEncrypting() throws {
        var side = Side(.central)
        _ = side.require()
        var work = try work(of: side)
        work.encryption = .inProgress(Side.key, deadline: Side.start + .seconds(40))
        side.enter(.pairing(work))
        _ = side.receive([0x05, 0x08])
        #expect(side.state == Side.encrypting(.incompletePairing))
        #expect(side.advance(.seconds(40)) == [.unreportedEncryption])
        #expect(side.state == .settled(.unencrypted), "the key was no bond's: calls can pair")
    }

    @Test(
        "A secret that the peer could guess counts for all peers, unless the app has chosen the peer",
        arguments: [
            SecurityInitiative.app, .demand, .peer,
        ]
    )
    func guessableSecretCountsForAllPeersUnlessTheAppChose(initiative: SecurityInitiative) {
        var side = Side(.central)
        _ = side.require(for: initiative)
        side.engine.perform([.ask(.showPasskey(1))], &side.context)
        let effects = side.receive([0x05, 0x08])
        #expect(effects.contains(.attemptFailed(side.peer, countsForAll: initiative != .app)))
    }

    @Test("A peer that has encrypted the link and withholds its identity is disconnected, if there is an accept list")
    func unadmittedPeerIsDisconnected() throws {
        var side = Side(.central)
        _ = side.require()
        side.engine.policy.pairingAcceptList = [Self.stranger]
        var work = try work(of: side)
        work.current = Side.encrypted(.incompletePairing)
        side.enter(.pairing(work))
        #expect(side.receive([0x05, 0x08]).contains(.disconnect(.authenticationFailure)))
        guard case .ending = side.state else {
            Issue.record("\(side.state)")
            return
        }
    }

    @Test("A Security Request that the central refuses fails its calls and is no attempt")
    func refusedSecurityRequestFailsItsCallsAndIsNoAttempt() {
        var side = Side(.peripheral)
        _ = side.require()
        let error = SecurityError.pairing(.endedByPeer(.pairingNotSupported))
        #expect(side.receive([0x05, 0x05]) == [Side.failure(error)])
        #expect(side.state == .settled(.unencrypted))
    }

    @Test("A Security Request that is not answered fails its calls after 30 s, and closes the Security Manager")
    func unansweredSecurityRequestFailsItsCallsAfter30Seconds() {
        var side = Side(.peripheral)
        _ = side.require()
        #expect(side.advance(.seconds(30)) == [Side.failure(.timedOut)])
        #expect(side.engine.securityManager.isClosed)
        #expect(side.require() == [Side.failure(.timedOut)])
    }
}
