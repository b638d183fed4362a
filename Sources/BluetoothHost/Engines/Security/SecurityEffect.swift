import BluetoothTypes
import HCI
import SMP

/// What the caller of a ``LinkSecurityEngine`` does after an input.
///
/// It first applies a ``publish(_:)``, which is the last effect, then performs the others in their order.
enum SecurityEffect: Equatable {
    /// Send a PDU of the Security Manager.
    case send([UInt8])
    /// As the central: have the controller encrypt the link with this key. If it refuses, call
    /// ``LinkSecurityEngine/encryptionRefused(_:_:_:)``.
    case enableEncryption(LongTermKey)
    /// As the peripheral: answer the controller's request for a key; nil if there is none.
    case keyReply(LongTermKey?)
    /// The link is encrypted from now on: have the controller watch it.
    case watchAuthenticatedPayload
    /// The controller has encrypted the link with a key that this host has not given.
    case unknownEncryption
    /// The controller has not reported within 40 s whether the link is encrypted.
    case unreportedEncryption
    /// Ask the app. Without a pairing handler, call ``LinkSecurityEngine/unanswered(_:_:)`` in an input of its own.
    case ask(PairingInquiry, number: UInt64)
    /// The question needs no answer any longer: withdraw it from the app.
    case withdraw(UInt64)
    /// The out-of-band data of these parameters are used up: call
    /// ``LinkSecurityEngine/outOfBandDataWasUsed(by:isOwn:)`` of each link.
    case outOfBandDataUsed(PairingParameters)
    /// The peer has proven the key of its bond.
    case trusted
    case finish(SecurityCaller, Result<KeyStrength, HostError>)
    /// Have the bond database decide about the keys of a pairing, and call ``LinkSecurityEngine/bondDecided(_:_:)``.
    ///
    /// The caller first refuses a peer that claims the identity of another connected peer.
    case admit(PairingOutcome, isForApp: Bool, isConfirmed: Bool)
    /// A pairing has failed. It counts for all peers together if this peer might have learned about a passkey by it.
    case attemptFailed(DeviceAddress, countsForAll: Bool)
    case attemptSucceeded(DeviceAddress)
    case publish(SecuritySnapshot)
    case report(SecurityEvent)
    /// End the link with this reason.
    case disconnect(HCI.ErrorCode)
}

/// Whether the operations of this host's client and channels may be exchanged with a peer.
enum Gate: Equatable {
    case open
    /// The peer is bonded and not verified yet (BLESA).
    case verifying
    /// The peer is bonded, and nothing is in progress to verify it.
    case unverified
    /// The peer is bonded and could not be verified, or this host ends the link. Operations fail with this error.
    case failed(HostError)
}

/// The security of a link as attributes and channels see it.
struct SecuritySnapshot: Equatable {
    /// The strength of the link's key. It is nil if the link is not encrypted or the policy does not accept the key. It is
    /// also nil until the peer has shown that it is on the pairing accept list.
    var strength: KeyStrength?
    /// Whether this host has a key that the peer could encrypt the link with.
    var hasKey = false
    /// Whether the peer is refused apps' values and channels: its address is that of a bonded device and its identity is not
    /// verified, or this host ends the link.
    var isIdentityUnverified = false
    var gate = Gate.open
}

/// The facts that a ``LinkSecurityEngine`` needs for an input.
struct SecurityContext {
    var now: Instant
    /// The identity of the link's peer.
    var peer: DeviceAddress
    /// The bond with the peer.
    var bond: Bond?
    /// The strength of that bond, as ``BondDatabase/strength(of:)`` gives it.
    var bondStrength: KeyStrength?
    /// Maximum number of bonds, if there are as many and none may be evicted.
    var fullAt: Int?
    /// The time that this peer has to wait because of failed pairings.
    var ownWait: Duration?
    /// The time that each peer has to wait because of failed pairings of all.
    var waitOfAll: Duration?
    var isPairingWindowOpen: Bool
    /// Whether an app answers questions.
    var hasPairingHandler: Bool
    /// The identity that this host distributes to peers.
    var localIdentity: LocalIdentity
    var random: any RandomNumberGenerator & Sendable
}
