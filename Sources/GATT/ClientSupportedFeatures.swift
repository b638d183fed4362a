/// What a client can do, as it tells a server (Vol 3, Part G, 7.2).
public struct ClientSupportedFeatures: OptionSet, Hashable, Sendable {
    public let rawValue: UInt8

    @inlinable
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The client is to be told by an error when it has missed a change of the database.
    public static let robustCaching = ClientSupportedFeatures(rawValue: 0x01)
    public static let enhancedAttributeBearer = ClientSupportedFeatures(rawValue: 0x02)
    public static let multipleHandleValueNotifications = ClientSupportedFeatures(rawValue: 0x04)

    /// What client and server of this module can do.
    static let supported: ClientSupportedFeatures = [.robustCaching, .multipleHandleValueNotifications]
}
