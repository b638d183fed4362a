/// The kind of transmit power that ``ReadTransmitPowerLevel`` returns.
public enum TransmitPowerLevelType: UInt8, Sendable {
    case current = 0x00
    case maximum = 0x01
}

/// The kinds of data that ``SetControllerToHostFlowControl`` puts under flow control.
public enum FlowControlEnable: UInt8, Sendable {
    case off = 0x00
    case acl = 0x01
    case synchronous = 0x02
    case aclAndSynchronous = 0x03
}

/// The kind of data that overflowed the controller's buffers.
public struct LinkType: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let synchronous = LinkType(rawValue: 0x00)
    public static let acl = LinkType(rawValue: 0x01)
    public static let iso = LinkType(rawValue: 0x02)
}
