/// The reason why a command failed or a connection ended (Vol 1, Part F).
public struct ErrorCode: RawRepresentable, Error, Hashable, Sendable {
    public let rawValue: UInt8

    @inlinable
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let success = ErrorCode(rawValue: 0x00)
    public static let unknownHCICommand = ErrorCode(rawValue: 0x01)
    public static let unknownConnectionIdentifier = ErrorCode(rawValue: 0x02)
    public static let hardwareFailure = ErrorCode(rawValue: 0x03)
    public static let pageTimeout = ErrorCode(rawValue: 0x04)
    public static let authenticationFailure = ErrorCode(rawValue: 0x05)
    public static let pinOrKeyMissing = ErrorCode(rawValue: 0x06)
    public static let memoryCapacityExceeded = ErrorCode(rawValue: 0x07)
    public static let connectionTimeout = ErrorCode(rawValue: 0x08)
    public static let connectionLimitExceeded = ErrorCode(rawValue: 0x09)
    public static let synchronousConnectionLimitToADeviceExceeded = ErrorCode(rawValue: 0x0A)
    public static let connectionAlreadyExists = ErrorCode(rawValue: 0x0B)
    public static let commandDisallowed = ErrorCode(rawValue: 0x0C)
    public static let connectionRejectedDueToLimitedResources = ErrorCode(rawValue: 0x0D)
    public static let connectionRejectedDueToSecurityReasons = ErrorCode(rawValue: 0x0E)
    public static let connectionRejectedDueToUnacceptableBDADDR = ErrorCode(rawValue: 0x0F)
    public static let connectionAcceptTimeoutExceeded = ErrorCode(rawValue: 0x10)
    public static let unsupportedFeatureOrParameterValue = ErrorCode(rawValue: 0x11)
    public static let invalidHCICommandParameters = ErrorCode(rawValue: 0x12)
    public static let remoteUserTerminatedConnection = ErrorCode(rawValue: 0x13)
    public static let remoteDeviceTerminatedConnectionDueToLowResources = ErrorCode(rawValue: 0x14)
    public static let remoteDeviceTerminatedConnectionDueToPowerOff = ErrorCode(rawValue: 0x15)
    public static let connectionTerminatedByLocalHost = ErrorCode(rawValue: 0x16)
    public static let repeatedAttempts = ErrorCode(rawValue: 0x17)
    public static let pairingNotAllowed = ErrorCode(rawValue: 0x18)
    public static let unknownLMPPDU = ErrorCode(rawValue: 0x19)
    public static let unsupportedRemoteFeature = ErrorCode(rawValue: 0x1A)
    public static let scoOffsetRejected = ErrorCode(rawValue: 0x1B)
    public static let scoIntervalRejected = ErrorCode(rawValue: 0x1C)
    public static let scoAirModeRejected = ErrorCode(rawValue: 0x1D)
    public static let invalidLMPOrLLParameters = ErrorCode(rawValue: 0x1E)
    public static let unspecifiedError = ErrorCode(rawValue: 0x1F)
    public static let unsupportedLMPOrLLParameterValue = ErrorCode(rawValue: 0x20)
    public static let roleChangeNotAllowed = ErrorCode(rawValue: 0x21)
    public static let lmpOrLLResponseTimeout = ErrorCode(rawValue: 0x22)
    public static let lmpErrorTransactionCollision = ErrorCode(rawValue: 0x23)
    public static let lmpPDUNotAllowed = ErrorCode(rawValue: 0x24)
    public static let encryptionModeNotAcceptable = ErrorCode(rawValue: 0x25)
    public static let linkKeyCannotBeChanged = ErrorCode(rawValue: 0x26)
    public static let requestedQoSNotSupported = ErrorCode(rawValue: 0x27)
    public static let instantPassed = ErrorCode(rawValue: 0x28)
    public static let pairingWithUnitKeyNotSupported = ErrorCode(rawValue: 0x29)
    public static let differentTransactionCollision = ErrorCode(rawValue: 0x2A)
    public static let qosUnacceptableParameter = ErrorCode(rawValue: 0x2C)
    public static let qosRejected = ErrorCode(rawValue: 0x2D)
    public static let channelClassificationNotSupported = ErrorCode(rawValue: 0x2E)
    public static let insufficientSecurity = ErrorCode(rawValue: 0x2F)
    public static let parameterOutOfMandatoryRange = ErrorCode(rawValue: 0x30)
    public static let roleSwitchPending = ErrorCode(rawValue: 0x32)
    public static let reservedSlotViolation = ErrorCode(rawValue: 0x34)
    public static let roleSwitchFailed = ErrorCode(rawValue: 0x35)
    public static let extendedInquiryResponseTooLarge = ErrorCode(rawValue: 0x36)
    public static let secureSimplePairingNotSupportedByHost = ErrorCode(rawValue: 0x37)
    public static let hostBusyPairing = ErrorCode(rawValue: 0x38)
    public static let connectionRejectedDueToNoSuitableChannelFound = ErrorCode(rawValue: 0x39)
    public static let controllerBusy = ErrorCode(rawValue: 0x3A)
    public static let unacceptableConnectionParameters = ErrorCode(rawValue: 0x3B)
    public static let advertisingTimeout = ErrorCode(rawValue: 0x3C)
    public static let connectionTerminatedDueToMICFailure = ErrorCode(rawValue: 0x3D)
    public static let connectionFailedToBeEstablished = ErrorCode(rawValue: 0x3E)
    public static let coarseClockAdjustmentRejected = ErrorCode(rawValue: 0x40)
    public static let type0SubmapNotDefined = ErrorCode(rawValue: 0x41)
    public static let unknownAdvertisingIdentifier = ErrorCode(rawValue: 0x42)
    public static let limitReached = ErrorCode(rawValue: 0x43)
    public static let operationCancelledByHost = ErrorCode(rawValue: 0x44)
    public static let packetTooLong = ErrorCode(rawValue: 0x45)
    public static let tooLate = ErrorCode(rawValue: 0x46)
    public static let tooEarly = ErrorCode(rawValue: 0x47)
}

