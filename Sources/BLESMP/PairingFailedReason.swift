/// The reason why a device ends a pairing (Vol 3, Part H, 3.5.5).
public struct PairingFailedReason: RawRepresentable, Error, Hashable, Sendable {
    public let rawValue: UInt8

    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// The user did not enter the passkey, for example because of cancellation.
    public static let passkeyEntryFailed = PairingFailedReason(rawValue: 0x01)
    /// The pairing needs out-of-band data, and the device has none.
    public static let outOfBandNotAvailable = PairingFailedReason(rawValue: 0x02)
    /// The devices' capabilities do not allow the authentication or the key that one side requires.
    public static let authenticationRequirements = PairingFailedReason(rawValue: 0x03)
    /// The confirm value does not match the random value. A wrong passkey is a usual cause.
    public static let confirmValueFailed = PairingFailedReason(rawValue: 0x04)
    /// The device does not pair, or not now.
    public static let pairingNotSupported = PairingFailedReason(rawValue: 0x05)
    /// The negotiated key size is less than the device accepts.
    public static let encryptionKeySize = PairingFailedReason(rawValue: 0x06)
    /// The device does not know the command.
    public static let commandNotSupported = PairingFailedReason(rawValue: 0x07)
    /// The reason has no code of its own.
    public static let unspecifiedReason = PairingFailedReason(rawValue: 0x08)
    /// Too little time has passed since a failed pairing or Security Request (Vol 3, Part H, 2.3.6).
    public static let repeatedAttempts = PairingFailedReason(rawValue: 0x09)
    /// The length or a parameter of a command is invalid.
    public static let invalidParameters = PairingFailedReason(rawValue: 0x0A)
    /// The value of Pairing DHKey Check is not the expected one, or the peer's public key is invalid.
    public static let dhKeyCheckFailed = PairingFailedReason(rawValue: 0x0B)
    /// The user has not confirmed that the two numbers are equal.
    public static let numericComparisonFailed = PairingFailedReason(rawValue: 0x0C)
    /// The device rejects a key that was distributed.
    public static let keyRejected = PairingFailedReason(rawValue: 0x0F)
    /// The device cannot pair now; the peer may try again later.
    public static let busy = PairingFailedReason(rawValue: 0x10)
}
