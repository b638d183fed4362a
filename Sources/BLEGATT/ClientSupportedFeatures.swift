/// The features that a client reports to a server (Vol 3, Part G, 7.2).
public struct ClientSupportedFeatures: OptionSet, Hashable, Sendable {
    public let rawValue: UInt8

    @inlinable
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The server reports a missed change of the database to the client by an error.
    public static let robustCaching = ClientSupportedFeatures(rawValue: 0x01)
    /// The client supports bearers over enhanced credit-based channels.
    public static let enhancedAttributeBearer = ClientSupportedFeatures(rawValue: 0x02)
    /// The client supports Multiple Handle Value Notifications.
    public static let multipleHandleValueNotifications = ClientSupportedFeatures(rawValue: 0x04)

    /// The features that the client and the server of this module support on one bearer.
    public static let supported: ClientSupportedFeatures = [.robustCaching, .multipleHandleValueNotifications]
}
