/// What a client may do with an attribute, and what its link must be for it (Vol 3, Part F, 3.2.5).
public struct AttributePermissions: OptionSet, Hashable, Sendable {
    public let rawValue: UInt16

    @inlinable
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    public static let read = AttributePermissions(rawValue: 1 << 0)
    public static let write = AttributePermissions(rawValue: 1 << 1)
    /// Reading needs an encrypted link.
    public static let readEncrypted = AttributePermissions(rawValue: 1 << 2)
    public static let writeEncrypted = AttributePermissions(rawValue: 1 << 3)
    /// Reading needs a link encrypted with an authenticated key.
    public static let readAuthenticated = AttributePermissions(rawValue: 1 << 4)
    public static let writeAuthenticated = AttributePermissions(rawValue: 1 << 5)
    /// Reading needs the app's consent for this client.
    public static let readAuthorized = AttributePermissions(rawValue: 1 << 6)
    public static let writeAuthorized = AttributePermissions(rawValue: 1 << 7)
}

/// What a client's link is, as far as attributes ask for it.
public struct LinkSecurity: Hashable, Sendable {
    public var isEncrypted: Bool
    /// Whether the key was authenticated against a person in the middle.
    public var isAuthenticated: Bool
    /// In octets: 7 to 16.
    public var keySize: UInt8
    /// Whether there is a key with which the link could be encrypted.
    public var hasKey: Bool
    /// Whether the app lets this client use what needs authorization.
    public var isAuthorized: Bool

    public init(
        isEncrypted: Bool = false,
        isAuthenticated: Bool = false,
        keySize: UInt8 = 0,
        hasKey: Bool = false,
        isAuthorized: Bool = false
    ) {
        self.isEncrypted = isEncrypted
        self.isAuthenticated = isAuthenticated
        self.keySize = keySize
        self.hasKey = hasKey
        self.isAuthorized = isAuthorized
    }
}