extension ErrorCode: CustomStringConvertible {
    /// The specification's name of the error, or its number if it has none.
    public var description: String {
        if Int(rawValue) < names.count, let name = names[Int(rawValue)] { return name }
        return "Error 0x" + (rawValue < 0x10 ? "0" : "") + String(rawValue, radix: 16, uppercase: true)
    }
}

/// The names by code; nil if a code is reserved.
private let names: [String?] = [
    "Success",
    "Unknown HCI Command",
    "Unknown Connection Identifier",
    "Hardware Failure",
    "Page Timeout",
    "Authentication Failure",
    "PIN or Key Missing",
    "Memory Capacity Exceeded",
    "Connection Timeout",
    "Connection Limit Exceeded",
    "Synchronous Connection Limit To A Device Exceeded",
    "Connection Already Exists",
    "Command Disallowed",
    "Connection Rejected due to Limited Resources",
    "Connection Rejected Due To Security Reasons",
    "Connection Rejected due to Unacceptable BD_ADDR",
    "Connection Accept Timeout Exceeded",
    "Unsupported Feature or Parameter Value",
    "Invalid HCI Command Parameters",
    "Remote User Terminated Connection",
    "Remote Device Terminated Connection due to Low Resources",
    "Remote Device Terminated Connection due to Power Off",
    "Connection Terminated By Local Host",
    "Repeated Attempts",
    "Pairing Not Allowed",
    "Unknown LMP PDU",
    "Unsupported Remote Feature",
    "SCO Offset Rejected",
    "SCO Interval Rejected",
    "SCO Air Mode Rejected",
    "Invalid LMP Parameters / Invalid LL Parameters",
    "Unspecified Error",
    "Unsupported LMP Parameter Value / Unsupported LL Parameter Value",
    "Role Change Not Allowed",
    "LMP Response Timeout / LL Response Timeout",
    "LMP Error Transaction Collision / LL Procedure Collision",
    "LMP PDU Not Allowed",
    "Encryption Mode Not Acceptable",
    "Link Key cannot be Changed",
    "Requested QoS Not Supported",
    "Instant Passed",
    "Pairing With Unit Key Not Supported",
    "Different Transaction Collision",
    nil,
    "QoS Unacceptable Parameter",
    "QoS Rejected",
    "Channel Classification Not Supported",
    "Insufficient Security",
    "Parameter Out Of Mandatory Range",
    nil,
    "Role Switch Pending",
    nil,
    "Reserved Slot Violation",
    "Role Switch Failed",
    "Extended Inquiry Response Too Large",
    "Secure Simple Pairing Not Supported By Host",
    "Host Busy - Pairing",
    "Connection Rejected due to No Suitable Channel Found",
    "Controller Busy",
    "Unacceptable Connection Parameters",
    "Advertising Timeout",
    "Connection Terminated due to MIC Failure",
    "Connection Failed to be Established / Synchronization Timeout",
    nil,
    "Coarse Clock Adjustment Rejected but Will Try to Adjust Using Clock Dragging",
    "Type0 Submap Not Defined",
    "Unknown Advertising Identifier",
    "Limit Reached",
    "Operation Cancelled by Host",
    "Packet Too Long",
    "Too Late",
    "Too Early",
]
