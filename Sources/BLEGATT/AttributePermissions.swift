/// The operations that a client may do on an attribute, and the link security that they need (Vol 3, Part F, 3.2.5).
public struct AttributePermissions: OptionSet, Hashable, Sendable {
    public let rawValue: UInt16

    @inlinable
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// The value can be read.
    public static let read = AttributePermissions(rawValue: 1 << 0)
    /// The value can be written.
    public static let write = AttributePermissions(rawValue: 1 << 1)
    /// Reading needs an encrypted link.
    public static let readEncrypted = AttributePermissions(rawValue: 1 << 2)
    /// Writing needs an encrypted link.
    public static let writeEncrypted = AttributePermissions(rawValue: 1 << 3)
    /// Reading needs a link encrypted with an authenticated key.
    public static let readAuthenticated = AttributePermissions(rawValue: 1 << 4)
    /// Writing needs a link encrypted with an authenticated key.
    public static let writeAuthenticated = AttributePermissions(rawValue: 1 << 5)
    /// Reading needs the app's consent for this client.
    public static let readAuthorized = AttributePermissions(rawValue: 1 << 6)
    /// Writing needs the app's consent for this client.
    public static let writeAuthorized = AttributePermissions(rawValue: 1 << 7)
    /// Writing needs a signature or an encrypted link; clients do not sign on an encrypted link. With
    /// ``writeAuthenticated``, the key of either must be authenticated (LE security mode 2: Vol 3, Part C, 10.2.2). The
    /// characteristic accepts signatures only with ``CharacteristicProperties/authenticatedSignedWrites``.
    public static let writeSigned = AttributePermissions(rawValue: 1 << 8)
    /// Reading needs a link encrypted with an authenticated key of LE Secure Connections, 16 bytes long (LE security
    /// mode 1, level 4: Vol 3, Part C, 10.2.1).
    public static let readSecureConnections = AttributePermissions(rawValue: 1 << 9)
    /// Writing needs a link encrypted with an authenticated key of LE Secure Connections, 16 bytes long. A signature
    /// does not replace it.
    public static let writeSecureConnections = AttributePermissions(rawValue: 1 << 10)
}
