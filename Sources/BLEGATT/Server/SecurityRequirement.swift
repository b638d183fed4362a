import BLEATT
import BluetoothTypes

/// The link security that an attribute requires before it may be read or written (Vol 3, Part C, 10.2 and 10.3).
enum SecurityRequirement {
    case none
    /// A valid signature, or encryption (LE security mode 2, level 1).
    case signature
    /// A signature with an authenticated key, or encryption with one (LE security mode 2, level 2).
    case authenticatedSignature
    /// LE security mode 1, level 2.
    case encryption
    /// LE security mode 1, level 3.
    case authenticatedEncryption
    /// LE security mode 1, level 4.
    case secureConnections

    /// The error for a client whose link is not secure enough (Vol 3, Part C, 10.3.1, Table 10.2); nil if it is.
    func error(
        _ security: LinkSecurity,
        _ signature: SignatureStrength? = nil,
        minimumKeySize: UInt8
    ) -> ATTErrorCode? {
        let needsAuthentication: Bool
        switch self {
        case .none: return nil
        case .signature:
            if signature != nil { return nil }
            needsAuthentication = false
        case .authenticatedSignature:
            if signature == .authenticated { return nil }
            needsAuthentication = true
        case .encryption: needsAuthentication = false
        case .authenticatedEncryption, .secureConnections: needsAuthentication = true
        }
        if !security.isEncrypted { return errorForWantOfEncryption(security) }
        if needsAuthentication, !security.isAuthenticated { return .insufficientAuthentication }
        let isLevel4 = self == .secureConnections
        if isLevel4, !security.isSecureConnections { return .insufficientAuthentication }
        if security.keySize < (isLevel4 ? 16 : minimumKeySize) { return .encryptionKeySizeTooShort }
        return nil
    }

    /// The error for a client whose link must be encrypted and is not (Vol 3, Part C, 10.3.1, Table 10.2).
    ///
    /// If there is a key, the link need only be encrypted with it. If there is none, the devices must pair. A Write
    /// Request to a value that needs a signature has the same error in both cases (Vol 3, Part C, 10.4.2). If the link
    /// is encrypted with too short a key, the devices must pair for a longer one.
    func errorForWantOfEncryption(_ security: LinkSecurity) -> ATTErrorCode {
        if security.isKeyTooShort { return .encryptionKeySizeTooShort }
        return switch self {
        case .signature, .authenticatedSignature: .insufficientAuthentication
        case .none, .encryption, .authenticatedEncryption, .secureConnections:
            security.hasKey ? .insufficientEncryption : .insufficientAuthentication
        }
    }
}

extension AttributePermissions {
    static let anyRead: AttributePermissions = [
        .read, .readEncrypted, .readAuthenticated, .readSecureConnections, .readAuthorized,
    ]
    static let anyWrite: AttributePermissions = [
        .write, .writeEncrypted, .writeAuthenticated, .writeSecureConnections, .writeAuthorized, .writeSigned,
    ]
    /// The permissions that need an encrypted link.
    static let anyEncrypted: AttributePermissions = [
        .readEncrypted, .writeEncrypted, .readAuthenticated, .writeAuthenticated, .readSecureConnections,
        .writeSecureConnections,
    ]

    var readRequirement: SecurityRequirement {
        if contains(.readSecureConnections) { return .secureConnections }
        if contains(.readAuthenticated) { return .authenticatedEncryption }
        return contains(.readEncrypted) ? .encryption : .none
    }

    /// A value that accepts signed writes accepts writes on an encrypted link as well, because clients do not sign
    /// there.
    var writeRequirement: SecurityRequirement {
        if contains(.writeSecureConnections) { return .secureConnections }
        if contains(.writeSigned), !contains(.writeEncrypted) {
            return contains(.writeAuthenticated) ? .authenticatedSignature : .signature
        }
        if contains(.writeAuthenticated) { return .authenticatedEncryption }
        return contains(.writeEncrypted) ? .encryption : .none
    }
}
