import BLEHCI
import BluetoothTypes

/// The PHYs of an advertisement with extended PDUs, and the coding of the LE Coded PHY (Vol 4, Part E, 7.8.53).
///
/// S=8 coding has the longest range, S=2 coding takes less time on air. Only controllers with Advertising Coding
/// Selection let the host choose.
public struct AdvertisingPHYs: Sendable, Hashable {
    /// The PHY of the primary channels: LE 1M or LE Coded.
    public var primary: PHY
    /// The PHY of the secondary channels, which carry the data and on which a connection is made.
    public var secondary: PHY
    /// The coding of the primary channels, if they use LE Coded.
    public var primaryCoding: AdvertisingPHYOptions
    /// The coding of the secondary channels, if they use LE Coded.
    public var secondaryCoding: AdvertisingPHYOptions

    public init(
        primary: PHY = .le1M,
        secondary: PHY = .le1M,
        primaryCoding: AdvertisingPHYOptions = .noPreference,
        secondaryCoding: AdvertisingPHYOptions = .noPreference
    ) {
        self.primary = primary
        self.secondary = secondary
        self.primaryCoding = primaryCoding
        self.secondaryCoding = secondaryCoding
    }

    /// The LE Coded PHY on all channels.
    ///
    /// - Parameter coding: its coding.
    public static func coded(_ coding: AdvertisingPHYOptions = .noPreference) -> AdvertisingPHYs {
        AdvertisingPHYs(primary: .leCoded, secondary: .leCoded, primaryCoding: coding, secondaryCoding: coding)
    }

    /// Whether the host chooses a coding, which needs the second version of the command.
    var choosesCoding: Bool { primaryCoding != .noPreference || secondaryCoding != .noPreference }

    /// Checks what the caller has chosen.
    ///
    /// - Throws: ``HostError/invalidArgument(_:)`` or ``HostError/notSupported(_:)`` if this controller cannot
    ///   advertise it.
    func check(
        in advertisement: AdvertisementConfiguration,
        against information: ControllerInformation
    ) throws(HostError) {
        guard self != AdvertisingPHYs() else { return }
        guard primary == .le1M || primary == .leCoded, [.le1M, .le2M, .leCoded].contains(secondary) else {
            throw .invalidArgument(
                "an advertisement has LE 1M or LE Coded as its primary PHY, and LE 1M, LE 2M or LE Coded as its secondary"
                    + " PHY, not \(primary) and \(secondary)"
            )
        }
        guard primaryCoding == .noPreference || primary == .leCoded,
            secondaryCoding == .noPreference || secondary == .leCoded
        else { throw .invalidArgument("only the LE Coded PHY has a coding") }
        guard primaryCoding.rawValue <= 4, secondaryCoding.rawValue <= 4 else {
            throw .invalidArgument("the coding is one of the values of AdvertisingPHYOptions")
        }
        guard advertisement.usesExtendedPDUs != false else {
            throw .invalidArgument("only an advertisement with extended PDUs has other PHYs than LE 1M")
        }
        guard information.usesExtendedCommands else {
            throw .notSupported("this controller does not advertise with extended PDUs")
        }
        for phy in [primary, secondary] where !information.supports(phy) {
            throw .notSupported("this controller has no \(phy) PHY")
        }
        guard !choosesCoding || information.canSelectAdvertisingCoding else {
            throw .notSupported(
                "the coding of advertising needs a controller with Advertising Coding Selection, and usesAdvertisingCoding"
            )
        }
    }
}

extension ControllerInformation {
    fileprivate func supports(_ phy: PHY) -> Bool {
        switch phy {
        case .le2M: features.contains(.le2MPHY)
        case .leCoded: features.contains(.leCodedPHY)
        default: true
        }
    }
}
