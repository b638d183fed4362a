/// The features of a link layer (Vol 6, Part B, 4.6).
public struct LEFeatures: OptionSet, Hashable, Sendable {
    public let rawValue: UInt64
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// Links can be encrypted.
    public static let encryption = LEFeatures(rawValue: 1 << 0)
    /// Both devices can request other connection parameters by the Link Layer.
    public static let connectionParametersRequestProcedure = LEFeatures(rawValue: 1 << 1)
    /// A procedure is rejected with a PDU that names it.
    public static let extendedRejectIndication = LEFeatures(rawValue: 1 << 2)
    /// The peripheral, too, may begin the exchange of features.
    public static let peripheralInitiatedFeaturesExchange = LEFeatures(rawValue: 1 << 3)
    /// LE Ping: an authenticated packet can be requested, for ``AuthenticatedPayloadTimeoutExpired``.
    public static let ping = LEFeatures(rawValue: 1 << 4)
    /// Data packets can have more than 27 bytes, up to 251.
    public static let dataPacketLengthExtension = LEFeatures(rawValue: 1 << 5)
    /// The controller resolves and generates resolvable private addresses.
    public static let llPrivacy = LEFeatures(rawValue: 1 << 6)
    /// ``ScanningFilterPolicy/extendedUnfiltered`` and ``ScanningFilterPolicy/extendedFiltered`` are supported.
    public static let extendedScanningFilterPolicies = LEFeatures(rawValue: 1 << 7)
    /// The LE 2M PHY is supported.
    public static let le2MPHY = LEFeatures(rawValue: 1 << 8)
    /// The transmitter has a stable modulation index.
    public static let stableModulationIndexTransmitter = LEFeatures(rawValue: 1 << 9)
    /// The receiver makes use of a transmitter with a stable modulation index.
    public static let stableModulationIndexReceiver = LEFeatures(rawValue: 1 << 10)
    /// The LE Coded PHY is supported.
    public static let leCodedPHY = LEFeatures(rawValue: 1 << 11)
    /// Extended advertising, and scanning and connecting by it, is supported.
    public static let extendedAdvertising = LEFeatures(rawValue: 1 << 12)
    /// Periodic advertising, and synchronizing with it, is supported.
    public static let periodicAdvertising = LEFeatures(rawValue: 1 << 13)
    /// Channel Selection Algorithm #2 is supported.
    public static let channelSelectionAlgorithm2 = LEFeatures(rawValue: 1 << 14)
    /// The transmit power may exceed 10 dBm: power class 1.
    public static let powerClass1 = LEFeatures(rawValue: 1 << 15)
    /// A peer can be asked to use at least a number of channels.
    public static let minimumNumberOfUsedChannelsProcedure = LEFeatures(rawValue: 1 << 16)
    /// The controller can request a constant tone extension (CTE) on a connection.
    public static let connectionCTERequest = LEFeatures(rawValue: 1 << 17)
    /// The controller can respond with a CTE on a connection.
    public static let connectionCTEResponse = LEFeatures(rawValue: 1 << 18)
    /// The controller can send a CTE with periodic advertising.
    public static let connectionlessCTETransmitter = LEFeatures(rawValue: 1 << 19)
    /// The controller can receive a CTE with periodic advertising.
    public static let connectionlessCTEReceiver = LEFeatures(rawValue: 1 << 20)
    /// The controller can switch antennas while it sends a CTE (angle of departure).
    public static let antennaSwitchingDuringCTETransmission = LEFeatures(rawValue: 1 << 21)
    /// The controller can switch antennas while it receives a CTE (angle of arrival).
    public static let antennaSwitchingDuringCTEReception = LEFeatures(rawValue: 1 << 22)
    /// The controller can take IQ samples of a CTE.
    public static let receivingConstantToneExtensions = LEFeatures(rawValue: 1 << 23)
    /// The controller can transfer its synchronization with periodic advertising to a peer.
    public static let periodicAdvertisingSyncTransferSender = LEFeatures(rawValue: 1 << 24)
    /// The controller can take over a peer's synchronization with periodic advertising.
    public static let periodicAdvertisingSyncTransferRecipient = LEFeatures(rawValue: 1 << 25)
    /// The accuracy of the sleep clocks can be read and changed.
    public static let sleepClockAccuracyUpdates = LEFeatures(rawValue: 1 << 26)
    /// The controller checks that a peer's public key is a point on the curve.
    public static let remotePublicKeyValidation = LEFeatures(rawValue: 1 << 27)
    /// Connected isochronous streams are supported as the central.
    public static let connectedIsochronousStreamCentral = LEFeatures(rawValue: 1 << 28)
    /// Connected isochronous streams are supported as the peripheral.
    public static let connectedIsochronousStreamPeripheral = LEFeatures(rawValue: 1 << 29)
    /// Broadcast isochronous streams can be sent.
    public static let isochronousBroadcaster = LEFeatures(rawValue: 1 << 30)
    /// Broadcast isochronous streams can be received.
    public static let synchronizedReceiver = LEFeatures(rawValue: 1 << 31)
    /// The host supports connected isochronous streams. Set by the host.
    public static let connectedIsochronousStreamHostSupport = LEFeatures(rawValue: 1 << 32)
    /// Two bits represent this feature; a controller sets both or neither.
    public static let powerControlRequest = LEFeatures(rawValue: 1 << 33 | 1 << 34)
    /// The controller can watch the path loss of a connection.
    public static let pathLossMonitoring = LEFeatures(rawValue: 1 << 35)
    /// The ADI field of periodic advertising is supported.
    public static let periodicAdvertisingADISupport = LEFeatures(rawValue: 1 << 36)
    /// The controller supports the subrating of connections.
    public static let connectionSubrating = LEFeatures(rawValue: 1 << 37)
    /// The host supports the subrating of connections. Set by the host.
    public static let connectionSubratingHostSupport = LEFeatures(rawValue: 1 << 38)
    /// The peripheral can report which channels are good.
    public static let channelClassification = LEFeatures(rawValue: 1 << 39)
    /// The host can choose the coding (S=2 or S=8) of advertising on the LE Coded PHY.
    public static let advertisingCodingSelection = LEFeatures(rawValue: 1 << 40)
    /// The host supports the choice of the coding of advertising. Set by the host.
    public static let advertisingCodingSelectionHostSupport = LEFeatures(rawValue: 1 << 41)
    /// Advertising can have decision PDUs, and scanning can filter them by decision instructions.
    public static let decisionBasedAdvertisingFiltering = LEFeatures(rawValue: 1 << 42)
    /// Periodic advertising with responses can be sent.
    public static let periodicAdvertisingWithResponsesAdvertiser = LEFeatures(rawValue: 1 << 43)
    /// Periodic advertising with responses can be received and answered.
    public static let periodicAdvertisingWithResponsesScanner = LEFeatures(rawValue: 1 << 44)
    /// ``ISOFraming/framedUnsegmented`` is supported.
    public static let unsegmentedFramedMode = LEFeatures(rawValue: 1 << 45)
    /// Channel Sounding is supported.
    public static let channelSounding = LEFeatures(rawValue: 1 << 46)
    /// The host supports Channel Sounding. Set by the host.
    public static let channelSoundingHostSupport = LEFeatures(rawValue: 1 << 47)
    /// The controller reports the quality of the tones of Channel Sounding.
    public static let channelSoundingToneQualityIndication = LEFeatures(rawValue: 1 << 48)
    /// The features have further pages: see ``LEFeaturePages``.
    public static let llExtendedFeatureSet = LEFeatures(rawValue: 1 << 63)
}

