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

/// Whether the controller reports a train that it receives (Vol 4, Part E, 7.8.88).
public struct PeriodicAdvertisingReceiveEnable: OptionSet, Hashable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The data of the train is reported.
    public static let reporting = PeriodicAdvertisingReceiveEnable(rawValue: 1 << 0)
    /// Data that is repeated unchanged is not reported again. This needs the ADI field.
    public static let duplicateFiltering = PeriodicAdvertisingReceiveEnable(rawValue: 1 << 1)
}

/// What a controller does with a synchronization that a connected device transfers (Vol 4, Part E, 7.8.91).
public enum PeriodicAdvertisingSyncTransferMode: UInt8, Sendable {
    /// The controller ignores it.
    case ignore = 0x00
    /// The controller synchronizes and reports that, but not the data of the train.
    case reportingDisabled = 0x01
    /// The controller synchronizes, and reports the data too.
    case reportingEnabled = 0x02
    /// As ``reportingEnabled``, but data that is repeated unchanged is not reported again.
    case duplicateFiltering = 0x03
}
