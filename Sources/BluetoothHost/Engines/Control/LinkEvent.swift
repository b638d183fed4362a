import BLEHCI
import BluetoothTypes

/// An event about the Link Layer of one connection.
public enum LinkEvent: Hashable, Sendable {
    /// The connection parameters or the subrate have changed, by either device.
    case parametersChanged(NegotiatedConnectionParameters)
    /// The PHYs have changed, by either device.
    case physChanged(transmit: PHY, receive: PHY)
    /// The transmit power of one device has changed.
    case transmitPowerChanged(TransmitPowerChange)
    /// The path loss has entered another zone.
    case pathLossZoneEntered(PathLossReport)
    /// As many events were dropped at this place, because the reader was too slow.
    case eventsDropped(Int)
}

/// The transmit power of a device on one PHY of a connection (Vol 4, Part E, 7.7.65.33).
public struct TransmitPower: Hashable, Sendable {
    /// The PHY that the power is for: ``/BLEHCI/PHY/leCoded`` stands for S=8 coding, ``/BLEHCI/PHY/leCodedS2`` for S=2.
    public let phy: PHY
    /// The power in dBm, -127 to 20; nil if the device does not report it.
    public let level: Int?
    /// Whether the device manages its power on this PHY.
    public let isManaged: Bool
    /// Whether the device cannot send with less power.
    public let isMinimum: Bool
    /// Whether the device cannot send with more power.
    public let isMaximum: Bool

    init(_ event: LETransmitPowerReporting) {
        phy = event.phy
        isManaged = event.txPowerLevel != 126
        level = event.txPowerLevel <= 20 ? Int(event.txPowerLevel) : nil
        isMinimum = level != nil && event.txPowerLevelFlag.contains(.minimum)
        isMaximum = level != nil && event.txPowerLevelFlag.contains(.maximum)
    }

    init(_ read: LEEnhancedReadTransmitPowerLevel.ReturnParameters) {
        phy = read.phy
        isManaged = true
        level = read.currentTXPowerLevel <= 20 ? Int(read.currentTXPowerLevel) : nil
        isMinimum = false
        isMaximum = level != nil && read.currentTXPowerLevel == read.maxTXPowerLevel
    }
}

/// A change of the transmit power of one device of a connection.
public struct TransmitPowerChange: Hashable, Sendable {
    /// Whether the power is that of the peer.
    public let isOfPeer: Bool
    /// The new power.
    public let power: TransmitPower
    /// The change in dB; nil if it is not known.
    public let delta: Int?
}

/// The path loss of a connection (Vol 4, Part E, 7.7.65.32).
public struct PathLossReport: Hashable, Sendable {
    /// The path loss in dB; nil if it is not known.
    public let pathLoss: Int?
    /// The zone that the path loss is in.
    public let zone: PathLossZone
}

/// The zones of path loss whose changes a controller reports for a connection (Vol 4, Part E, 7.8.119).
public struct PathLossThresholds: Hashable, Sendable {
    /// The path loss between the low and the middle zone, in dB: `hysteresis` to 254.
    public var low: Int
    /// The path loss between the middle and the high zone, in dB: `low` to 254; nil if there is no high zone.
    public var high: Int?
    /// By how many dB the path loss must pass a threshold before the zone changes: 0 to `low`. `low + hysteresis` is at
    /// most `high - hysteresis`, or 255 without a high zone. `high + hysteresis` is at most 255.
    public var hysteresis: Int
    /// How long the path loss must be in a zone before the zone is reported, in connection events: 0 to 65,535.
    public var minimumEvents: Int

    public init(low: Int, high: Int? = nil, hysteresis: Int = 2, minimumEvents: Int = 4) {
        self.low = low
        self.high = high
        self.hysteresis = hysteresis
        self.minimumEvents = minimumEvents
    }

    /// Whether every value is in its range.
    public var isValid: Bool {
        guard (0...255).contains(hysteresis), (0...65535).contains(minimumEvents), (0...254).contains(low),
            low + hysteresis <= 255, low - hysteresis >= 0
        else { return false }
        guard let high else { return true }
        return (low...254).contains(high) && high + hysteresis <= 255 && low + hysteresis <= high - hysteresis
    }
}

extension LESetPathLossReportingParameters {
    /// - Parameter thresholds: valid thresholds.
    init(_ handle: ConnectionHandle, _ thresholds: PathLossThresholds) {
        let hysteresis = UInt8(clamping: thresholds.hysteresis)
        self.init(
            connectionHandle: handle,
            highThreshold: thresholds.high.map { UInt8(clamping: $0) } ?? 0xFF,
            highHysteresis: thresholds.high == nil ? 0 : hysteresis,
            lowThreshold: UInt8(clamping: thresholds.low),
            lowHysteresis: hysteresis,
            minTimeSpent: UInt16(clamping: thresholds.minimumEvents)
        )
    }
}
