// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The constants have the names that Apple gave them.

import Foundation

/// The domain of ``CBError``.
public let CBErrorDomain = "CBErrorDomain"

/// The reason why Core Bluetooth could not carry out a request.
public struct CBError: _BridgedStoredNSError {
    public let _nsError: NSError

    public init(_nsError error: NSError) {
        precondition(error.domain == CBErrorDomain)
        _nsError = error
    }

    /// Hashes the domain and the code. The hash of Foundation's own error never returns on Linux.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(_nsError.domain)
        hasher.combine(_nsError.code)
    }

    public static var errorDomain: String { CBErrorDomain }
    public static var _nsErrorDomain: String { CBErrorDomain }

    /// The kind of a ``CBError``.
    public enum Code: Int, _ErrorCodeProtocol, Sendable {
        public typealias _ErrorType = CBError

        /// The peer's response is malformed, its database is too large, the controller has failed, or it refuses a
        /// command for a reason that no other code describes.
        case unknown = 0
        /// The call has an argument that is not allowed, for example a service that is published already, or parameters
        /// that a controller refuses.
        case invalidParameters = 1
        /// The object does not belong to this connection. A discovery reports this if the peripheral has changed the
        /// service in the meantime. Asynchronous calls of `linux` also report it for an object that was not discovered
        /// on this connection; other calls then print a line on standard error.
        case invalidHandle = 2
        /// The peripheral is not connected, or the connection ended before the call did.
        case notConnected = 3
        /// There are no handles left for the service, no resources for another L2CAP channel here or at the peer, or no
        /// resources in a controller.
        case outOfSpace = 4
        /// The call was cancelled, or this host ended the connection that it needed.
        case operationCancelled = 5
        /// The peer no longer responds: the connection was lost, or a request was not answered in time.
        case connectionTimeout = 6
        /// The peer ended the connection.
        case peripheralDisconnected = 7
        /// Never reported by this host.
        case uuidNotAllowed = 8
        /// The manager advertises already.
        case alreadyAdvertising = 9
        /// The connection could not be established or has failed, for example because this host's controller failed.
        case connectionFailed = 10
        /// The controller of this host or of the peer has no space for another connection.
        case connectionLimitReached = 11
        /// The spelling that Apple used first. ``unknownDevice`` is the same code.
        case unkownDevice = 12
        /// The peer or the controller does not support the operation, or the peer has no service for the PSM.
        case operationNotSupported = 13
        /// The peer is bonded, but does not have the key of the bond.
        case peerRemovedPairingInformation = 14
        /// The peer did not finish the pairing or the start of encryption in time.
        case encryptionTimedOut = 15
        /// This host has the maximum number of bonds, and none may be evicted.
        case tooManyLEPairedDevices = 16
        /// Never reported by this host, which does not limit notifications in the background.
        case leGattExceededBackgroundNotificationLimit = 17
        /// Never reported by this host, which does not limit notifications in the background.
        case leGattNearBackgroundNotificationLimit = 18
        /// Channel sounding was not started: a controller refused a step of the configuration, or another session runs.
        case channelSoundingConfigurationFailed = 19
        /// A procedure of channel sounding has no distance. This host computes none, so each procedure has this error.
        case channelSoundingProcedureFailed = 20

        /// The host does not know the peripheral with this identifier.
        public static var unknownDevice: Code { .unkownDevice }
    }

    /// See ``Code/unknown``.
    public static var unknown: Code { .unknown }
    /// See ``Code/invalidParameters``.
    public static var invalidParameters: Code { .invalidParameters }
    /// See ``Code/invalidHandle``.
    public static var invalidHandle: Code { .invalidHandle }
    /// See ``Code/notConnected``.
    public static var notConnected: Code { .notConnected }
    /// See ``Code/outOfSpace``.
    public static var outOfSpace: Code { .outOfSpace }
    /// See ``Code/operationCancelled``.
    public static var operationCancelled: Code { .operationCancelled }
    /// See ``Code/connectionTimeout``.
    public static var connectionTimeout: Code { .connectionTimeout }
    /// See ``Code/peripheralDisconnected``.
    public static var peripheralDisconnected: Code { .peripheralDisconnected }
    /// See ``Code/uuidNotAllowed``.
    public static var uuidNotAllowed: Code { .uuidNotAllowed }
    /// See ``Code/alreadyAdvertising``.
    public static var alreadyAdvertising: Code { .alreadyAdvertising }
    /// See ``Code/connectionFailed``.
    public static var connectionFailed: Code { .connectionFailed }
    /// See ``Code/connectionLimitReached``.
    public static var connectionLimitReached: Code { .connectionLimitReached }
    /// See ``Code/unknownDevice``.
    public static var unkownDevice: Code { .unkownDevice }
    /// See ``Code/unknownDevice``.
    public static var unknownDevice: Code { .unkownDevice }
    /// See ``Code/operationNotSupported``.
    public static var operationNotSupported: Code { .operationNotSupported }
    /// See ``Code/peerRemovedPairingInformation``.
    public static var peerRemovedPairingInformation: Code { .peerRemovedPairingInformation }
    /// See ``Code/encryptionTimedOut``.
    public static var encryptionTimedOut: Code { .encryptionTimedOut }
    /// See ``Code/tooManyLEPairedDevices``.
    public static var tooManyLEPairedDevices: Code { .tooManyLEPairedDevices }
    /// See ``Code/leGattExceededBackgroundNotificationLimit``.
    public static var leGattExceededBackgroundNotificationLimit: Code { .leGattExceededBackgroundNotificationLimit }
    /// See ``Code/leGattNearBackgroundNotificationLimit``.
    public static var leGattNearBackgroundNotificationLimit: Code { .leGattNearBackgroundNotificationLimit }
    /// See ``Code/channelSoundingConfigurationFailed``.
    public static var channelSoundingConfigurationFailed: Code { .channelSoundingConfigurationFailed }
    /// See ``Code/channelSoundingProcedureFailed``.
    public static var channelSoundingProcedureFailed: Code { .channelSoundingProcedureFailed }
}

