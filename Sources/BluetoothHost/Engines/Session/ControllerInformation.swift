import BLEHCI
import BluetoothTypes

/// The properties of a controller, as it reported them at bring-up.
public struct ControllerInformation: Sendable, Equatable {
    /// The public device address; nil where the controller has none.
    public internal(set) var publicAddress: DeviceAddress?
    /// The address that the host uses as its own: the public one, or a random static one.
    public internal(set) var identityAddress: DeviceAddress
    /// The HCI version by its assigned number: 0x06 is 4.0, 0x0D is 5.4.
    public internal(set) var hciVersion: UInt8 = 0
    /// The HCI subversion, assigned by the manufacturer.
    public internal(set) var hciSubversion: UInt16 = 0
    /// The Link Layer version by its assigned number.
    public internal(set) var lmpVersion: UInt8 = 0
    /// The Link Layer subversion, assigned by the manufacturer.
    public internal(set) var lmpSubversion: UInt16 = 0
    /// The manufacturer of the controller.
    public internal(set) var manufacturer: CompanyIdentifier
    /// The features that the Link Layer supports (Vol 6, Part B, 4.6).
    public internal(set) var features: LEFeatures = []
    /// The commands that the controller supports (Vol 4, Part E, 6.27).
    public internal(set) var commands: SupportedCommands
    /// The combinations of states that the Link Layer supports (Vol 4, Part E, 7.8.27).
    public internal(set) var supportedStates: UInt64 = 0
    /// The longest data of an ACL packet to the controller, in bytes.
    public internal(set) var aclDataLength = 27
    /// The number of ACL packets that the controller can hold.
    public internal(set) var aclPacketCount = 1
    /// The longest data of an ISO packet to the controller, in bytes; 0 if it has no ISO buffers.
    public internal(set) var isoDataLength = 0
    /// The number of ISO packets that the controller can hold.
    public internal(set) var isoPacketCount = 0
    /// Whether the LE links share the buffers of BR/EDR.
    public internal(set) var sharesClassicBuffers = false
    /// Whether extended advertising, scanning and initiating are used rather than the legacy commands; never both.
    public internal(set) var usesExtendedCommands = false
    /// Maximum number of simultaneous advertisements: 1 for legacy advertising, and if the controller does not say how
    /// many; up to 240 for extended.
    public internal(set) var numberOfAdvertisingSets = 1
    /// The longest advertising data in bytes: 31 for legacy advertising, up to 1650 for extended. If the controller
    /// does not say how long, this is 1650, and the controller itself refuses longer data.
    public internal(set) var maximumAdvertisingDataLength = 31
    /// Maximum number of devices on the filter accept list.
    public internal(set) var filterAcceptListSize = 0
    /// Maximum number of devices on the resolving list; 0 if the controller does not resolve addresses.
    public internal(set) var resolvingListSize = 0
    /// The longest Link Layer payload that can be sent, in bytes.
    public internal(set) var maximumTransmitOctets: UInt16 = 27
    /// The duration of the longest Link Layer packet that can be sent, in microseconds.
    public internal(set) var maximumTransmitTime: UInt16 = 328
    /// The LE events that the controller has been told to report (Vol 4, Part E, 7.8.1). Only ``ControllerSession``
    /// changes them.
    var leEvents: LEEventMask = []

    /// The features of the host that the controller has been told of (Vol 4, Part E, 7.8.115).
    var enabledHostFeatures: LEFeatures = []

    /// The features of the host that its configuration enables.
    var wantedHostFeatures: LEFeatures = []

    /// Whether the controller has ISO buffers, and one holds at least a byte after the fields before the data.
    private var hasISOBuffers: Bool { isoPacketCount > 0 && isoDataLength > IsochronousSender.maximumHeaderLength }

    /// Whether this host and the controller support connected isochronous streams in a role.
    func canUseConnectedStreams(asCentral: Bool) -> Bool {
        enabledHostFeatures.contains(.connectedIsochronousStreamHostSupport) && hasISOBuffers
            && features.contains(
                asCentral ? .connectedIsochronousStreamCentral : .connectedIsochronousStreamPeripheral
            )
            && commands.contains(LESetupISODataPath.self)
    }

    /// Whether the controller can send broadcast isochronous groups.
    var canBroadcastStreams: Bool {
        features.contains(.isochronousBroadcaster) && hasISOBuffers && canAdvertisePeriodically
            && commands.contains(LECreateBIG.self) && commands.contains(LESetupISODataPath.self)
    }

    /// Whether the controller can receive broadcast isochronous groups.
    var canReceiveBroadcastStreams: Bool {
        features.contains(.synchronizedReceiver) && canSynchronize && commands.contains(LEBIGCreateSync.self)
            && commands.contains(LESetupISODataPath.self)
    }

    /// Each feature of a host, with the feature of the controller that it needs.
    private static let neededFeatures: [(host: LEFeatures, needed: LEFeatures)] = [
        (.connectionSubratingHostSupport, .connectionSubrating),
        (.advertisingCodingSelectionHostSupport, .advertisingCodingSelection),
        (.channelSoundingHostSupport, .channelSounding),
        (.connectedIsochronousStreamHostSupport, .connectedIsochronousStreamCentral),
        (.connectedIsochronousStreamHostSupport, .connectedIsochronousStreamPeripheral),
    ]

