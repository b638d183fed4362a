/// A Simplified Protocol/Service Multiplexer: identifies the service of a credit-based channel (Vol 3, Part A, 4.22).
public struct SPSM: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt16

    @inlinable
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// The values that the Bluetooth SIG assigns to services permanently.
    public static let fixedRange: ClosedRange<UInt16> = 0x0001...0x007F
    /// The values that a device may assign to its services. A peer learns them from a characteristic, for example.
    public static let dynamicRange: ClosedRange<UInt16> = 0x0080...0x00FF

    /// The Internet Protocol Support Profile.
    public static let internetProtocolSupport = SPSM(rawValue: 0x0023)
    /// The Object Transfer Service.
    public static let objectTransfer = SPSM(rawValue: 0x0025)
    /// The Enhanced Attribute Protocol.
    public static let enhancedAttribute = SPSM(rawValue: 0x0027)

    /// Whether the value lies in ``fixedRange``.
    public var isFixed: Bool { SPSM.fixedRange.contains(rawValue) }

    /// Whether the value lies in ``dynamicRange``.
    public var isDynamic: Bool { SPSM.dynamicRange.contains(rawValue) }

    /// Whether the value lies in one of the two ranges; all others are reserved.
    public var isValid: Bool { isFixed || isDynamic }
}