/// The features of page 0 that describe the kind of controller (Vol 2, Part C, 3.3). The others can be read by value.
public struct LMPFeatures: OptionSet, Hashable, Sendable {
    public let rawValue: UInt64
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// The controller has no BR/EDR: it is for LE only.
    public static let brEdrNotSupported = LMPFeatures(rawValue: 1 << 37)
    /// The controller has LE.
    public static let leSupportedController = LMPFeatures(rawValue: 1 << 38)
    /// The controller supports LE and BR/EDR to the same device at the same time.
    public static let simultaneousLEAndBREDRController = LMPFeatures(rawValue: 1 << 49)
}

/// A version of the Core Specification, as HCI, LMP and the Link Layer number it (Assigned Numbers, 2.1).
public struct CoreVersion: RawRepresentable, Hashable, Comparable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Bluetooth 4.0, the first version with LE.
    public static let v40 = CoreVersion(rawValue: 0x06)
    /// Bluetooth 4.1.
    public static let v41 = CoreVersion(rawValue: 0x07)
    /// Bluetooth 4.2, the first version with LE Secure Connections.
    public static let v42 = CoreVersion(rawValue: 0x08)
    /// Bluetooth 5.0, the first version with extended advertising.
    public static let v50 = CoreVersion(rawValue: 0x09)
    /// Bluetooth 5.1.
    public static let v51 = CoreVersion(rawValue: 0x0A)
    /// Bluetooth 5.2, the first version with isochronous channels.
    public static let v52 = CoreVersion(rawValue: 0x0B)
    /// Bluetooth 5.3.
    public static let v53 = CoreVersion(rawValue: 0x0C)
    /// Bluetooth 5.4.
    public static let v54 = CoreVersion(rawValue: 0x0D)
    /// Bluetooth 6.0.
    public static let v60 = CoreVersion(rawValue: 0x0E)
    /// Bluetooth 6.1.
    public static let v61 = CoreVersion(rawValue: 0x0F)

    public static func < (left: CoreVersion, right: CoreVersion) -> Bool { left.rawValue < right.rawValue }
}

extension CoreVersion: CustomStringConvertible {
    /// The version as it is written, "5.4"; the number in parentheses if it has no name here.
    public var description: String {
        switch rawValue {
        case 0x00: "1.0b"
        case 0x01: "1.1"
        case 0x02: "1.2"
        case 0x03: "2.0"
        case 0x04: "2.1"
        case 0x05: "3.0"
        case 0x06...0x08: "4.\(rawValue - 0x06)"
        case 0x09...0x0D: "5.\(rawValue - 0x09)"
        case 0x0E...0x0F: "6.\(rawValue - 0x0E)"
        default: "(\(rawValue))"
        }
    }
}
