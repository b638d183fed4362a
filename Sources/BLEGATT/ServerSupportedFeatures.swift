/// The features that a server reports to its clients (Vol 3, Part G, 7.4).
public struct ServerSupportedFeatures: OptionSet, Hashable, Sendable {
    public let rawValue: UInt8

    @inlinable
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The server accepts bearers over enhanced credit-based channels.
    public static let enhancedAttributeBearer = ServerSupportedFeatures(rawValue: 0x01)
}
