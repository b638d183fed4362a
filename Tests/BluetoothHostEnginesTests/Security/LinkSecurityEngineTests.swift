import BLECryptography
import BLEHCI
import BLESMP
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("The security of a link")
struct LinkSecurityEngineTests {
    private typealias Side = SecuritySide
    private typealias Role = SecurityChannel<SwiftCryptography>.Role

    private static let roles: [Role] = [.central, .peripheral]
    private static let authenticated = RequiredSecurity(isAuthenticated: true)

    // MARK: Settled

    @Test("A link that is secure enough finishes a call at once")
    func secureEnoughLinkFinishesACallAtOnce() {
        var side = Side(.central, bond: Side.bond(.central))
        side.enter(.settled(Side.encrypted(.bond)))
        #expect(side.require() == [Side.success()])
        #expect(side.state == .settled(Side.encrypted(.bond)))
    }

    @Test("A key that the policy does not accept any more makes no call succeed: the devices pair")
    func unacceptedKeyMakesNoCallSucceed() {
        for (role, pdu) in [(SecurityPair.Role.central, 0x01), (.peripheral, 0x0B)] as [(SecurityPair.Role, UInt8)] {
            var side = Side(role, bond: Side.bond(role))
            side.enter(.settled(Side.encrypted(.bond)))
            var policy = SecurityPolicy()
            policy.requiresAuthentication = true
            policy.ioCapability = .displayYesNo
            _ = side.engine.setPolicy(policy, &side.context)
            let effects = side.require()
            #expect(!effects.contains(Side.success()))
            #expect(effects.pdus.first?.first == pdu, "\(effects)")
        }
    }

    @Test("As the central, the bond's key encrypts the link")
    func centralUsesBond() {
        var side = Side(.central, bond: Side.bond(.central))
        #expect(side.require() == [.enableEncryption(Side.key), Side.bonded(.verifying)])
        #expect(side.state == Side.encrypting(.bond, Side.waiting()))
        #expect(side.engine.deadline == Side.start + .seconds(40))
    }

    @Test("As the peripheral, the central is asked for security")
    func peripheralAsksCentral() {
        var side = Side(.peripheral, bond: Side.bond(.peripheral))
        #expect(side.require() == [.send([0x0B, 0x09]), Side.bonded(.verifying)])
        let work = RequestWork(
            current: .unencrypted,
            initiative: .app,
            replacesBond: false,
            waiting: [Side.waiting()]
        )
        #expect(side.state == .requesting(work))
    }

    @Test("A key that has failed on the link is not tried again", arguments: roles)
    func keyFailureEndsCalls(role: SecurityChannel<SwiftCryptography>.Role) {
        var side = Side(role, bond: Side.bond(role))
        side.enter(.settled(Side.unencrypted(.keyMissing)))
        #expect(side.require() == [Side.failure(.keyMissing)])
        #expect(side.state == .settled(Side.unencrypted(.keyMissing)))
    }

    @Test("A peripheral whose request for security cannot be met is answered")
    func securityRequestIsRefused() {
        var side = Side(.central, bond: Side.bond(.central))
        side.enter(.settled(Side.unencrypted(.keyMissing)))
        #expect(side.receive([0x0B, 0x01]) == [.send([0x05, 0x05]), Side.failure(.keyMissing, .peer)])
    }

