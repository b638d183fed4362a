import BLEATT
import BLESMP
import BluetoothTypes

/// The security of a link, and the work in progress that changes it.
///
/// Calls wait in a busy state only. When the work in progress ends, each call ends, or further work begins for it.
enum LinkSecurityState: Equatable {
    /// Nothing is in progress.
    case settled(CurrentEncryption)
    /// As the peripheral: the central was sent a Security Request.
    case requesting(RequestWork)
    /// The controller was given a key that both devices have, and has not reported yet whether the link is encrypted.
    case encrypting(EncryptionWork)
    /// A pairing is in progress. ``SecurityChannel/isPairing`` is true in this state only.
    case pairing(PairingWork)
    /// The Security Manager has completed a pairing, and the bond database decides about its keys.
    case awaitingBondDecision(CompletedPairing)
    /// The app is asked whether a completed pairing may replace the bond of another peer.
    case awaitingConsent(CompletedPairing, SecurityQuestion, deadline: Instant)
    /// This host ends the link. The peer counts as unverified until it has ended, and calls fail with this error.
    case ending(HostError)
    /// The link has ended, and calls fail with this error.
    case ended(HostError)
}

/// The key that encrypts a link now, whatever work is in progress.
struct CurrentEncryption: Equatable {
    /// The key that the link is encrypted with; nil if it is not encrypted.
    var key: ActiveKey?
    /// The failure of the bond's key on this link. The key is not tried again.
    var keyFailure: KeyFailure?

    static let unencrypted = CurrentEncryption()
}

/// A key of a bond, and the error with which the encryption of a link failed.
struct KeyFailure: Equatable {
    let key: LongTermKey
    let error: SecurityError
}

/// The key that a link is encrypted with.
struct ActiveKey: Equatable {
    /// The way in which both devices got the key.
    enum Origin: Equatable {
        /// The bond that this host has with the peer now. The peer's identity is verified.
        case bond
        /// A completed pairing without a bond, or a bond that was removed. The key lasts as long as the link.
        case transient
        /// A pairing that has not completed yet, or that failed after it had encrypted the link.
        case incompletePairing
    }

    var strength: KeyStrength
    var origin: Origin
    /// Whether an earlier key of the link verified the peer's identity, and the link has been encrypted since then.
    /// Used for the key of an incomplete pairing, or of one without a bond.
    var followsVerifiedKey = false

    /// Whether the gate to a bonded peer may be open on a link that is encrypted with this key. An incomplete pairing
    /// does not open the gate, because any device can begin one. It leaves the gate to a verified peer open.
    var opensGate: Bool { origin != .incompletePairing || followsVerifiedKey }
}

/// The origin of a requirement or of a pairing.
enum SecurityInitiative: Equatable {
    /// The app, in a call for security.
    case app
    /// This host, for an operation of the app that needs security.
    case demand
    /// The peer, by a Pairing Request or a Security Request.
    case peer
}

/// A caller that waits until a link is secure.
enum SecurityCaller: Equatable {
    /// A suspended call.
    case call(CallToken)
    /// The verification of a bonded peer's identity.
    case verification
    /// The calls in the client lane of a bonded peer.
    case clientLane
    /// The GATT client's request that the server has refused with this error, because the link is not secure enough.
    case elevation(ATTErrorCode)
    /// The peripheral that has sent a Security Request.
    case peer
}

/// A requirement of a caller for the security of a link.
struct SecurityRequirement: Equatable {
    let caller: SecurityCaller
    let required: RequiredSecurity
    let initiative: SecurityInitiative
    /// Whether the caller asks for a new pairing even if the link or the bond is secure enough. False once that pairing
    /// has completed.
    private(set) var asksForNewPairing: Bool
    /// Whether only a new pairing can meet the requirement: the caller asks for it, or the peer has lost the bond's
    /// key. False once a pairing has begun for the caller.
    var needsNewPairing: Bool
    /// Whether a pairing has begun for the caller. No other one begins for it.
    var hasPairingBegun = false

    init(
        _ caller: SecurityCaller,
        _ required: RequiredSecurity = .encryption,
        for initiative: SecurityInitiative,
        pairsAgain: Bool = false
    ) {
        self.caller = caller
        self.required = required
        self.initiative = initiative
        needsNewPairing = pairsAgain
        asksForNewPairing = pairsAgain
    }

    /// Verifies the identity of a bonded peer.
    static let verification = SecurityRequirement(.verification, for: .demand)

    /// The requirement once a pairing has begun for it: it needs no other one.
    var afterPairingBegan: SecurityRequirement {
        var requirement = self
        requirement.hasPairingBegun = true
        requirement.needsNewPairing = false
        return requirement
    }

    /// The requirement once a pairing has completed. If that pairing has begun for it, it asks for no other one.
    var afterPairingCompleted: SecurityRequirement {
        var requirement = self
        if !needsNewPairing { requirement.asksForNewPairing = false }
        return requirement
    }

    /// Whether the caller asks for a new pairing that has been requested and has not completed.
    var lacksNewPairing: Bool { asksForNewPairing && hasPairingBegun }

    /// Whether a link with a key of this strength meets the requirement.
    func isMet(by strength: KeyStrength) -> Bool { !needsNewPairing && required.isMet(by: strength) }
}

/// A Security Request that this host has sent as the peripheral.
struct RequestWork: Equatable {
    var current: CurrentEncryption
    var initiative: SecurityInitiative
    /// Whether the app has consented to a pairing that replaces the bond.
    var replacesBond: Bool
    /// The callers that wait, the oldest first.
    var waiting: [SecurityRequirement]
}

