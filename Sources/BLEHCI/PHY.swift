/// A physical layer of LE (Vol 6, Part B, 2).
public struct PHY: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt8

    @inlinable
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// In an advertising report: there are no packets on the secondary channels.
    public static let none = PHY(rawValue: 0x00)
    /// LE 1M: 1 Mbit/s. Every LE device has it.
    public static let le1M = PHY(rawValue: 0x01)
    /// LE 2M: 2 Mbit/s, for secondary advertising channels and connections.
    public static let le2M = PHY(rawValue: 0x02)
    /// LE Coded: 125 or 500 kbit/s, with a longer range.
    public static let leCoded = PHY(rawValue: 0x03)
    /// LE Coded with S=2 coding. Only power control (Vol 4, Part E, 7.8.117) and advertising reports of a host with
    /// Advertising Coding Selection (7.7.65.13) name the coding. There, ``leCoded`` means S=8.
    public static let leCodedS2 = PHY(rawValue: 0x04)
}

extension PHY: CustomStringConvertible {
    public var description: String {
        switch rawValue {
        case 0x00: "none"
        case 0x01: "LE 1M"
        case 0x02: "LE 2M"
        case 0x03: "LE Coded"
        case 0x04: "LE Coded S=2"
        default: "PHY \(rawValue)"
        }
    }
}

/// A set of physical layers, as in commands (Vol 4, Part E, 7.8.48).
public struct PHYSet: OptionSet, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// LE 1M.
    public static let le1M = PHYSet(rawValue: 1 << 0)
    /// LE 2M.
    public static let le2M = PHYSet(rawValue: 1 << 1)
    /// LE Coded, with either coding.
    public static let leCoded = PHYSet(rawValue: 1 << 2)
}

/// The directions in which the host has no preference for a PHY: the parameter ALL_PHYS (Vol 4, Part E, 7.8.48).
public struct PHYPreference: OptionSet, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The host has no preference for sending; the command's TX_PHYS is then ignored.
    public static let anyTransmitter = PHYPreference(rawValue: 1 << 0)
    /// The host has no preference for receiving; the command's RX_PHYS is then ignored.
    public static let anyReceiver = PHYPreference(rawValue: 1 << 1)
}

/// The coding that the host prefers when sending on the LE Coded PHY (Vol 4, Part E, 7.8.49).
public struct PHYOptions: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt16
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// The controller chooses the coding.
    public static let noPreference = PHYOptions(rawValue: 0)
    /// S=2: 500 kbit/s.
    public static let preferS2Coding = PHYOptions(rawValue: 1)
    /// S=8: 125 kbit/s, with the longest range.
    public static let preferS8Coding = PHYOptions(rawValue: 2)
}

/// The coding of advertising on the LE Coded PHY (Vol 4, Part E, 7.8.53).
public struct AdvertisingPHYOptions: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The controller chooses the coding.
    public static let noPreference = AdvertisingPHYOptions(rawValue: 0x00)
    /// S=2 if the controller can choose it: 500 kbit/s.
    public static let preferS2Coding = AdvertisingPHYOptions(rawValue: 0x01)
    /// S=8 if the controller can choose it: 125 kbit/s, with the longest range.
    public static let preferS8Coding = AdvertisingPHYOptions(rawValue: 0x02)
    /// S=2; the controller refuses the command if it cannot choose it.
    public static let requireS2Coding = AdvertisingPHYOptions(rawValue: 0x03)
    /// S=8; the controller refuses the command if it cannot choose it.
    public static let requireS8Coding = AdvertisingPHYOptions(rawValue: 0x04)
}
