/// The kind of transmit power that ``ReadTransmitPowerLevel`` returns.
public enum TransmitPowerLevelType: UInt8, Sendable {
    /// The power that is used now.
    case current = 0x00
    /// The greatest power that the controller can use.
    case maximum = 0x01
}

/// The kinds of data that ``SetControllerToHostFlowControl`` puts under flow control.
public enum FlowControlEnable: UInt8, Sendable {
    /// The controller sends data without waiting for the host.
    case off = 0x00
    /// The controller sends ACL data only while the host has free buffers.
    case acl = 0x01
    /// The controller sends synchronous data only while the host has free buffers.
    case synchronous = 0x02
    /// The controller sends ACL and synchronous data only while the host has free buffers.
    case aclAndSynchronous = 0x03
}

/// The kind of data that overflowed the controller's buffers.
public struct LinkType: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Synchronous data (SCO and eSCO), of BR/EDR.
    public static let synchronous = LinkType(rawValue: 0x00)
    /// ACL data.
    public static let acl = LinkType(rawValue: 0x01)
    /// Isochronous data.
    public static let iso = LinkType(rawValue: 0x02)
}