/// An encryption in progress that is not part of a pairing in progress.
struct EncryptionWork: Equatable {
    /// The key that the controller was given. It encrypts the link only if the encryption succeeds.
    let key: LongTermKey
    let origin: ActiveKey.Origin
    var current: CurrentEncryption
    /// The time at which the encryption is given up, because the controller has not reported how it ended.
    let deadline: Instant
    var waiting: [SecurityRequirement]
}

/// A pairing in progress.
struct PairingWork: Equatable {
    /// The progress of the encryption with the pairing's key.
    enum EncryptionProgress: Equatable {
        /// Not begun, or ended.
        case idle
        /// As the peripheral: the central will ask for this key. It may ask again while keys are distributed, to
        /// refresh the encryption.
        case expected(LongTermKey)
        /// The controller was given this key. The deadline is that of ``EncryptionWork``.
        case inProgress(LongTermKey, deadline: Instant)
    }

    var initiative: SecurityInitiative
    /// Whether the app has consented to a pairing that replaces the bond.
    var replacesBond: Bool
    /// The only identity address that the peer may give; nil for any. Set if the peer may pair although no new peer
    /// may.
    var onlyIdentity: DeviceAddress?
    /// The question that waits for its answer.
    var question: SecurityQuestion?
    /// The reason why this host has refused the pairing.
    var refusal: SecurityError?
    /// Whether the pairing uses out-of-band data, and the app has not consented to it yet.
    var usesOutOfBandData = false
    /// Whether another link's pairing has used the same out-of-band data.
    var isOutOfBandDataSpent = false
    /// Whether the pairing has got to a passkey or a number to compare, which the peer could try to guess.
    var isSecretAtStake = false
    var encryption = EncryptionProgress.idle
    /// Includes the encryption with the pairing's key, once that has begun.
    var current: CurrentEncryption
    var waiting: [SecurityRequirement]
}

/// A pairing that the Security Manager has completed, and whose keys may not be used yet.
struct CompletedPairing: Equatable {
    let outcome: PairingOutcome
    let initiative: SecurityInitiative
    /// The identity of the peer before the pairing.
    let peer: DeviceAddress
    var current: CurrentEncryption
    var waiting: [SecurityRequirement]
}

/// A question to the app that waits for its answer. The answer names the number.
struct SecurityQuestion: Equatable {
    let number: UInt64
    let inquiry: PairingInquiry
}

extension LinkSecurityState {
    /// The key that encrypts the link now. Setting it while the link ends has no effect.
    var current: CurrentEncryption {
        get {
            switch self {
            case .settled(let current): current
            case .requesting(let work): work.current
            case .encrypting(let work): work.current
            case .pairing(let work): work.current
            case .awaitingBondDecision(let work), .awaitingConsent(let work, _, _): work.current
            case .ending, .ended: .unencrypted
            }
        }
        set {
            switch self {
            case .settled: self = .settled(newValue)
            case .requesting(var work):
                work.current = newValue
                self = .requesting(work)
            case .encrypting(var work):
                work.current = newValue
                self = .encrypting(work)
            case .pairing(var work):
                work.current = newValue
                self = .pairing(work)
            case .awaitingBondDecision(var work):
                work.current = newValue
                self = .awaitingBondDecision(work)
            case .awaitingConsent(var work, let question, let deadline):
                work.current = newValue
                self = .awaitingConsent(work, question, deadline: deadline)
            case .ending, .ended: break
            }
        }
    }

    /// The requirements that wait, the oldest first. Requirements that are set in a state that is not busy are dropped.
    var waiting: [SecurityRequirement] {
        get {
            switch self {
            case .settled, .ending, .ended: []
            case .requesting(let work): work.waiting
            case .encrypting(let work): work.waiting
            case .pairing(let work): work.waiting
            case .awaitingBondDecision(let work), .awaitingConsent(let work, _, _): work.waiting
            }
        }
        set {
            switch self {
            case .settled, .ending, .ended: break
            case .requesting(var work):
                work.waiting = newValue
                self = .requesting(work)
            case .encrypting(var work):
                work.waiting = newValue
                self = .encrypting(work)
            case .pairing(var work):
                work.waiting = newValue
                self = .pairing(work)
            case .awaitingBondDecision(var work):
                work.waiting = newValue
                self = .awaitingBondDecision(work)
            case .awaitingConsent(var work, let question, let deadline):
                work.waiting = newValue
                self = .awaitingConsent(work, question, deadline: deadline)
            }
        }
    }

    /// Whether work is in progress, so that calls can wait for its end.
    var isBusy: Bool {
        switch self {
        case .settled, .ending, .ended: false
        case .requesting, .encrypting, .pairing, .awaitingBondDecision, .awaitingConsent: true
        }
    }

    /// Whether a verification or a pairing is in progress, which may verify the peer's identity.
    var mayVerifyIdentity: Bool {
        switch self {
        case .settled, .requesting, .ending, .ended: false
        case .encrypting, .pairing, .awaitingBondDecision, .awaitingConsent: true
        }
    }

    /// The question that waits for its answer.
    var question: SecurityQuestion? {
        switch self {
        case .pairing(let work): work.question
        case .awaitingConsent(_, let question, _): question
        case .settled, .requesting, .encrypting, .awaitingBondDecision, .ending, .ended: nil
        }
    }

    /// The time at which the work in progress is given up, apart from the deadline of the Security Manager.
    var deadline: Instant? {
        switch self {
        case .encrypting(let work): work.deadline
        case .pairing(let work): if case .inProgress(_, let deadline) = work.encryption { deadline } else { nil }
        case .awaitingConsent(_, _, let deadline): deadline
        case .settled, .requesting, .awaitingBondDecision, .ending, .ended: nil
        }
    }
}
