import BluetoothTypes
import HCI
import SMP

/// Why a link is not as secure as it was to be.
public enum SecurityError: Error, Hashable, Sendable {
    /// The devices could not be paired.
    case pairing(PairingFailure)
    /// The bonded peer reported that it does not have the bond's key. It has lost the bond, or it is another device that uses
    /// the address: the bond stays until it is removed.
    case keyMissing
    /// One of the controllers refused to encrypt the link, or encryption failed, for this reason.
    ///
    /// With `connectionTerminatedDueToMICFailure` (0x3D), a packet could not be decrypted, and the link has ended (Vol 6,
    /// Part B, 5.1.3.1). There are two causes: the devices have different keys, or one of the controllers corrupted packets
    /// or changed their order. The second is over with the next connection.
    case encryptionFailed(HCI.ErrorCode)
    /// The peer did not do what it was asked to.
    case timedOut
    /// Pairing with this peer has failed lately; it is tried again after this time (Vol 3, Part H, 2.3.6).
    case repeatedAttempts(Duration)
    /// The policy, or the pairing delegate, or want of one, forbids the pairing; the text says which.
    case refused(String)
    /// The new key would be worth less than the bond's, which is kept.
    case weakerThanBond(KeyStrength)
    /// The link's key is not worth what was required, though the devices have been paired anew.
    case insufficient(KeyStrength)
    /// There are as many bonds as may be; one has to be removed.
    case tooManyBonds(Int)
}

extension SecurityError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .pairing(let failure): "pairing failed: \(failure.text)"
        case .keyMissing:
            "the peer has lost the bond's key, or is another device; if it was reset, remove the bond and pair again"
        case .encryptionFailed(.connectionTerminatedDueToMICFailure):
            "a packet could not be decrypted (MIC failure): the devices have different keys, or a controller corrupted or "
                + "reordered packets; connect again, and if it fails each time, remove the bond and pair again"
        case .encryptionFailed(let error): "the link could not be encrypted: \(error)"
        case .timedOut: "the peer did not encrypt the link in time"
        case .repeatedAttempts(let time): "pairing with this peer has just failed; try again in \(time)"
        case .refused(let reason): "pairing was refused: \(reason)"
        case .weakerThanBond(let strength): "the peer offers \(strength.text), which is less than its bond's"
        case .insufficient(let strength): "the link has only \(strength.text)"
        case .tooManyBonds(let limit): "there are \(limit) bonds, as many as may be; remove one"
        }
    }
}

extension PairingFailure {
    fileprivate var text: String {
        switch self {
        case .ended(let reason): "\(reason.text), which this device told the peer"
        case .endedByPeer(let reason): "\(reason.text), as the peer said"
        case .timedOut: "nothing came from the peer for 30 seconds"
        case .encryptionFailed: "the link could not be encrypted with the new key"
        case .linkEnded: "the link has ended"
        }
    }
}

extension PairingFailedReason {
    /// The specification's name of the reason.
    fileprivate var text: String {
        switch self {
        case .passkeyEntryFailed: "passkey entry failed"
        case .outOfBandNotAvailable: "out of band data are not available"
        case .authenticationRequirements: "authentication requirements cannot be met"
        case .confirmValueFailed: "confirm value failed"
        case .pairingNotSupported: "pairing is not supported"
        case .encryptionKeySize: "the encryption key is too short"
        case .commandNotSupported: "command is not supported"
        case .unspecifiedReason: "unspecified reason"
        case .repeatedAttempts: "repeated attempts"
        case .invalidParameters: "invalid parameters"
        case .dhKeyCheckFailed: "DHKey check failed"
        case .numericComparisonFailed: "numeric comparison failed"
        case .keyRejected: "key rejected"
        case .busy: "busy"
        default: "reason \(rawValue)"
        }
    }
}

extension KeyStrength {
    fileprivate var text: String {
        "\(isAuthenticated ? "an authenticated" : "an unauthenticated") key of \(keySize) octets"
            + (isSecureConnections ? " by LE Secure Connections" : " by LE legacy pairing")
    }
}
