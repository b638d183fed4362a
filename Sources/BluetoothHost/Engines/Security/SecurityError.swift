import BLEHCI
import BLESMP
import BluetoothTypes

/// The reason why a link could not be made as secure as required.
public enum SecurityError: Error, Hashable, Sendable {
    /// The devices could not be paired.
    case pairing(PairingFailure)
    /// The bonded peer reported that it does not have the bond's key, or the bond has no key for this device's role as
    /// the central. A peer that reports this has lost the bond, or is another device that uses the address. The bond
    /// stays until it is removed or replaced.
    case keyMissing
    /// A controller refused to encrypt the link, or encryption failed.
    ///
    /// With `connectionTerminatedDueToMICFailure` (0x3D), a packet could not be decrypted, and the link has ended (Vol
    /// 6, Part B, 5.1.3.1). There are two possible causes. The devices have different keys, or one of the controllers
    /// corrupted packets or changed their order. The second cause ends with the connection.
    case encryptionFailed(HCIErrorCode)
    /// The link was not encrypted in time: the peer did not respond, or the controller did not report the end of the
    /// encryption.
    case timedOut
    /// A pairing has failed recently. The next attempt is possible after this time (Vol 3, Part H, 2.3.6).
    case repeatedAttempts(Duration)
    /// The policy or the pairing delegate refused the pairing, or a delegate is missing. The text gives the reason.
    case refused(String)
    /// The key of the pairing would be weaker than the key of the bond. The bond stays.
    case weakerThanBond(KeyStrength)
    /// The link has a key of this strength, which does not fulfill the requirement. The devices have paired, and the
    /// new key is not sufficient. Or a new pairing was requested, and the central has used an earlier key instead.
    case insufficient(KeyStrength)
    /// The maximum number of bonds exists, and none of them may be evicted. An app has to remove one.
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
        case .repeatedAttempts(let time): "a pairing has just failed; try again in \(time)"
        case .refused(let reason): "pairing was refused: \(reason)"
        case .weakerThanBond(let strength): "the peer offers \(strength.text), which is weaker than its bond"
        case .insufficient(let strength): "the link has only \(strength.text)"
        case .tooManyBonds(let limit): "there are \(limit) bonds, the maximum, and none may be evicted; remove one"
        }
    }
}

extension PairingFailure {
    fileprivate var text: String {
        switch self {
        case .ended(let reason): "\(reason.text), reported by this device"
        case .endedByPeer(let reason): "\(reason.text), reported by the peer"
        case .timedOut: "no answer came within 30 seconds, or a passkey was not typed within 5 minutes"
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
        case .outOfBandNotAvailable: "out-of-band data are not available"
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
        "\(isAuthenticated ? "an authenticated" : "an unauthenticated") key of \(keySize) bytes"
            + (isSecureConnections ? " by LE Secure Connections" : " by LE legacy pairing")
    }
}
