/// The fields of each periodic advertising PDU besides data.
public struct PeriodicAdvertisingProperties: OptionSet, Hashable, Sendable {
    public let rawValue: UInt16
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// Each PDU contains the transmit power.
    public static let includeTXPower = PeriodicAdvertisingProperties(rawValue: 1 << 6)
}

/// Whether periodic advertising runs, and whether its PDUs have the ADI field.
public struct PeriodicAdvertisingEnable: OptionSet, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Periodic advertising runs while its advertising set does.
    public static let enabled = PeriodicAdvertisingEnable(rawValue: 1 << 0)
    /// The PDUs have the ADI field, which changes with the data.
    public static let includeADI = PeriodicAdvertisingEnable(rawValue: 1 << 1)
}

/// How ``LEPeriodicAdvertisingCreateSync`` finds the advertiser and reports it.
public struct PeriodicSyncOptions: OptionSet, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The periodic advertiser list selects the advertiser; otherwise the command does.
    public static let usePeriodicAdvertiserList = PeriodicSyncOptions(rawValue: 1 << 0)
    /// No reports are sent until the host enables them.
    public static let reportingInitiallyDisabled = PeriodicSyncOptions(rawValue: 1 << 1)
    /// Data that is repeated unchanged is not reported again. This needs the ADI field.
    public static let duplicateFilteringInitiallyEnabled = PeriodicSyncOptions(rawValue: 1 << 2)
}
