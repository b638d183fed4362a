/// The events of the first page that a controller sends (Vol 4, Part E, 7.3.1).
///
/// Only the events that an LE host receives have names; the bits of the others can be set by value.
public struct EventMask: OptionSet, Hashable, Sendable {
    public let rawValue: UInt64
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    public static let disconnectionComplete = EventMask(rawValue: 1 << 4)
    public static let encryptionChange = EventMask(rawValue: 1 << 7)
    public static let readRemoteVersionInformationComplete = EventMask(rawValue: 1 << 11)
    public static let hardwareError = EventMask(rawValue: 1 << 15)
    public static let dataBufferOverflow = EventMask(rawValue: 1 << 25)
    public static let encryptionKeyRefreshComplete = EventMask(rawValue: 1 << 47)
    public static let leMeta = EventMask(rawValue: 1 << 61)

    /// The mask after a reset. It lacks ``leMeta``.
    public static let `default` = EventMask(rawValue: 0x0000_1FFF_FFFF_FFFF)
}

/// The events of the second page that a controller sends (Vol 4, Part E, 7.3.69). None after a reset.
public struct EventMaskPage2: OptionSet, Hashable, Sendable {
    public let rawValue: UInt64
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    public static let numberOfCompletedDataBlocks = EventMaskPage2(rawValue: 1 << 8)
    public static let authenticatedPayloadTimeoutExpired = EventMaskPage2(rawValue: 1 << 23)
    public static let encryptionChangeV2 = EventMaskPage2(rawValue: 1 << 25)
}

/// The LE Meta events that a controller sends (Vol 4, Part E, 7.8.1).
public struct LEEventMask: OptionSet, Hashable, Sendable {
    public let rawValue: UInt64
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    public static let connectionComplete = LEEventMask(rawValue: 1 << 0)
    public static let advertisingReport = LEEventMask(rawValue: 1 << 1)
    public static let connectionUpdateComplete = LEEventMask(rawValue: 1 << 2)
    public static let readRemoteFeaturesComplete = LEEventMask(rawValue: 1 << 3)
    public static let longTermKeyRequest = LEEventMask(rawValue: 1 << 4)
    public static let remoteConnectionParameterRequest = LEEventMask(rawValue: 1 << 5)
    public static let dataLengthChange = LEEventMask(rawValue: 1 << 6)
    public static let readLocalP256PublicKeyComplete = LEEventMask(rawValue: 1 << 7)
    public static let generateDHKeyComplete = LEEventMask(rawValue: 1 << 8)
    public static let enhancedConnectionComplete = LEEventMask(rawValue: 1 << 9)
    public static let directedAdvertisingReport = LEEventMask(rawValue: 1 << 10)
    public static let phyUpdateComplete = LEEventMask(rawValue: 1 << 11)
    public static let extendedAdvertisingReport = LEEventMask(rawValue: 1 << 12)
    public static let periodicAdvertisingSyncEstablished = LEEventMask(rawValue: 1 << 13)
    public static let periodicAdvertisingReport = LEEventMask(rawValue: 1 << 14)
    public static let periodicAdvertisingSyncLost = LEEventMask(rawValue: 1 << 15)
    public static let scanTimeout = LEEventMask(rawValue: 1 << 16)
    public static let advertisingSetTerminated = LEEventMask(rawValue: 1 << 17)
    public static let scanRequestReceived = LEEventMask(rawValue: 1 << 18)
    public static let channelSelectionAlgorithm = LEEventMask(rawValue: 1 << 19)
    public static let connectionlessIQReport = LEEventMask(rawValue: 1 << 20)
    public static let connectionIQReport = LEEventMask(rawValue: 1 << 21)
    public static let cteRequestFailed = LEEventMask(rawValue: 1 << 22)
    public static let periodicAdvertisingSyncTransferReceived = LEEventMask(rawValue: 1 << 23)
    public static let cisEstablished = LEEventMask(rawValue: 1 << 24)
    public static let cisRequest = LEEventMask(rawValue: 1 << 25)
    public static let createBIGComplete = LEEventMask(rawValue: 1 << 26)
    public static let terminateBIGComplete = LEEventMask(rawValue: 1 << 27)
    public static let bigSyncEstablished = LEEventMask(rawValue: 1 << 28)
    public static let bigSyncLost = LEEventMask(rawValue: 1 << 29)
    public static let requestPeerSCAComplete = LEEventMask(rawValue: 1 << 30)
    public static let pathLossThreshold = LEEventMask(rawValue: 1 << 31)
    public static let transmitPowerReporting = LEEventMask(rawValue: 1 << 32)
    public static let bigInfoAdvertisingReport = LEEventMask(rawValue: 1 << 33)
    public static let subrateChange = LEEventMask(rawValue: 1 << 34)
    public static let periodicAdvertisingSyncEstablishedV2 = LEEventMask(rawValue: 1 << 35)
    public static let periodicAdvertisingReportV2 = LEEventMask(rawValue: 1 << 36)
    public static let periodicAdvertisingSyncTransferReceivedV2 = LEEventMask(rawValue: 1 << 37)
    public static let periodicAdvertisingSubeventDataRequest = LEEventMask(rawValue: 1 << 38)
    public static let periodicAdvertisingResponseReport = LEEventMask(rawValue: 1 << 39)
    public static let enhancedConnectionCompleteV2 = LEEventMask(rawValue: 1 << 40)

    /// The mask after a reset: the five events of Bluetooth 4.0.
    public static let `default` = LEEventMask(rawValue: 0x1F)
}
