import BluetoothTypes

/// The reason why a command failed or a connection ended (Vol 1, Part F).
public struct HCIErrorCode: RawRepresentable, Error, Hashable, Sendable {
    public let rawValue: UInt8

    @inlinable
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The command succeeded. Not an error.
    public static let success = HCIErrorCode(rawValue: 0x00)
    /// The controller does not know the opcode.
    public static let unknownHCICommand = HCIErrorCode(rawValue: 0x01)
    /// There is no connection with the handle, or it is of the wrong kind.
    public static let unknownConnectionIdentifier = HCIErrorCode(rawValue: 0x02)
    /// The controller's hardware has failed.
    public static let hardwareFailure = HCIErrorCode(rawValue: 0x03)
    /// A BR/EDR device did not answer the page.
    public static let pageTimeout = HCIErrorCode(rawValue: 0x04)
    /// Pairing or authentication failed, for example because the keys differ.
    public static let authenticationFailure = HCIErrorCode(rawValue: 0x05)
    /// The peer, or this device, does not have the key with which the link was to be encrypted.
    public static let pinOrKeyMissing = HCIErrorCode(rawValue: 0x06)
    /// The controller has no memory left for the parameters.
    public static let memoryCapacityExceeded = HCIErrorCode(rawValue: 0x07)
    /// Nothing was received for the supervision timeout: the connection is lost.
    public static let connectionTimeout = HCIErrorCode(rawValue: 0x08)
    /// The controller has no space for another connection.
    public static let connectionLimitExceeded = HCIErrorCode(rawValue: 0x09)
    /// The controller has no space for another synchronous connection to the device.
    public static let synchronousConnectionLimitToADeviceExceeded = HCIErrorCode(rawValue: 0x0A)
    /// There is a connection to the device already.
    public static let connectionAlreadyExists = HCIErrorCode(rawValue: 0x0B)
    /// The controller cannot execute the command in its present state.
    public static let commandDisallowed = HCIErrorCode(rawValue: 0x0C)
    /// The peer refused the connection because it lacks resources.
    public static let connectionRejectedDueToLimitedResources = HCIErrorCode(rawValue: 0x0D)
    /// The peer refused the connection for reasons of security.
    public static let connectionRejectedDueToSecurityReasons = HCIErrorCode(rawValue: 0x0E)
    /// The peer refused the connection because of the address of this device.
    public static let connectionRejectedDueToUnacceptableBDADDR = HCIErrorCode(rawValue: 0x0F)
    /// The connection request was not answered in time.
    public static let connectionAcceptTimeoutExceeded = HCIErrorCode(rawValue: 0x10)
    /// The controller does not support a feature or a parameter value of the command.
    public static let unsupportedFeatureOrParameterValue = HCIErrorCode(rawValue: 0x11)
    /// A parameter has a value, or a combination of values, that the specification does not allow.
    public static let invalidHCICommandParameters = HCIErrorCode(rawValue: 0x12)
    /// The peer ended the connection, usually because its user or app did.
    public static let remoteUserTerminatedConnection = HCIErrorCode(rawValue: 0x13)
    /// The peer ended the connection because it lacks resources.
    public static let remoteDeviceTerminatedConnectionDueToLowResources = HCIErrorCode(rawValue: 0x14)
    /// The peer ended the connection because it is being switched off.
    public static let remoteDeviceTerminatedConnectionDueToPowerOff = HCIErrorCode(rawValue: 0x15)
    /// This host ended the connection.
    public static let connectionTerminatedByLocalHost = HCIErrorCode(rawValue: 0x16)
    /// The peer refuses to pair again so soon after a failed attempt.
    public static let repeatedAttempts = HCIErrorCode(rawValue: 0x17)
    /// The device does not allow pairing.
    public static let pairingNotAllowed = HCIErrorCode(rawValue: 0x18)
    /// The peer sent an LMP PDU with an opcode that the controller does not know.
    public static let unknownLMPPDU = HCIErrorCode(rawValue: 0x19)
    /// The peer does not support the requested feature.
    public static let unsupportedRemoteFeature = HCIErrorCode(rawValue: 0x1A)
    /// The offset requested for a SCO connection was rejected.
    public static let scoOffsetRejected = HCIErrorCode(rawValue: 0x1B)
    /// The interval requested for a SCO connection was rejected.
    public static let scoIntervalRejected = HCIErrorCode(rawValue: 0x1C)
    /// The air mode requested for a SCO connection was rejected.
    public static let scoAirModeRejected = HCIErrorCode(rawValue: 0x1D)
    /// A PDU of LMP or the Link Layer had invalid parameters.
    public static let invalidLMPOrLLParameters = HCIErrorCode(rawValue: 0x1E)
    /// An error without a code of its own.
    public static let unspecifiedError = HCIErrorCode(rawValue: 0x1F)
    /// A PDU of LMP or the Link Layer had a value that is valid, but not supported.
    public static let unsupportedLMPOrLLParameterValue = HCIErrorCode(rawValue: 0x20)
    /// The peer or the controller does not change its role at present.
    public static let roleChangeNotAllowed = HCIErrorCode(rawValue: 0x21)
    /// The peer did not answer a PDU of LMP or the Link Layer in time.
    public static let lmpOrLLResponseTimeout = HCIErrorCode(rawValue: 0x22)
    /// Both devices began the same procedure at the same time.
    public static let lmpErrorTransactionCollision = HCIErrorCode(rawValue: 0x23)
    /// An LMP PDU contained an opcode that is not allowed at that time.
    public static let lmpPDUNotAllowed = HCIErrorCode(rawValue: 0x24)
    /// The requested mode of encryption is not acceptable at this time.
    public static let encryptionModeNotAcceptable = HCIErrorCode(rawValue: 0x25)
    /// The link key is fixed and cannot be changed.
    public static let linkKeyCannotBeChanged = HCIErrorCode(rawValue: 0x26)
    /// The requested quality of service is not supported.
    public static let requestedQoSNotSupported = HCIErrorCode(rawValue: 0x27)
    /// The instant at which a change was to take effect has passed already. On LE, the connection then ends.
    public static let instantPassed = HCIErrorCode(rawValue: 0x28)
    /// Pairing with a unit key is not supported.
    public static let pairingWithUnitKeyNotSupported = HCIErrorCode(rawValue: 0x29)
    /// A procedure was begun while another one that excludes it was in progress.
    public static let differentTransactionCollision = HCIErrorCode(rawValue: 0x2A)
    /// The parameters of a quality of service are not acceptable.
    public static let qosUnacceptableParameter = HCIErrorCode(rawValue: 0x2C)
    /// The quality of service was rejected, and its negotiation ends.
    public static let qosRejected = HCIErrorCode(rawValue: 0x2D)
    /// The controller does not assess channels for adaptive hopping.
    public static let channelClassificationNotSupported = HCIErrorCode(rawValue: 0x2E)
    /// The operation is possible only on an encrypted link.
    public static let insufficientSecurity = HCIErrorCode(rawValue: 0x2F)
    /// A parameter is outside the range that every device must support.
    public static let parameterOutOfMandatoryRange = HCIErrorCode(rawValue: 0x30)
    /// A role switch is in progress.
    public static let roleSwitchPending = HCIErrorCode(rawValue: 0x32)
    /// A reserved slot of BR/EDR was violated.
    public static let reservedSlotViolation = HCIErrorCode(rawValue: 0x34)
    /// A role switch did not succeed.
    public static let roleSwitchFailed = HCIErrorCode(rawValue: 0x35)
    /// The extended inquiry response does not fit the packets of the peer.
    public static let extendedInquiryResponseTooLarge = HCIErrorCode(rawValue: 0x36)
    /// The peer's host does not support Secure Simple Pairing.
    public static let secureSimplePairingNotSupportedByHost = HCIErrorCode(rawValue: 0x37)
    /// The peer's host is busy with another pairing.
    public static let hostBusyPairing = HCIErrorCode(rawValue: 0x38)
    /// No channel suits both devices.
    public static let connectionRejectedDueToNoSuitableChannelFound = HCIErrorCode(rawValue: 0x39)
    /// The controller is busy and cannot execute the operation now.
    public static let controllerBusy = HCIErrorCode(rawValue: 0x3A)
    /// The peer does not accept the connection parameters. It may have ended the connection for that reason.
    public static let unacceptableConnectionParameters = HCIErrorCode(rawValue: 0x3B)
    /// Directed advertising, or an advertising set with a limited duration, ended without a connection.
    public static let advertisingTimeout = HCIErrorCode(rawValue: 0x3C)
    /// A packet failed its integrity check (MIC): the keys differ, or the packet was changed on its way. The
    /// connection then ends.
    public static let connectionTerminatedDueToMICFailure = HCIErrorCode(rawValue: 0x3D)
    /// The connection was begun, but the peer did not answer in the first six connection events; or synchronization
    /// failed.
    public static let connectionFailedToBeEstablished = HCIErrorCode(rawValue: 0x3E)
    /// The clock was not adjusted at once, but will be adjusted slowly.
    public static let coarseClockAdjustmentRejected = HCIErrorCode(rawValue: 0x40)
    /// The type 0 submap of the slot availability is not defined.
    public static let type0SubmapNotDefined = HCIErrorCode(rawValue: 0x41)
    /// There is no advertising set or periodic advertising with the handle.
    public static let unknownAdvertisingIdentifier = HCIErrorCode(rawValue: 0x42)
    /// A limit that the host has set was reached, for example the number of events of an advertising set.
    public static let limitReached = HCIErrorCode(rawValue: 0x43)
    /// This host cancelled the operation.
    public static let operationCancelledByHost = HCIErrorCode(rawValue: 0x44)
    /// The packet would be longer than the controller or the link allows.
    public static let packetTooLong = HCIErrorCode(rawValue: 0x45)
    /// The operation was requested too late to be carried out.
    public static let tooLate = HCIErrorCode(rawValue: 0x46)
    /// The operation was requested too early to be carried out.
    public static let tooEarly = HCIErrorCode(rawValue: 0x47)
    /// Too few channels are left for the operation.
    public static let insufficientChannels = HCIErrorCode(rawValue: 0x48)
}

extension HCIErrorCode: CustomStringConvertible {
    /// The specification's name of the error, or its number if it has none.
    public var description: String {
        if Int(rawValue) < names.count, let name = names[Int(rawValue)] { return name }
        return "Error 0x" + hexadecimalDigits(rawValue, count: 2)
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
    "Insufficient Channels",
]
