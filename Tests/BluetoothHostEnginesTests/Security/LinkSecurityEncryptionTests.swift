import BLECryptography
import BLEHCI
import BLESMP
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("The encryption of a link")
struct LinkSecurityEncryptionTests {
    private typealias Side = SecuritySide

    private static let other = LongTermKey(value: 0x77, strength: SecuritySide.strength)

    // MARK: Keys for the controller

    @Test("As the peripheral, the controller gets the bond's key")
    func bondKeyIsGiven() {
        var side = Side(.peripheral, bond: Side.bond(.peripheral))
        #expect(side.requestKey() == [.keyReply(Side.key), Side.bonded(.verifying)])
        #expect(side.state == Side.encrypting())
    }

    @Test("Encryption by the central answers a Security Request, whose time limit ends")
    func encryptionAnswersSecurityRequest() {
        var side = Side(.peripheral, bond: Side.bond(.peripheral))
        _ = side.require()
        #expect(side.requestKey() == [.keyReply(Side.key)])
        #expect(side.state == Side.encrypting(.bond, Side.waiting()))
        #expect(side.engine.securityManager.deadline == nil)
    }

    @Test("Encryption by the central with the bond's key is no new pairing")
    func encryptionIsNoNewPairing() {
        var side = Side(.peripheral, bond: Side.bond(.peripheral))
        _ = side.require(pairsAgain: true)
        _ = side.require(Side.otherCall)
        _ = side.requestKey()
        #expect(
            side.encryptionChanged(isOn: true) == [
                side.encryptionReport(isOn: true), .setAuthenticatedPayloadTimeout, .identityVerified,
                Side.failure(.insufficient(Side.strength)), Side.success(Side.otherCall), Side.bonded(.open),
            ]
        )
        #expect(side.state == .settled(Side.encrypted(.bond)))
    }

    @Test("The keys of a pairing without a bond are given as long as the link")
    func transientKeyIsGiven() {
        var side = Side(.peripheral)
        var keys = Bond(identity: side.peer)
        keys.peripheralKey = Side.key
        side.engine.transientKeys = keys
        #expect(side.requestKey().contains(.keyReply(Side.key)))
        #expect(side.state == Side.encrypting(.transient))
        #expect(
            side.encryptionChanged(isOn: true).last
                == .publish(
                    SecuritySnapshot(strength: Side.strength, hasKey: true)
                )
        )
        #expect(side.state == .settled(Side.encrypted(.transient)))
    }

    @Test("No key is given for an unknown EDIV and Rand, to a central, or while the app is asked about a bond")
    func noKeyIsGivenForAnUnknownNameOrDuringABondDecision() {
        let named = LongTermKey(value: 1, encryptedDiversifier: 5, randomNumber: 6, strength: Side.strength)
        var side = Side(.peripheral, bond: Side.bond(.peripheral))
        #expect(side.requestKey(of: named) == [.keyReply(nil)])
        #expect(side.state == .settled(.unencrypted))
        var central = Side(.central, bond: Side.bond(.central))
        #expect(central.requestKey() == [.keyReply(nil)])
        side.enter(.awaitingBondDecision(side.completedPairing()))
        _ = side.decide(.replacesOther(Side.strength))
        #expect(side.requestKey() == [.keyReply(nil)])
    }

    @Test("While devices pair, the bond's key is not given")
    func bondKeyIsNotGivenDuringPairing() {
        var side = Side(.peripheral, bond: Side.bond(.peripheral))
        _ = side.receive([0x01, 0x03, 0x00, 0x09, 0x10, 0x01, 0x01])
        #expect(side.engine.securityManager.isPairing)
        #expect(side.requestKey() == [.keyReply(nil)])
    }

    @Test("The central can refresh the encryption while keys are distributed")
    func encryptionIsRefreshedDuringKeyDistribution() {
        var pair = SecurityPair(Side(.central), Side(.peripheral))
        pair.refreshesEncryption = true
        pair.perform(.central) { $0.require() }
        let report = pair.peripheral.encryptionReport(isOn: true)
        #expect(pair.log[.peripheral]?.count { $0 == report } == 2)
        #expect(pair.log[.peripheral]?.contains(pair.peripheral.paired()) == true)
        #expect(pair.peripheral.state == .settled(Side.encrypted(.bond)))
        #expect(pair.log[.central]?.last == Side.success())
    }

    // MARK: Success

    @Test(
        "The bond's key verifies the peer",
        arguments: [SecurityChannel<SwiftCryptography>.Role.central, .peripheral]
    )
    func bondKeyVerifies(role: SecurityChannel<SwiftCryptography>.Role) {
        var side = Side(role, bond: Side.bond(role))
        side.enter(Side.encrypting(.bond, Side.waiting()))
        #expect(
            side.encryptionChanged(isOn: true) == [
                side.encryptionReport(isOn: true), .setAuthenticatedPayloadTimeout, .identityVerified, Side.success(),
                Side.bonded(.open),
            ]
        )
        #expect(side.state == .settled(Side.encrypted(.bond)))
    }

    @Test("The key of a bond that was removed during the encryption verifies nothing")
    func removedBondVerifiesNothing() {
        var side = Side(.central, bond: Side.bond(.central))
        side.enter(Side.encrypting())
        side.context.bond = nil
        side.context.bondStrength = nil
        #expect(
            side.encryptionChanged(isOn: true) == [
                side.encryptionReport(isOn: true), .setAuthenticatedPayloadTimeout, Side.unbonded(isEncrypted: true),
            ]
        )
        #expect(!side.engine.isIdentityVerified)
    }

    @Test("Devices do not pair again for a call whose requirement their pairing has not met")
    func devicesDoNotPairAgainForAnUnmetRequirement() {
        var side = Side(.central)
        let required = RequiredSecurity(isAuthenticated: true)
        var requirement = SecurityRequirement(Side.call, required, for: .app)
        requirement.hasPairingBegun = true
        side.enter(Side.encrypting(.incompletePairing, requirement, Side.waiting(Side.otherCall)))
        #expect(
            side.encryptionChanged(isOn: true) == [
                side.encryptionReport(isOn: true), .setAuthenticatedPayloadTimeout, Side.success(Side.otherCall),
                Side.failure(.insufficient(Side.strength)), Side.unbonded(isEncrypted: true),
            ]
        )
    }

    @Test("A key that the policy does not accept is not shown to attributes")
    func unacceptedKeyIsNotPublished() {
        var side = Side(.central) { $0.requiresAuthentication = true }
        side.enter(Side.encrypting(.incompletePairing))
        #expect(
            side.encryptionChanged(isOn: true) == [
                side.encryptionReport(isOn: true), .setAuthenticatedPayloadTimeout,
            ]
        )
    }

    // MARK: Failure

    @Test(
        "A missing key ends the waiting calls and closes the gate",
        arguments: [HCIErrorCode.pinOrKeyMissing, .authenticationFailure]
    )
    func missingKeyEndsTheWaitingCallsAndClosesTheGate(status: HCIErrorCode) {
        var side = Side(.central, bond: Side.bond(.central))
        side.enter(Side.encrypting(.bond, Side.waiting()))
        #expect(
            side.encryptionChanged(status, isOn: false) == [
                .report(.keyMissing(Side.link, identity: side.peer)), Side.failure(.keyMissing),
                Side.bonded(.failed(.security(.keyMissing))),
            ]
        )
        #expect(side.state == .settled(Side.unencrypted(.keyMissing)))
    }

    @Test("If the policy asks for it, devices pair again when the key is missing")
    func missingKeyIsPairedAgain() {
        var side = Side(.central, bond: Side.bond(.central)) { $0.keyLoss = .askToPairAgain }
        side.enter(Side.encrypting(.bond, Side.waiting()))
        let effects = side.encryptionChanged(.pinOrKeyMissing, isOn: false)
        #expect(
            effects.prefix(2) == [
                .report(.keyMissing(Side.link, identity: side.peer)),
                .report(.pairingStarted(Side.link, peer: side.peer)),
            ]
        )
        #expect(effects.pdus.map(\.first) == [0x01])
        #expect(side.state.current == Side.unencrypted(.keyMissing))
        #expect(side.state.waiting.map(\.hasPairingBegun) == [true])
    }

    @Test("An encryption whose end is never reported fails after 40 s")
    func unreportedEncryptionFailsAfter40Seconds() {
        var side = Side(.central, bond: Side.bond(.central))
        _ = side.require()
        #expect(side.advance(.seconds(39)) == [])
        #expect(
            side.advance(.seconds(1)) == [
                .unreportedEncryption, Side.failure(.timedOut), Side.bonded(.failed(.security(.timedOut))),
            ]
        )
        #expect(side.state == .settled(Side.unencrypted(.timedOut)))
    }

    @Test("If the controller refuses to encrypt, the link stays as it was")
    func refusedEncryptionLeavesTheLinkAsItWas() {
        var side = Side(.central, bond: Side.bond(.central))
        side.enter(Side.encrypting(.bond, current: Side.encrypted(.transient), Side.waiting()))
        let effects = side.engine.encryptionRefused(Side.key, .commandDisallowed, &side.context)
        #expect(effects == [Side.failure(.encryptionFailed(.commandDisallowed))])
        let failure = SecurityError.encryptionFailed(.commandDisallowed)
        #expect(side.state == .settled(Side.encrypted(.transient, keyFailure: failure)))
        #expect(
            side.engine.encryptionRefused(Side.key, .commandDisallowed, &side.context) == [],
            "nothing is in progress"
        )
    }

    @Test("A new key that fails ends an earlier encryption")
    func failedNewKeyEndsAnEarlierEncryption() {
        var side = Side(.central, bond: Side.bond(.central))
        side.enter(Side.encrypting(.bond, current: Side.encrypted(.transient)))
        #expect(
            side.encryptionChanged(.connectionTimeout, isOn: false) == [
                side.encryptionReport(isOn: false),
                Side.bonded(.failed(.security(.encryptionFailed(.connectionTimeout)))),
            ]
        )
    }

    // MARK: End

    @Test("Encryption that ends on a bonded link begins again as the central")
    func centralVerifiesAgain() {
        var side = Side(.central, bond: Side.bond(.central))
        side.enter(.settled(Side.encrypted(.bond)))
        #expect(
            side.encryptionChanged(isOn: false) == [
                side.encryptionReport(isOn: false), .enableEncryption(Side.key), Side.bonded(.verifying),
            ]
        )
        #expect(side.state.waiting == [.verification])
    }

    @Test("Encryption that ends as the peripheral closes the gate; the app's operations ask for verification")
    func endOfEncryptionClosesTheGateOfAPeripheral() {
        var side = Side(.peripheral, bond: Side.bond(.peripheral))
        side.enter(.settled(Side.encrypted(.bond)))
        #expect(
            side.encryptionChanged(isOn: false) == [side.encryptionReport(isOn: false), Side.bonded(.unverified)]
        )
        #expect(side.engine.verificationDeadline != nil)
    }

    @Test("A refused key has the private address replaced, unless this host gives no key now whichever it is")
    func refusedKeyHasThePrivateAddressReplaced() {
        var side = Side(.peripheral, privateRole: .peripheral)
        #expect(side.requestKey() == [.keyReply(nil), .discardPrivateAddress])
        side.enter(.awaitingBondDecision(side.completedPairing()))
        #expect(side.decide(.replacesOther(Side.strength)).question != nil)
        #expect(side.requestKey() == [.keyReply(nil)])
    }

    @Test("Encryption that ends after a Security Request makes the peripheral ask again")
    func endOfEncryptionMakesThePeripheralAskAgain() {
        var side = Side(.peripheral, bond: Side.bond(.peripheral))
        side.enter(.settled(Side.encrypted(.bond)))
        _ = side.require(pairsAgain: true)
        let effects = side.encryptionChanged(isOn: false)
        #expect(effects.first == side.encryptionReport(isOn: false))
        #expect(effects.pdus == [[0x0B, 0x09]])
        #expect(side.state.waiting.map(\.caller) == [Side.call])
    }

    @Test("Events about an encryption that is not in progress change nothing")
    func eventsWithoutAnEncryptionInProgressChangeNothing() {
        var side = Side(.central)
        #expect(side.encryptionChanged(isOn: true) == [.unknownEncryption])
        #expect(side.encryptionChanged(isOn: false) == [])
        #expect(side.encryptionChanged(.pinOrKeyMissing, isOn: false) == [])
        side.enter(.settled(Side.encrypted(.incompletePairing)))
        #expect(side.encryptionChanged(isOn: true) == [])
        #expect(side.encryptionChanged(.pinOrKeyMissing, isOn: false) == [])
        #expect(side.state == .settled(Side.encrypted(.incompletePairing)))
    }
}
