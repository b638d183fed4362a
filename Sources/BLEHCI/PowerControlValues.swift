/// A zone of the path loss of a connection, between the thresholds of ``LESetPathLossReportingParameters``.
public struct PathLossZone: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The path loss is below the low threshold.
    public static let low = PathLossZone(rawValue: 0x00)
    /// The path loss is between the thresholds.
    public static let middle = PathLossZone(rawValue: 0x01)
    /// The path loss is above the high threshold.
    public static let high = PathLossZone(rawValue: 0x02)
}

extension PathLossZone: CustomStringConvertible {
    public var description: String {
        switch rawValue {
        case 0x00: "low"
        case 0x01: "middle"
        case 0x02: "high"
        default: "zone \(rawValue)"
        }
    }
}

/// Whose transmit power ``LETransmitPowerReporting`` reports, and why.
public struct TransmitPowerReportingReason: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The power of this controller has changed.
    public static let localChange = TransmitPowerReportingReason(rawValue: 0x00)
    /// The power of the peer has changed.
    public static let remoteChange = TransmitPowerReportingReason(rawValue: 0x01)
    /// The power of the peer was read by ``LEReadRemoteTransmitPowerLevel``.
    public static let remoteRead = TransmitPowerReportingReason(rawValue: 0x02)
}

/// The limits that a transmit power has reached.
public struct TransmitPowerLevelLimits: OptionSet, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The device cannot send with less power.
    public static let minimum = TransmitPowerLevelLimits(rawValue: 1 << 0)
    /// The device cannot send with more power.
    public static let maximum = TransmitPowerLevelLimits(rawValue: 1 << 1)
}
