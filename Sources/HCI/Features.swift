/// The features of a link layer (Vol 6, Part B, 4.6).
public struct LEFeatures: OptionSet, Hashable, Sendable {
    public let rawValue: UInt64
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    public static let encryption = LEFeatures(rawValue: 1 << 0)
    public static let connectionParametersRequestProcedure = LEFeatures(rawValue: 1 << 1)
    public static let extendedRejectIndication = LEFeatures(rawValue: 1 << 2)
    public static let peripheralInitiatedFeaturesExchange = LEFeatures(rawValue: 1 << 3)
    public static let ping = LEFeatures(rawValue: 1 << 4)
    public static let dataPacketLengthExtension = LEFeatures(rawValue: 1 << 5)
    public static let llPrivacy = LEFeatures(rawValue: 1 << 6)
    public static let extendedScanningFilterPolicies = LEFeatures(rawValue: 1 << 7)
    public static let le2MPHY = LEFeatures(rawValue: 1 << 8)
    public static let stableModulationIndexTransmitter = LEFeatures(rawValue: 1 << 9)
    public static let stableModulationIndexReceiver = LEFeatures(rawValue: 1 << 10)
    public static let leCodedPHY = LEFeatures(rawValue: 1 << 11)
    public static let extendedAdvertising = LEFeatures(rawValue: 1 << 12)
    public static let periodicAdvertising = LEFeatures(rawValue: 1 << 13)
    public static let channelSelectionAlgorithm2 = LEFeatures(rawValue: 1 << 14)
    public static let powerClass1 = LEFeatures(rawValue: 1 << 15)
    public static let minimumNumberOfUsedChannelsProcedure = LEFeatures(rawValue: 1 << 16)
    public static let connectionCTERequest = LEFeatures(rawValue: 1 << 17)
    public static let connectionCTEResponse = LEFeatures(rawValue: 1 << 18)
    public static let connectionlessCTETransmitter = LEFeatures(rawValue: 1 << 19)
    public static let connectionlessCTEReceiver = LEFeatures(rawValue: 1 << 20)
    public static let antennaSwitchingDuringCTETransmission = LEFeatures(rawValue: 1 << 21)
    public static let antennaSwitchingDuringCTEReception = LEFeatures(rawValue: 1 << 22)
    public static let receivingConstantToneExtensions = LEFeatures(rawValue: 1 << 23)
    public static let periodicAdvertisingSyncTransferSender = LEFeatures(rawValue: 1 << 24)
    public static let periodicAdvertisingSyncTransferRecipient = LEFeatures(rawValue: 1 << 25)
    public static let sleepClockAccuracyUpdates = LEFeatures(rawValue: 1 << 26)
    public static let remotePublicKeyValidation = LEFeatures(rawValue: 1 << 27)
    public static let connectedIsochronousStreamCentral = LEFeatures(rawValue: 1 << 28)
    public static let connectedIsochronousStreamPeripheral = LEFeatures(rawValue: 1 << 29)
    public static let isochronousBroadcaster = LEFeatures(rawValue: 1 << 30)
    public static let synchronizedReceiver = LEFeatures(rawValue: 1 << 31)
    public static let connectedIsochronousStreamHostSupport = LEFeatures(rawValue: 1 << 32)
    /// Two bits represent this feature; a controller sets both or neither.
    public static let powerControlRequest = LEFeatures(rawValue: 1 << 33 | 1 << 34)
    public static let pathLossMonitoring = LEFeatures(rawValue: 1 << 35)
    public static let periodicAdvertisingADISupport = LEFeatures(rawValue: 1 << 36)
    public static let connectionSubrating = LEFeatures(rawValue: 1 << 37)
    public static let connectionSubratingHostSupport = LEFeatures(rawValue: 1 << 38)
    public static let channelClassification = LEFeatures(rawValue: 1 << 39)
    public static let advertisingCodingSelection = LEFeatures(rawValue: 1 << 40)
    public static let advertisingCodingSelectionHostSupport = LEFeatures(rawValue: 1 << 41)
    public static let periodicAdvertisingWithResponsesAdvertiser = LEFeatures(rawValue: 1 << 43)
    public static let periodicAdvertisingWithResponsesScanner = LEFeatures(rawValue: 1 << 44)
}

/// The features of page 0 that describe the kind of controller (Vol 2, Part C, 3.3). The others can be read by value.
public struct LMPFeatures: OptionSet, Hashable, Sendable {
    public let rawValue: UInt64
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    public static let brEdrNotSupported = LMPFeatures(rawValue: 1 << 37)
    public static let leSupportedController = LMPFeatures(rawValue: 1 << 38)
    public static let simultaneousLEAndBREDRController = LMPFeatures(rawValue: 1 << 49)
}

/// A version of the Core Specification, as HCI, LMP and the Link Layer number it (Assigned Numbers, 2.1).
public struct CoreVersion: RawRepresentable, Hashable, Comparable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let v40 = CoreVersion(rawValue: 0x06)
    public static let v41 = CoreVersion(rawValue: 0x07)
    public static let v42 = CoreVersion(rawValue: 0x08)
    public static let v50 = CoreVersion(rawValue: 0x09)
    public static let v51 = CoreVersion(rawValue: 0x0A)
    public static let v52 = CoreVersion(rawValue: 0x0B)
    public static let v53 = CoreVersion(rawValue: 0x0C)
    public static let v54 = CoreVersion(rawValue: 0x0D)
    public static let v60 = CoreVersion(rawValue: 0x0E)
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
