/// What a link is, as far as an attribute or a channel asks for it (Vol 3, Part C, 10.3).
public struct LinkSecurity: Hashable, Sendable {
    public var isEncrypted: Bool
    /// Whether the key was authenticated against a person in the middle.
    public var isAuthenticated: Bool
    /// Whether the key is of LE Secure Connections.
    public var isSecureConnections: Bool
    /// In octets: 7 to 16.
    public var keySize: UInt8
    /// Whether there is a key with which the link could be encrypted.
    public var hasKey: Bool
    /// Whether the app lets this peer use what needs authorization.
    public var isAuthorized: Bool
    /// Whether the peer has the address of a bonded device and has not yet verified by encryption that it is that device.
    ///
    /// Such a peer is refused what apps serve, also what needs no security, so that nobody acts in a bonded device's name.
    public var isIdentityUnverified: Bool

    public init(
        isEncrypted: Bool = false,
        isAuthenticated: Bool = false,
        isSecureConnections: Bool = false,
        keySize: UInt8 = 0,
        hasKey: Bool = false,
        isAuthorized: Bool = false,
        isIdentityUnverified: Bool = false
    ) {
        self.isEncrypted = isEncrypted
        self.isAuthenticated = isAuthenticated
        self.isSecureConnections = isSecureConnections
        self.keySize = keySize
        self.hasKey = hasKey
        self.isAuthorized = isAuthorized
        self.isIdentityUnverified = isIdentityUnverified
    }
}