    /// The host features that are set in the controller at bring-up. A controller refuses them while it has a
    /// connection, so they cannot be set later.
    var hostFeatures: LEFeatures {
        let usable = ControllerInformation.neededFeatures.filter { features.isSuperset(of: $0.needed) }
        return LEFeatures(usable.map(\.host)).intersection(wantedHostFeatures)
    }

    /// Whether the Link Layer supports the combination of states with this bit in LE_States.
    func supportsState(bit: Int) -> Bool {
        supportedStates >> UInt64(bit) & 1 == 1
    }

    /// Whether the controller can scan and initiate on the LE Coded PHY.
    var canUseCodedPHY: Bool { usesExtendedCommands && features.contains(.leCodedPHY) }

    /// The LE events that the controller reports after its bring-up. Those of other features are enabled when a feature
    /// is first used.
    var initialLEEvents: LEEventMask {
        var mask: LEEventMask = [
            .connectionComplete, .advertisingReport, .connectionUpdateComplete, .readRemoteFeaturesComplete,
            .longTermKeyRequest,
        ]
        if features.contains(.connectionParametersRequestProcedure) { mask.insert(.remoteConnectionParameterRequest) }
        if features.contains(.dataPacketLengthExtension) { mask.insert(.dataLengthChange) }
        if features.contains(.llPrivacy) { mask.insert([.enhancedConnectionComplete, .directedAdvertisingReport]) }
        if features.contains(.le2MPHY) || features.contains(.leCodedPHY) { mask.insert(.phyUpdateComplete) }
        if usesExtendedCommands {
            mask.insert([
                .enhancedConnectionComplete, .extendedAdvertisingReport, .scanTimeout, .advertisingSetTerminated,
            ])
        }
        if features.contains(.channelSelectionAlgorithm2) { mask.insert(.channelSelectionAlgorithm) }
        // A peer may change the subrate of any link.
        if hostFeatures.contains(.connectionSubratingHostSupport) { mask.insert(.subrateChange) }
        return mask
    }

    /// Whether the controller can change the subrate of connections, and this host has enabled that.
    var canSubrate: Bool {
        enabledHostFeatures.contains(.connectionSubratingHostSupport) && commands.contains(LESubrateRequest.self)
    }

    /// Whether the coding of advertising on the LE Coded PHY can be chosen, and this host has enabled that.
    var canSelectAdvertisingCoding: Bool {
        enabledHostFeatures.contains(.advertisingCodingSelectionHostSupport)
            && commands.contains(LESetExtendedAdvertisingParametersV2.self)
    }

    /// Whether the controller can receive the synchronizations that connected devices transfer.
    var canReceiveTransfers: Bool {
        features.contains(.periodicAdvertisingSyncTransferRecipient)
            && commands.contains(LESetDefaultPeriodicAdvertisingSyncTransferParameters.self)
            && commands.contains(LESetPeriodicAdvertisingSyncTransferParameters.self)
    }

    /// Whether the controller can transfer synchronizations to connected devices.
    var canTransferSynchronizations: Bool {
        features.contains(.periodicAdvertisingSyncTransferSender)
            && commands.contains(LEPeriodicAdvertisingSyncTransfer.self)
    }

    /// Whether the controller can transfer its own trains to connected devices.
    var canTransferTrains: Bool {
        features.contains(.periodicAdvertisingSyncTransferSender)
            && commands.contains(LEPeriodicAdvertisingSetInfoTransfer.self)
    }

    /// Whether the controller can receive periodic advertising trains.
    var canSynchronize: Bool {
        usesExtendedCommands && commands.contains(LEPeriodicAdvertisingCreateSync.self)
    }

    /// Whether the controller can create a synchronization with any train of a list.
    var canUsePeriodicAdvertiserList: Bool {
        commands.contains(LEAddDeviceToPeriodicAdvertiserList.self)
            && commands.contains(LEClearPeriodicAdvertiserList.self)
    }

    /// Whether the controller can send periodic advertising trains.
    var canAdvertisePeriodically: Bool {
        usesExtendedCommands && commands.contains(LESetPeriodicAdvertisingEnable.self)
    }

    /// Whether the controller can send trains with subevents, and receive the responses.
    var canAdvertiseWithResponses: Bool {
        canAdvertisePeriodically && features.contains(.periodicAdvertisingWithResponsesAdvertiser)
            && commands.contains(LESetPeriodicAdvertisingParametersV2.self)
            && commands.contains(LESetPeriodicAdvertisingSubeventData.self)
    }

    /// Whether the controller can receive trains with subevents, and respond to them.
    var canRespondToTrains: Bool {
        canSynchronize && features.contains(.periodicAdvertisingWithResponsesScanner)
            && commands.contains(LESetPeriodicSyncSubevent.self)
            && commands.contains(LESetPeriodicAdvertisingResponseData.self)
    }

    /// Whether the controller can scan while it initiates a connection.
    func canScanWhileInitiating(actively: Bool) -> Bool {
        supportsState(bit: actively ? 23 : 22)
    }
}