    @Test("Attempts that were too many, a full table and the policy forbid a pairing")
    func attemptsTableAndPolicyCanForbidAPairing() {
        var side = Side(.central)
        side.context.waitOfPeer = .seconds(1)
        #expect(side.require() == [Side.failure(.repeatedAttempts(.seconds(1)))])
        side.context.waitOfPeer = nil
        side.context.waitOfAll = .seconds(1)
        #expect(
            side.receive([0x0B, 0x01]) == [
                .send([0x05, 0x09]), Side.failure(.repeatedAttempts(.seconds(1)), .peer),
            ]
        )
        side.context.waitOfAll = nil
        side.context.reachedBondLimit = 4
        #expect(side.require() == [Side.failure(.tooManyBonds(4))])
        var demanding = Side(.central) { $0.securesOnDemand = false }
        let refusal = SecurityError.refused("the policy does not pair on demand")
        #expect(demanding.require(.verification, for: .demand) == [Side.failure(refusal, .verification)])
    }

    @Test("Without a bond, a central pairs and a peripheral asks for security", arguments: roles)
    func unbondedCentralPairsAndPeripheralAsksForSecurity(role: SecurityChannel<SwiftCryptography>.Role) {
        var side = Side(role)
        let effects = side.require()
        switch role {
        case .central:
            #expect(effects.first == .report(.pairingStarted(Side.link, peer: side.peer)))
            #expect(effects.pdus.map(\.first) == [0x01])
            #expect(side.engine.securityManager.isPairing)
            guard case .pairing(let work) = side.state else {
                Issue.record("\(side.state)")
                return
            }
            #expect(
                work.initiative == .app && work.replacesBond && work.waiting == [Side.waiting(hasPairingBegun: true)]
            )
        case .peripheral:
            #expect(effects.pdus == [[0x0B, 0x09]])
            #expect(side.state.waiting == [Side.waiting(hasPairingBegun: true)])
        }
    }

    @Test("As the central, a bond without a key for this role fails on demand, and the app can pair")
    func bondWithoutAKeyForThisRoleFailsOnDemand() {
        var bond = Bond(identity: Side.peer(of: .central))
        bond.peripheralKey = Side.key
        var side = Side(.central, bond: bond)
        #expect(side.require(.clientLane, for: .demand) == [Side.failure(.keyMissing, .clientLane)])
        #expect(side.require().pdus.map(\.first) == [0x01])
    }

    // MARK: Busy

    @Test("A call waits for what is in progress", arguments: roles)
    func busyLinkLetsCallsWait(role: SecurityChannel<SwiftCryptography>.Role) {
        var side = Side(role, bond: Side.bond(role))
        _ = side.require()
        #expect(side.require(Side.otherCall) == [])
        #expect(side.state.waiting.map(\.caller) == [Side.call, Side.otherCall])
    }

    @Test("A peripheral that asks for security again and again waits once")
    func securityRequestsWaitOnce() {
        var side = Side(.central, bond: Side.bond(.central))
        _ = side.require()
        for _ in 0..<3 { #expect(side.receive([0x0B, 0x01]) == []) }
        #expect(side.state.waiting.map(\.caller) == [Side.call, .peer])
    }

    // MARK: Cancelling

    @Test("A cancelled call ends what was begun for it alone", arguments: roles)
    func cancelledCallEndsWhatWasBegunForItAlone(role: SecurityChannel<SwiftCryptography>.Role) {
        var side = Side(role)
        _ = side.require()
        _ = side.require(Side.otherCall)
        #expect(side.cancel() == [.finish(Side.call, .failure(.cancelled))])
        let effects = side.cancel(Side.otherCall)
        #expect(effects.first == .finish(Side.otherCall, .failure(.cancelled)))
        #expect(effects.pdus == [[0x05, 0x08]])
        #expect(side.state == .settled(.unencrypted))
        #expect(!side.engine.securityManager.isPairing && side.engine.deadline == nil)
    }

    @Test("A pairing that the peer has begun continues without calls")
    func peersPairingIsNotCancelled() {
        var side = Side(.peripheral)
        _ = side.receive([0x01, 0x03, 0x00, 0x09, 0x10, 0x01, 0x01])
        _ = side.require()
        #expect(side.cancel() == [.finish(Side.call, .failure(.cancelled))])
        #expect(side.engine.securityManager.isPairing)
    }

    @Test("An encryption continues without calls")
    func encryptionIsNotCancelled() {
        var side = Side(.central, bond: Side.bond(.central))
        _ = side.require()
        #expect(side.cancel() == [.finish(Side.call, .failure(.cancelled))])
        #expect(side.state == Side.encrypting())
    }

    // MARK: Context

    @Test("The failure of a key ends with its bond")
    func removedBondDropsFailure() {
        var side = Side(.central, bond: Side.bond(.central))
        side.enter(.settled(Side.unencrypted(.keyMissing)))
        side.context.bond = nil
        side.context.bondStrength = nil
        #expect(side.engine.contextChanged(&side.context) == [Side.unbonded(isEncrypted: false)])
        #expect(side.state == .settled(.unencrypted))
    }

    @Test("A policy that demands verification begins it as the central; one that does not opens the gate")
    func policyThatDemandsVerificationBeginsIt() {
        var side = Side(.central, bond: Side.bond(.central)) { $0.encryptsBondedLinks = false }
        var policy = side.engine.policy
        policy.encryptsBondedLinks = true
        let effects = side.engine.setPolicy(policy, &side.context)
        #expect(effects == [.enableEncryption(Side.key), Side.bonded(.verifying)])
        policy.encryptsBondedLinks = false
        let opened = SecuritySnapshot(strength: nil, hasKey: true, isIdentityUnverified: false, gate: .open)
        #expect(side.engine.setPolicy(policy, &side.context) == [.publish(opened)])
    }

    // MARK: Centrals that claim to be bonded

    @Test("A central that claims a bonded identity is asked to encrypt after 5 s, and disconnected after 30 s")
    func unverifiedCentralIsDisconnected() {
        var side = Side(.peripheral, bond: Side.bond(.peripheral))
        #expect(side.engine.deadline == Side.start + .seconds(5))
        #expect(side.advance(.seconds(5)) == [.send([0x0B, 0x09]), Side.bonded(.verifying)])
        #expect(side.engine.deadline == Side.start + .seconds(30))
        let error = HostError.disconnected(.controller(.authenticationFailure))
        #expect(
            side.advance(.seconds(25)) == [
                .finish(.verification, .failure(error)), .disconnect(.authenticationFailure), Side.ending(error),
            ]
        )
    }

    @Test("A central that is being verified when its time ends is not disconnected")
    func centralThatEncryptsInTime() {
        var side = Side(.peripheral, bond: Side.bond(.peripheral))
        _ = side.advance(.seconds(29))
        _ = side.requestKey()
        #expect(side.advance(.seconds(1)) == [])
        #expect(side.encryptionChanged(isOn: true).contains(.identityVerified))
        #expect(side.engine.deadline == nil)
    }

    // MARK: Ending

    @Test(
        "The end of a link ends its calls",
        arguments: [
            (.pinOrKeyMissing, .security(.keyMissing)),
            (
                .connectionTerminatedDueToMICFailure,
                .security(.encryptionFailed(.connectionTerminatedDueToMICFailure))
            ), (.connectionTimeout, .disconnected(.controller(.connectionTimeout))),
        ] as [(HCIErrorCode, HostError)]
    )
    func endOfALinkEndsItsCalls(reason: HCIErrorCode, error: HostError) {
        var side = Side(.central, bond: Side.bond(.central))
        _ = side.require()
        let (effects, returned) = side.engine.linkEnded(.controller(reason), &side.context)
        let report = SecurityEffect.report(.keyMissing(Side.link, identity: side.peer))
        let finish = SecurityEffect.finish(Side.call, .failure(error))
        #expect(effects == (reason == .pinOrKeyMissing ? [report, finish] : [finish]))
        #expect(returned == error)
        #expect(side.state == .ended(error))
        #expect(side.engine.deadline == nil)
        #expect(side.require(Side.otherCall) == [.finish(Side.otherCall, .failure(error))])
    }

    @Test("The end of a link fails its pairing")
    func linkEndFailsPairing() {
        var side = Side(.central)
        _ = side.require()
        let error = HostError.disconnected(.controller(.connectionTimeout))
        #expect(
            side.linkEnded(.connectionTimeout) == [
                .finish(Side.call, .failure(error)), .attemptFailed(side.peer, countsForAll: false),
                side.pairingFailed(.pairing(.linkEnded)),
            ]
        )
    }
}
