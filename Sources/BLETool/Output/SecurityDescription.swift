import BLE
import BLEProfiles

extension KeyStrength {
    /// As members of a JSON object.
    var members: [JSON.Member] {
        [
            .init(key: "authenticated", value: .bool(isAuthenticated)),
            .init(key: "secureConnections", value: .bool(isSecureConnections)),
            .init(key: "keySize", value: .integer(Int(keySize))),
        ]
    }

    /// In words: `authenticated, LE Secure Connections, 16 octets`.
    var words: String {
        "\(isAuthenticated ? "authenticated" : "unauthenticated"), "
            + "\(isSecureConnections ? "LE Secure Connections" : "LE legacy pairing"), \(keySize) bytes"
    }
}

extension AssociationModel {
    /// The word for it in JSON.
    var identifier: String {
        switch self {
        case .justWorks: "justWorks"
        case .passkeyShownHere: "passkeyShownHere"
        case .passkeyTypedHere: "passkeyTypedHere"
        case .passkeyTypedOnBoth: "passkeyTypedOnBoth"
        case .numericComparison: "numericComparison"
        case .outOfBand: "outOfBand"
        }
    }

    var words: String {
        switch self {
        case .justWorks: "just works"
        case .passkeyShownHere: "passkey shown here"
        case .passkeyTypedHere: "passkey typed here"
        case .passkeyTypedOnBoth: "passkey typed on both"
        case .numericComparison: "numeric comparison"
        case .outOfBand: "out of band"
        }
    }
}

extension PairingResult {
    /// As members of a JSON object.
    var members: [JSON.Member] {
        [
            .init(key: "identity", value: .string("\(identity)")),
            .init(key: "identityType", value: .string(identity.typeName)),
            .init(key: "model", value: .string(model.identifier)),
        ] + strength.members + [.init(key: "bonded", value: .bool(isBonded))]
    }

    /// In words, on one line.
    var words: String {
        "\(identity) (\(identity.typeName)): \(model.words), \(strength.words), \(isBonded ? "bonded" : "no bond")"
    }
}
