import BLEHCI
import BluetoothTypes

/// The transmit power of one end of a link, and what its host wants to know of powers and path loss.
struct PowerControl {
    /// The power of this end, in dBm.
    var power: Int8
    /// The power that the peer reported last.
    var peer: (power: Int8, limits: TransmitPowerLevelLimits)?
    var reportsLocal = false
    var reportsRemote = false
    /// Whether the peer has asked for the power, and so is informed of changes.
    var isWatchedByPeer = false
    var pathLoss = PathLossMonitor()
}

/// The path loss zones of one link, as its host has set them (Vol 6, Part B, 4.5.16).
struct PathLossMonitor {
    /// The thresholds; nil until the host has set them.
    var parameters: LESetPathLossReportingParameters?
    var isEnabled = false
    /// The zone that the host was informed of last.
    var reported: PathLossZone?
    /// The zone that is reported when it has lasted long enough.
    var candidate: PathLossZone?
    /// Fires when ``candidate`` has lasted long enough.
    let timer = Air.Timer()

    /// The zone of a path loss, with the hysteresis around the zone that was reported last.
    func zone(of loss: Int) -> PathLossZone {
        guard let parameters else { return .middle }
        let low = Int(parameters.lowThreshold)
        let high = parameters.highThreshold == 0xFF ? Int.max / 2 : Int(parameters.highThreshold)
        let (lowHysteresis, highHysteresis) = (Int(parameters.lowHysteresis), Int(parameters.highHysteresis))
        switch reported {
        case .low?:
            if loss >= high + highHysteresis { return .high }
            return loss >= low + lowHysteresis ? .middle : .low
        case .high?:
            if loss <= low - lowHysteresis { return .low }
            return loss <= high - highHysteresis ? .middle : .high
        case .middle?:
            if loss >= high + highHysteresis { return .high }
            return loss <= low - lowHysteresis ? .low : .middle
        default:
            if loss >= high { return .high }
            return loss < low ? .low : .middle
        }
    }
}

extension LESetPathLossReportingParameters {
    /// Whether the thresholds are in order (Vol 4, Part E, 7.8.119).
    var areValid: Bool {
        guard Int(lowThreshold) - Int(lowHysteresis) >= 0 else { return false }
        guard highThreshold != 0xFF else { return true }
        return Int(highThreshold) + Int(highHysteresis) <= 0xFF
            && Int(lowThreshold) + Int(lowHysteresis) <= Int(highThreshold) - Int(highHysteresis)
    }
}
