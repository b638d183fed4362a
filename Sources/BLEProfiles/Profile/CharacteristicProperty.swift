/// The properties of a characteristic by their names in JSON, in the order of their bits (Vol 3, Part G, 3.3.1.1).
package enum CharacteristicProperty: String, CaseIterable, Hashable, Sendable {
    case broadcast
    case read
    case writeWithoutResponse
    case write
    case notify
    case indicate
    case authenticatedSignedWrites
    case extendedProperties

    /// The property's bit.
    package var bit: UInt8 {
        switch self {
        case .broadcast: 0x01
        case .read: 0x02
        case .writeWithoutResponse: 0x04
        case .write: 0x08
        case .notify: 0x10
        case .indicate: 0x20
        case .authenticatedSignedWrites: 0x40
        case .extendedProperties: 0x80
        }
    }

    /// The properties whose bits are set.
    package static func all(in bits: UInt8) -> [CharacteristicProperty] {
        allCases.filter { bits & $0.bit != 0 }
    }
}

/// A permission of clients for an attribute, and the kind of link that it requires.
package enum AttributePermission: String, CaseIterable, Hashable, Sendable {
    case read
    case write
    case readEncrypted
    case writeEncrypted
    case readAuthenticated
    case writeAuthenticated
    case readSecureConnections
    case writeSecureConnections
    case readAuthorized
    case writeAuthorized
    case writeSigned
}