extension CBError {
    /// Returns the error with its description, as Core Bluetooth itself reports it.
    static func described(_ code: Code) -> CBError {
        CBError(code, userInfo: [NSLocalizedDescriptionKey: code.text])
    }
}

extension CBError.Code {
    fileprivate var text: String {
        switch self {
        case .unknown: "Unknown error."
        case .invalidParameters: "One or more parameters were invalid."
        case .invalidHandle: "The specified handle is invalid."
        case .notConnected: "The specified device is not connected."
        case .outOfSpace: "The device has run out of space."
        case .operationCancelled: "The operation has been cancelled."
        case .connectionTimeout: "The connection has timed out unexpectedly."
        case .peripheralDisconnected: "The specified device has disconnected from us."
        case .uuidNotAllowed: "The specified UUID is not allowed for this operation."
        case .alreadyAdvertising: "Advertising has already started."
        case .connectionFailed: "The connection has failed unexpectedly."
        case .connectionLimitReached: "The maximum number of connections has been reached."
        case .unkownDevice: "The specified device is unknown."
        case .operationNotSupported: "The operation is not supported."
        case .peerRemovedPairingInformation: "Peer removed pairing information"
        case .encryptionTimedOut: "Failed to encrypt the connection, the connection has timed out unexpectedly."
        case .tooManyLEPairedDevices: "There are too many paired LE devices."
        case .leGattExceededBackgroundNotificationLimit: "The limit of notifications in the background was exceeded."
        case .leGattNearBackgroundNotificationLimit: "The limit of notifications in the background is near."
        case .channelSoundingConfigurationFailed: "Channel sounding could not be configured."
        case .channelSoundingProcedureFailed:
            "The channel sounding procedure gave no distance: this host measures, but computes no distances."
        }
    }

    /// Creates the code for a disconnection or a failed connection from the controller's error code (Vol 1, Part F).
    /// Nil for a link that this host ended on request.
    init?(controllerError: UInt8) {
        switch controllerError {
        case 0x16: return nil
        case 0x06: self = .peerRemovedPairingInformation
        case 0x08, 0x22: self = .connectionTimeout
        case 0x09, 0x0A: self = .connectionLimitReached
        case 0x13, 0x14, 0x15: self = .peripheralDisconnected
        default: self = .connectionFailed
        }
    }

    /// Creates the code for a command or a procedure that a controller has refused, from the controller's error code
    /// (Vol 1, Part F).
    init(commandStatus: UInt8) {
        switch commandStatus {
        case 0x01, 0x11, 0x1A, 0x20: self = .operationNotSupported
        case 0x12, 0x3B: self = .invalidParameters
        case 0x07, 0x0D: self = .outOfSpace
        // These are about the link.
        case 0x08, 0x09, 0x0A, 0x13...0x16, 0x22, 0x3E:
            self = CBError.Code(controllerError: commandStatus) ?? .operationCancelled
        default: self = .unknown
        }
    }
}
