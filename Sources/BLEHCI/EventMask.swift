/// The events of the first page that a controller sends (Vol 4, Part E, 7.3.1).
///
/// Only the events that an LE host receives have names; the bits of the others can be set by value.
public struct EventMask: OptionSet, Hashable, Sendable {
    public let rawValue: UInt64
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// ``DisconnectionComplete``: a connection has ended.
    public static let disconnectionComplete = EventMask(rawValue: 1 << 4)
    /// ``EncryptionChange``: encryption was switched on or off, or that failed.
    public static let encryptionChange = EventMask(rawValue: 1 << 7)
    /// ``ReadRemoteVersionInformationComplete``: the peer's version was read.
    public static let readRemoteVersionInformationComplete = EventMask(rawValue: 1 << 11)
    /// ``HardwareError``: the controller's hardware has failed.
    public static let hardwareError = EventMask(rawValue: 1 << 15)
    /// ``DataBufferOverflow``: the host sent more data than the controller has buffers for.
    public static let dataBufferOverflow = EventMask(rawValue: 1 << 25)
    /// ``EncryptionKeyRefreshComplete``: the key of an encrypted link was replaced.
    public static let encryptionKeyRefreshComplete = EventMask(rawValue: 1 << 47)
    /// All LE Meta events. ``LEEventMask`` selects among them.
    public static let leMeta = EventMask(rawValue: 1 << 61)

    /// The mask after a reset. It lacks ``leMeta``.
    public static let `default` = EventMask(rawValue: 0x0000_1FFF_FFFF_FFFF)
}

/// The events of the second page that a controller sends (Vol 4, Part E, 7.3.69). None after a reset.
public struct EventMaskPage2: OptionSet, Hashable, Sendable {
    public let rawValue: UInt64
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// Number Of Completed Data Blocks: data blocks have left the controller's buffers (7.7.59).
    public static let numberOfCompletedDataBlocks = EventMaskPage2(rawValue: 1 << 8)
    /// ``AuthenticatedPayloadTimeoutExpired``: no authenticated packet arrived in time.
    public static let authenticatedPayloadTimeoutExpired = EventMaskPage2(rawValue: 1 << 23)
    /// ``EncryptionChangeV2``: as ``EventMask/encryptionChange``, with the key size.
    public static let encryptionChangeV2 = EventMaskPage2(rawValue: 1 << 25)
}

