import BluetoothTypes
import Cryptography
import DequeModule
import HCI
import SMP

/// How a link is protected, and what is under way to protect it.
struct Protection {
    enum Encryption: Equatable {
        case off
        /// The controllers have begun to use this key, in place of one of the given strength where the link is encrypted.
        case starting(LongTermKey, over: KeyStrength?)
        case on(KeyStrength)
    }

    /// On whose behalf devices pair.
    enum Initiative {
        /// The app has asked for it.
        case app
        /// Something that the app does needs it.
        case demand
        case peer
    }

    /// A question that waits for its answer.
    struct Question {
        let number: UInt64
        let purpose: Purpose
        let takeBack: @Sendable () -> Void

        enum Purpose {
            /// It is the pairing's.
            case pairing
            /// Whether the bond of a peer is replaced that has said who it is only at the end of pairing.
            case replacement(PairingOutcome)
        }
    }

    var channel: SecurityChannel<SwiftCryptography>
    var policy: SecurityPolicy
    var encryption = Encryption.off
    /// Whether the peer has the address of a bonded device, with a key for either role.
    var hasBond = false
    /// The key of the bond for this role, if there is one.
    var bondKey: LongTermKey?
    /// The keys of a pairing without a bond: they last as long as the link.
    var passingBond: Bond?
    /// As the peripheral: the key for the encryption that a pairing leads to.
    var expectedKey: LongTermKey?
    /// As the peripheral: the central was sent a Security Request.
    var isCentralAsked = false
    /// Whether the link is encrypted with the key of the peer's bond.
    var isBondProven = false
    /// Why the bond's key is of no use on this link.
    var loss: SecurityError?
    /// Why the peer's identity could not be verified when this was last tried.
    var verificationFailure: HostError?

    /// On whose behalf the pairing is that goes on.
    var initiative = Initiative.peer
    /// Whether the app itself wants a pairing though the devices are bonded: not only what a bond's key is enough for.
    var replacesBond = false
    /// The only identity that the peer may give in it; nil for any. Set where the peer may pair although no new peer may.
    var onlyIdentity: DeviceAddress?
    /// Why this host itself has refused it.
    var refusal: SecurityError?
    /// Whether the pairing under way is by out of band data.
    var usesOutOfBandData = false
    /// Whether another link's pairing has used the out of band data that the pairing under way would use.
    var isOutOfBandDataSpent = false
    /// Whether a passkey or a number to compare has come up in it, which the peer could try to guess.
    var isSecretAtStake = false
    var question: Question?
    var waiters = Deque<SecurityWaiter>()

    /// When an encryption that has begun is given up, because the controller has not reported how it ended.
    var encryptionDeadline: Instant?
    /// When the question whether a bond is replaced is given up.
    var replacementDeadline: Instant?
    /// As the peripheral: what a central owes that claims a bonded device's address.
    var verification: Verification?

    /// By when a central that claims a bonded device's address has to encrypt the link.
    struct Verification {
        /// When the central is asked to; nil once it was.
        var requestDue: Instant?
        /// When the link is ended.
        var deadline: Instant
    }

    /// The earliest of the deadlines, if there is any.
    var deadline: Instant? {
        earliest(
            earliest(channel.deadline, encryptionDeadline),
            earliest(replacementDeadline, verification.map { $0.requestDue ?? $0.deadline })
        )
    }

    /// What the link's key is worth; nil where the link is not encrypted.
    var strength: KeyStrength? {
        switch encryption {
        case .off: nil
        case .starting(_, let strength): strength
        case .on(let strength): strength
        }
    }

    /// The bond's key, where the policy has it be used.
    var usableBondKey: LongTermKey? {
        bondKey.flatMap { policy.accepts($0.strength) ? $0 : nil }
    }

    var isStarting: Bool {
        if case .starting = encryption { true } else { false }
    }

    /// Whether something is under way that changes how the link is protected.
    var isBusy: Bool { isVerifying || isCentralAsked }

    /// Whether the peer is about to be verified, or to be bonded again.
    var isVerifying: Bool { isStarting || channel.isPairing || isAskedAboutReplacement }

    /// Whether the app is asked if the bond of another peer is replaced.
    var isAskedAboutReplacement: Bool {
        if case .replacement = question?.purpose { true } else { false }
    }

    /// Whether the peer has the address of a bonded device, and its identity is not verified (BLESA).
    ///
    /// The bond may have no key for this role, since LE legacy pairing gives each role a key of its own. The peer's identity is
    /// then verified by another pairing only.
    var awaitsProof: Bool { policy.encryptsBondedLinks && hasBond && strength == nil }

    /// Whether the peer is refused apps' values and channels for that.
    var isRefusedByServer: Bool { awaitsProof && !policy.servesUnverifiedClients }
}

/// A call that waits for a link to be secure.
final class SecurityWaiter {
    let identifier: UInt64
    let required: RequiredSecurity
    let initiative: Protection.Initiative
    /// Whether the caller wants the devices to pair though they are bonded.
    let replacesBond: Bool
    /// Whether the devices are to pair though they are bonded.
    var pairsAgain: Bool
    /// Whether they have paired since.
    var hasPaired = false
    var timer: TimerQueue.Token?
    let completion: (Result<KeyStrength, HostError>) -> Void

    init(
        identifier: UInt64,
        required: RequiredSecurity,
        initiative: Protection.Initiative,
        pairsAgain: Bool,
        completion: @escaping (Result<KeyStrength, HostError>) -> Void
    ) {
        self.identifier = identifier
        self.required = required
        self.initiative = initiative
        replacesBond = pairsAgain
        self.pairsAgain = pairsAgain
        self.completion = completion
    }
}
