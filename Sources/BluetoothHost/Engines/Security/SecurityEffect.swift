import BLEHCI
import BLESMP
import BluetoothTypes

/// An action of the caller of a ``LinkSecurityEngine`` after an input.
///
/// The caller performs the effects in their order, with one exception: it applies ``publish(_:)``, always the last
/// effect, before the others.
enum SecurityEffect: Equatable {
    /// Send a PDU of the Security Manager.
    case send([UInt8])
    /// As the central: have the controller encrypt the link with this key. If it refuses, call
    /// ``LinkSecurityEngine/encryptionRefused(_:_:_:)``.
    case enableEncryption(LongTermKey)
    /// As the peripheral: answer the controller's request for a key; nil if there is none.
    case keyReply(LongTermKey?)
    /// The link was just encrypted: set the controller's authenticated payload timeout for it (Vol 6, Part B, 5.4).
    case setAuthenticatedPayloadTimeout
    /// Log that the controller has encrypted the link with a key that this host did not give.
    case unknownEncryption
    /// Log that the controller has not reported within 40 s whether the link is encrypted.
    case unreportedEncryption
    /// Have the private addresses of this host replaced, once for each link. The link uses one, and its encryption has
    /// failed (Vol 3, Part C, 10.6).
    case discardPrivateAddress
    /// Ask the app. Without a pairing handler, call ``LinkSecurityEngine/unanswered(_:_:)`` in an input of its own.
    case ask(PairingInquiry, number: UInt64)
    /// Withdraw this question from the app: it needs no answer any longer.
    case withdraw(UInt64)
    /// The out-of-band data of these parameters are used up: call
    /// ``LinkSecurityEngine/outOfBandDataWasUsed(by:isOwn:)`` of each link.
    case outOfBandDataUsed(PairingParameters)
    /// The peer's identity is verified: the link was just encrypted with the key of its bond, or that key has become a
    /// bond.
    case identityVerified
    /// End a caller. It has the strength of the link's key, or an error.
    case finish(SecurityCaller, Result<KeyStrength, HostError>)
    /// Have the bond database decide about the keys of a pairing, and call ``LinkSecurityEngine/bondDecided(_:_:)``.
    ///
    /// The caller itself refuses a peer that claims the identity of another connected peer. `isConfirmed`: whether the
    /// app has agreed that the pairing replaces the bond of another peer.
    case decideBond(PairingOutcome, isForApp: Bool, isConfirmed: Bool)
    /// Count a failed pairing of this peer. It counts for all peers together if the peer could have used it to guess a
    /// passkey.
    case attemptFailed(DeviceAddress, countsForAll: Bool)
    /// Forget the failed pairings of this peer.
    case attemptSucceeded(DeviceAddress)
    /// Show this security to attributes, the client and channels.
    case publish(SecuritySnapshot)
    case report(SecurityEvent)
    /// End the link with this reason.
    case disconnect(HCIErrorCode)
}

/// Whether this host's client, channels and isochronous streams may exchange PDUs with a peer.
///
/// The gate is closed in all states except `open`. It protects against a device that uses the address of a bonded one
/// (BLESA).
enum Gate: Equatable {
    /// The peer is not bonded, or need not be verified, or is verified.
    case open
    /// The peer is not verified, and work in progress may verify it. Operations wait.
    case verifying
    /// The peer is not verified, and nothing is in progress. An operation causes a verification, and waits for it.
    case unverified
    /// The peer could not be verified, or this host ends the link. Operations fail with this error.
    case failed(HostError)
}

/// The security of a link as attributes and channels see it.
struct SecuritySnapshot: Equatable {
    /// The strength of the link's key. It is nil if the link is not encrypted or the policy does not accept the key. It
    /// is also nil until the peer has shown that it is on the pairing accept list.
    var strength: KeyStrength?
    /// Whether this host has a key with which the link could be encrypted: of a bond, or of a pairing without one.
    var hasKey = false
    /// Whether the peer's client is refused the values and channels of apps. It uses the address of a bonded device and
    /// is not verified, or this host ends the link.
    var isIdentityUnverified = false
    /// Whether this host's client and channels may exchange PDUs with the peer.
    var gate = Gate.open
    /// Whether the link is encrypted with a key that the policy does not accept only because it is too short.
    var isKeyTooShort = false
}

/// The facts that a ``LinkSecurityEngine`` needs for an input.
struct SecurityContext {
    var now: Instant
    /// The identity of the link's peer.
    var peer: DeviceAddress
    /// The bond with the peer.
    var bond: Bond?
    /// The strength of that bond, also if it has no key for encryption (``BondDatabase/strength(of:)``).
    var bondStrength: KeyStrength?
    /// The maximum number of bonds, if it is reached and no bond may be evicted; otherwise nil.
    var reachedBondLimit: Int?
    /// The time before this peer may pair again, because its pairings have failed; nil if it need not wait.
    var waitOfPeer: Duration?
    /// The time before any peer may pair again, because the pairings of many have failed; nil if none need wait.
    var waitOfAll: Duration?
    var isPairingWindowOpen: Bool
    /// Whether an app answers questions.
    var hasPairingHandler: Bool
    /// The identity that this host distributes to peers.
    var localIdentity: LocalIdentity
    var random: any RandomNumberGenerator & Sendable
}
