/// The reason why a device ends a pairing (Vol 3, Part H, 3.5.5).
public struct PairingFailedReason: RawRepresentable, Error, Hashable, Sendable {
    public let rawValue: UInt8

    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    public static let passkeyEntryFailed = PairingFailedReason(rawValue: 0x01)
    public static let outOfBandNotAvailable = PairingFailedReason(rawValue: 0x02)
    public static let authenticationRequirements = PairingFailedReason(rawValue: 0x03)
    public static let confirmValueFailed = PairingFailedReason(rawValue: 0x04)
    public static let pairingNotSupported = PairingFailedReason(rawValue: 0x05)
    public static let encryptionKeySize = PairingFailedReason(rawValue: 0x06)
    public static let commandNotSupported = PairingFailedReason(rawValue: 0x07)
    public static let unspecifiedReason = PairingFailedReason(rawValue: 0x08)
    public static let repeatedAttempts = PairingFailedReason(rawValue: 0x09)
    public static let invalidParameters = PairingFailedReason(rawValue: 0x0A)
    public static let dhKeyCheckFailed = PairingFailedReason(rawValue: 0x0B)
    public static let numericComparisonFailed = PairingFailedReason(rawValue: 0x0C)
    public static let keyRejected = PairingFailedReason(rawValue: 0x0F)
    public static let busy = PairingFailedReason(rawValue: 0x10)
}
