import ATT
import BluetoothTypes
import SMP

/// The security of a link, and the work in progress that changes it.
///
/// A call waits for security in a busy state only. The work in progress ends each call that waits.
enum LinkSecurityState: Equatable {
    /// Nothing is in progress.
    case settled(Standing)
    /// As the peripheral: the central was sent a Security Request.
    case requesting(RequestWork)
    /// The controllers were given a key that both devices have.
    case encrypting(EncryptionWork)
    /// A pairing is in progress, exactly when ``SecurityChannel/isPairing``.
    case pairing(PairingWork)
    /// A pairing has succeeded, and the bond database decides about its keys.
    case storing(StoringWork)
    /// The app decides whether the bond of another peer is replaced.
    case confirming(StoringWork, SecurityQuestion, deadline: Instant)
    /// This host ends the link. The peer counts as unverified until it has ended, and calls fail with this error.
    case ending(HostError)
    /// The link has ended, and calls fail with this error.
    case ended(HostError)
}

/// The security of a link apart from the work in progress.
struct Standing: Equatable {
    /// The key that the link is encrypted with; nil if it is not encrypted.
    var key: ActiveKey?
    /// The failure of the bond's key on this link.
    var keyFailure: KeyFailure?

    static let unencrypted = Standing()
}

/// An encryption with a bond's key that has failed. The key is not tried again on the link.
struct KeyFailure: Equatable {
    let key: LongTermKey
    let error: SecurityError
}

/// The key that a link is encrypted with.
struct ActiveKey: Equatable {
    enum Origin: Equatable {
        /// The bond. The peer's identity is verified.
        case bond
        /// A pairing without a bond: the key lasts as long as the link.
        case transient
        /// A pairing that has not succeeded yet, or that has failed after it has encrypted the link.
        case unsaved
    }

    var strength: KeyStrength
    var origin: Origin
    /// For an unsaved key: whether an earlier key of the link has verified the peer's identity.
    var followsVerifiedKey = false

    /// Whether the peer may get what is for a bonded device. A pairing that has not succeeded verifies no identity.
    var isTrusted: Bool { origin != .unsaved || followsVerifiedKey }
}

/// The party that wants a link to be secure.
enum SecurityInitiative: Equatable {
    /// The app has asked for it.
    case app
    /// Something that the app does needs it.
    case demand
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
    /// The GATT client's request that the server has refused with this error.
    case elevation(ATT.ErrorCode)
    /// The peripheral that has sent a Security Request.
    case peer
}

/// A requirement of a caller for the security of a link.
struct SecurityRequirement: Equatable {
    let caller: SecurityCaller
    let required: RequiredSecurity
    let initiative: SecurityInitiative
    /// Whether the caller wants the devices to pair though they are bonded.
    let replacesBond: Bool
    /// Whether the devices are to pair though they are bonded.
    var pairsAgain: Bool
    /// Whether the devices have begun to pair since.
    var hasPaired = false

    init(
        _ caller: SecurityCaller,
        _ required: RequiredSecurity = .encryption,
        for initiative: SecurityInitiative,
        pairsAgain: Bool = false
    ) {
        self.caller = caller
        self.required = required
        self.initiative = initiative
        self.pairsAgain = pairsAgain
        replacesBond = pairsAgain
    }

    /// Verifies the identity of a bonded peer.
    static let verification = SecurityRequirement(.verification, for: .demand)

    /// The requirement after the devices have begun to pair: it does not want another pairing.
    var afterPairingBegan: SecurityRequirement {
        var requirement = self
        requirement.hasPaired = true
        requirement.pairsAgain = false
        return requirement
    }

    func isServed(by strength: KeyStrength) -> Bool { !pairsAgain && required.isMet(by: strength) }
}

struct RequestWork: Equatable {
    var before: Standing
    var initiative: SecurityInitiative
    /// Whether the app wants a pairing though the devices are bonded.
    var replacesBond: Bool
    var waiting: [SecurityRequirement]
}