/// The LE Meta events that a controller sends (Vol 4, Part E, 7.8.1).
public struct LEEventMask: OptionSet, Hashable, Sendable {
    public let rawValue: UInt64
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// ``LEConnectionComplete``: a connection was created, or that failed. Not sent if ``enhancedConnectionComplete``
    /// is set.
    public static let connectionComplete = LEEventMask(rawValue: 1 << 0)
    /// ``LEAdvertisingReport``: legacy advertising was received.
    public static let advertisingReport = LEEventMask(rawValue: 1 << 1)
    /// ``LEConnectionUpdateComplete``: connection parameters have changed, or that failed.
    public static let connectionUpdateComplete = LEEventMask(rawValue: 1 << 2)
    /// ``LEReadRemoteFeaturesComplete``: the peer's features were read.
    public static let readRemoteFeaturesComplete = LEEventMask(rawValue: 1 << 3)
    /// ``LELongTermKeyRequest``: the central starts encryption, and the host must give the key.
    public static let longTermKeyRequest = LEEventMask(rawValue: 1 << 4)
    /// ``LERemoteConnectionParameterRequest``: the peer requests other connection parameters.
    public static let remoteConnectionParameterRequest = LEEventMask(rawValue: 1 << 5)
    /// ``LEDataLengthChange``: the maximum length of packets has changed.
    public static let dataLengthChange = LEEventMask(rawValue: 1 << 6)
    /// ``LEReadLocalP256PublicKeyComplete``: the controller has a new P-256 key pair.
    public static let readLocalP256PublicKeyComplete = LEEventMask(rawValue: 1 << 7)
    /// ``LEGenerateDHKeyComplete``: the controller has computed a Diffie-Hellman key.
    public static let generateDHKeyComplete = LEEventMask(rawValue: 1 << 8)
    /// ``LEEnhancedConnectionComplete``: as ``connectionComplete``, with the private addresses.
    public static let enhancedConnectionComplete = LEEventMask(rawValue: 1 << 9)
    /// ``LEDirectedAdvertisingReport``: advertising directed to a resolvable private address was received.
    public static let directedAdvertisingReport = LEEventMask(rawValue: 1 << 10)
    /// ``LEPHYUpdateComplete``: the PHYs of a connection have changed, or that failed.
    public static let phyUpdateComplete = LEEventMask(rawValue: 1 << 11)
    /// ``LEExtendedAdvertisingReport``: advertising was received by extended scanning.
    public static let extendedAdvertisingReport = LEEventMask(rawValue: 1 << 12)
    /// ``LEPeriodicAdvertisingSyncEstablished``: the controller receives periodic advertising, or that failed.
    public static let periodicAdvertisingSyncEstablished = LEEventMask(rawValue: 1 << 13)
    /// ``LEPeriodicAdvertisingReport``: periodic advertising data was received.
    public static let periodicAdvertisingReport = LEEventMask(rawValue: 1 << 14)
    /// ``LEPeriodicAdvertisingSyncLost``: periodic advertising is no longer received.
    public static let periodicAdvertisingSyncLost = LEEventMask(rawValue: 1 << 15)
    /// ``LEScanTimeout``: a scan with a limited duration has ended.
    public static let scanTimeout = LEEventMask(rawValue: 1 << 16)
    /// ``LEAdvertisingSetTerminated``: an advertising set has stopped.
    public static let advertisingSetTerminated = LEEventMask(rawValue: 1 << 17)
    /// ``LEScanRequestReceived``: a device has requested the scan response of an advertising set.
    public static let scanRequestReceived = LEEventMask(rawValue: 1 << 18)
    /// ``LEChannelSelectionAlgorithm``: which algorithm selects the channels of a new connection.
    public static let channelSelectionAlgorithm = LEEventMask(rawValue: 1 << 19)
    /// LE Connectionless IQ Report: IQ samples of periodic advertising (7.7.65.21).
    public static let connectionlessIQReport = LEEventMask(rawValue: 1 << 20)
    /// LE Connection IQ Report: IQ samples of a connection (7.7.65.22).
    public static let connectionIQReport = LEEventMask(rawValue: 1 << 21)
    /// LE CTE Request Failed: the peer did not send the requested constant tone extension (7.7.65.23).
    public static let cteRequestFailed = LEEventMask(rawValue: 1 << 22)
    /// ``LEPeriodicAdvertisingSyncTransferReceived``: a peer has transferred a synchronization, or that failed.
    public static let periodicAdvertisingSyncTransferReceived = LEEventMask(rawValue: 1 << 23)
    /// ``LECISEstablished``: a connected isochronous stream was established, or that failed (7.7.65.25).
    public static let cisEstablished = LEEventMask(rawValue: 1 << 24)
    /// LE CIS Request: the central requests a connected isochronous stream (7.7.65.26).
    public static let cisRequest = LEEventMask(rawValue: 1 << 25)
    /// LE Create BIG Complete: a broadcast isochronous group was created, or that failed (7.7.65.27).
    public static let createBIGComplete = LEEventMask(rawValue: 1 << 26)
    /// LE Terminate BIG Complete: this device no longer sends a broadcast isochronous group (7.7.65.28).
    public static let terminateBIGComplete = LEEventMask(rawValue: 1 << 27)
    /// LE BIG Sync Established: the controller receives a broadcast isochronous group, or that failed (7.7.65.29).
    public static let bigSyncEstablished = LEEventMask(rawValue: 1 << 28)
    /// LE BIG Sync Lost: a broadcast isochronous group is no longer received (7.7.65.30).
    public static let bigSyncLost = LEEventMask(rawValue: 1 << 29)
    /// LE Request Peer SCA Complete: the accuracy of the peer's sleep clock was read (7.7.65.31).
    public static let requestPeerSCAComplete = LEEventMask(rawValue: 1 << 30)
    /// LE Path Loss Threshold: the path loss of a connection has entered another zone (7.7.65.32).
    public static let pathLossThreshold = LEEventMask(rawValue: 1 << 31)
    /// LE Transmit Power Reporting: a transmit power was read or has changed (7.7.65.33).
    public static let transmitPowerReporting = LEEventMask(rawValue: 1 << 32)
    /// LE BIGInfo Advertising Report: periodic advertising announces a broadcast isochronous group (7.7.65.34).
    public static let bigInfoAdvertisingReport = LEEventMask(rawValue: 1 << 33)
    /// ``LESubrateChange``: the subrate of a connection has changed, or that failed.
    public static let subrateChange = LEEventMask(rawValue: 1 << 34)
    /// LE Periodic Advertising Sync Established, version 2, with the parameters for responses (7.7.65.14).
    public static let periodicAdvertisingSyncEstablishedV2 = LEEventMask(rawValue: 1 << 35)
    /// LE Periodic Advertising Report, version 2, with the event counter and the subevent (7.7.65.15).
    public static let periodicAdvertisingReportV2 = LEEventMask(rawValue: 1 << 36)
    /// LE Periodic Advertising Sync Transfer Received, version 2, with the parameters for responses (7.7.65.24).
    public static let periodicAdvertisingSyncTransferReceivedV2 = LEEventMask(rawValue: 1 << 37)
    /// LE Periodic Advertising Subevent Data Request: the controller needs data for further subevents (7.7.65.36).
    public static let periodicAdvertisingSubeventDataRequest = LEEventMask(rawValue: 1 << 38)
    /// LE Periodic Advertising Response Report: responses to periodic advertising were received (7.7.65.37).
    public static let periodicAdvertisingResponseReport = LEEventMask(rawValue: 1 << 39)
    /// ``LEEnhancedConnectionCompleteV2``: as ``enhancedConnectionComplete``, with the periodic advertising that led to
    /// the connection.
    public static let enhancedConnectionCompleteV2 = LEEventMask(rawValue: 1 << 40)
    /// ``LECISEstablishedV2``: as ``cisEstablished``, with the SDUs of both sides. The older version is then not sent.
    public static let cisEstablishedV2 = LEEventMask(rawValue: 1 << 41)
    /// ``LEReadAllRemoteFeaturesComplete``: several pages of the peer's features were read.
    public static let readAllRemoteFeaturesComplete = LEEventMask(rawValue: 1 << 42)
    /// The events of Channel Sounding: LE CS Read Remote Supported Capabilities Complete to LE CS Subevent Result
    /// Continue (7.7.65.39 to 7.7.65.45).
    public static let channelSounding = LEEventMask(rawValue: 0x7F << 43)
    /// ``LECSTestEndComplete``: a test of Channel Sounding has ended.
    public static let csTestEndComplete = LEEventMask(rawValue: 1 << 50)
    /// ``LEMonitoredAdvertisersReport``: the signal strength of a monitored advertiser has crossed a threshold.
    public static let monitoredAdvertisersReport = LEEventMask(rawValue: 1 << 51)
    /// ``LEFrameSpaceUpdateComplete``: the frame space of a connection has changed, or that failed.
    public static let frameSpaceUpdateComplete = LEEventMask(rawValue: 1 << 52)

    /// The mask after a reset: the five events of Bluetooth 4.0.
    public static let `default` = LEEventMask(rawValue: 0x1F)
}