struct EncryptionWork: Equatable {
    let key: LongTermKey
    let origin: ActiveKey.Origin
    var before: Standing
    /// The time at which the encryption is given up, because the controller has not reported how it ended.
    let deadline: Instant
    var waiting: [SecurityRequirement]
}

struct PairingWork: Equatable {
    /// How far the encryption with the pairing's key is.
    enum Cipher: Equatable {
        case idle
        /// As the peripheral: the central will ask for this key.
        case expecting(LongTermKey)
        /// The controllers were given this key. The deadline is that of ``EncryptionWork``.
        case starting(LongTermKey, deadline: Instant)
    }

    var initiative: SecurityInitiative
    /// Whether the app wants a pairing though the devices are bonded.
    var replacesBond: Bool
    /// The only identity that the peer may give; nil for any. Set if the peer may pair although no new peer may.
    var onlyIdentity: DeviceAddress?
    var question: SecurityQuestion?
    /// The reason why this host has refused the pairing.
    var refusal: SecurityError?
    /// Whether the pairing uses out-of-band data and was not consented to yet.
    var usesOutOfBandData = false
    /// Whether another link's pairing has used the same out-of-band data.
    var isOutOfBandDataSpent = false
    /// Whether a passkey or a number to compare has come up, which the peer could try to guess.
    var isSecretAtStake = false
    var cipher = Cipher.idle
    /// The security of the link, also that which the pairing's key has given it so far.
    var before: Standing
    var waiting: [SecurityRequirement]
}

struct StoringWork: Equatable {
    let outcome: PairingOutcome
    let initiative: SecurityInitiative
    /// The identity of the peer before it has paired.
    let peer: DeviceAddress
    var before: Standing
    var waiting: [SecurityRequirement]
}

/// A question to the app that waits for its answer.
struct SecurityQuestion: Equatable {
    let number: UInt64
    let inquiry: PairingInquiry
}

extension LinkSecurityState {
    /// The security of the link apart from the work in progress.
    var standing: Standing {
        get {
            switch self {
            case .settled(let standing): standing
            case .requesting(let work): work.before
            case .encrypting(let work): work.before
            case .pairing(let work): work.before
            case .storing(let work), .confirming(let work, _, _): work.before
            case .ending, .ended: .unencrypted
            }
        }
        set {
            switch self {
            case .settled: self = .settled(newValue)
            case .requesting(var work):
                work.before = newValue
                self = .requesting(work)
            case .encrypting(var work):
                work.before = newValue
                self = .encrypting(work)
            case .pairing(var work):
                work.before = newValue
                self = .pairing(work)
            case .storing(var work):
                work.before = newValue
                self = .storing(work)
            case .confirming(var work, let question, let deadline):
                work.before = newValue
                self = .confirming(work, question, deadline: deadline)
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
            case .storing(let work), .confirming(let work, _, _): work.waiting
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
            case .storing(var work):
                work.waiting = newValue
                self = .storing(work)
            case .confirming(var work, let question, let deadline):
                work.waiting = newValue
                self = .confirming(work, question, deadline: deadline)
            }
        }
    }

    /// Whether something is in progress.
    var isBusy: Bool {
        switch self {
        case .settled, .ending, .ended: false
        case .requesting, .encrypting, .pairing, .storing, .confirming: true
        }
    }

    /// Whether a verification or a pairing is in progress, which may verify the peer's identity.
    var mayVerifyIdentity: Bool {
        switch self {
        case .settled, .requesting, .ending, .ended: false
        case .encrypting, .pairing, .storing, .confirming: true
        }
    }

    /// The question that waits for its answer.
    var question: SecurityQuestion? {
        switch self {
        case .pairing(let work): work.question
        case .confirming(_, let question, _): question
        case .settled, .requesting, .encrypting, .storing, .ending, .ended: nil
        }
    }

    /// The time at which the work in progress is given up, apart from the deadline of the Security Manager.
    var deadline: Instant? {
        switch self {
        case .encrypting(let work): work.deadline
        case .pairing(let work): if case .starting(_, let deadline) = work.cipher { deadline } else { nil }
        case .confirming(_, _, let deadline): deadline
        case .settled, .requesting, .storing, .ending, .ended: nil
        }
    }
}
