// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The constants have the names that Apple gave them.

import BLEATT
import CBLECoreBluetooth
import Foundation

/// The domain of ``CBATTError``.
public let CBATTErrorDomain = "CBATTErrorDomain"

/// The reason why a peer refused a request of the Attribute Protocol.
public struct CBATTError: _BridgedStoredNSError {
    public let _nsError: NSError

    public init(_nsError error: NSError) {
        precondition(error.domain == CBATTErrorDomain)
        _nsError = error
    }

    /// Hashes the domain and the code. The hash of Foundation's own error never returns on Linux.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(_nsError.domain)
        hasher.combine(_nsError.code)
    }

    public static var errorDomain: String { CBATTErrorDomain }
    public static var _nsErrorDomain: String { CBATTErrorDomain }

    /// An error code, as it is sent (Vol 3, Part F, 3.4.1.1).
    ///
    /// The codes of applications (0x80 to 0x9F) and of profiles (0xE0 to 0xFF) have no name:
    /// `CBATTError.Code(rawValue: 0x80)!`. A `switch` over the code therefore has an `@unknown default`, as on Apple's
    /// platforms.
    public typealias Code = CBATTErrorCode

    /// The request succeeded. As a result of ``CBPeripheralManager/respond(to:withResult:)`` only; a peer never sends
    /// it.
    public static var success: Code { .success }
    /// The server has no attribute with the handle.
    public static var invalidHandle: Code { .invalidHandle }
    /// The attribute cannot be read.
    public static var readNotPermitted: Code { .readNotPermitted }
    /// The attribute cannot be written.
    public static var writeNotPermitted: Code { .writeNotPermitted }
    /// The server could not parse the request.
    public static var invalidPdu: Code { .invalidPdu }
    /// The attribute needs an authenticated link. Also reported if pairing or encryption fails.
    public static var insufficientAuthentication: Code { .insufficientAuthentication }
    /// The server does not support the request. Also reported for a subscription to a characteristic that can neither
    /// notify nor indicate.
    public static var requestNotSupported: Code { .requestNotSupported }
    /// The offset is past the end of the value.
    public static var invalidOffset: Code { .invalidOffset }
    /// The server requires authorization, and the client is not authorized.
    public static var insufficientAuthorization: Code { .insufficientAuthorization }
    /// The server accepts no more parts of long writes before they are executed.
    public static var prepareQueueFull: Code { .prepareQueueFull }
    /// There is no attribute of the type in the range of handles.
    public static var attributeNotFound: Code { .attributeNotFound }
    /// The value cannot be read or written in parts.
    public static var attributeNotLong: Code { .attributeNotLong }
    /// The key of the encrypted link is shorter than the attribute needs.
    public static var insufficientEncryptionKeySize: Code { .insufficientEncryptionKeySize }
    /// The value has the wrong length for the attribute. Also reported for a write of more than 512 bytes.
    public static var invalidAttributeValueLength: Code { .invalidAttributeValueLength }
    /// The request failed for a reason that has no code of its own.
    public static var unlikelyError: Code { .unlikelyError }
    /// The attribute needs an encrypted link.
    public static var insufficientEncryption: Code { .insufficientEncryption }
    /// The server does not group attributes by the type.
    public static var unsupportedGroupType: Code { .unsupportedGroupType }
    /// The server has not enough resources for the request.
    public static var insufficientResources: Code { .insufficientResources }
}

extension CBATTError {
    /// Returns the error with its description, as Core Bluetooth itself reports it.
    static func described(_ code: Code) -> CBATTError {
        CBATTError(code, userInfo: [NSLocalizedDescriptionKey: code.text])
    }
}

// The module of the type is part of this package.
// swift-format-ignore: AvoidRetroactiveConformances
extension CBATTErrorCode: @retroactive _ErrorCodeProtocol {
    public typealias _ErrorType = CBATTError
}

extension CBATTError.Code {
    /// Creates the code that a peer sent.
    init(_ code: ATTErrorCode) {
        // An open enumeration has every value.
        self = CBATTError.Code(rawValue: Int(code.rawValue)) ?? .unlikelyError
    }

    fileprivate var text: String {
        switch self {
        case .success: "Success."
        case .invalidHandle: "The handle is invalid."
        case .readNotPermitted: "Reading is not permitted."
        case .writeNotPermitted: "Writing is not permitted."
        case .invalidPdu: "The command is invalid."
        case .insufficientAuthentication: "Authentication is insufficient."
        case .requestNotSupported: "The request is not supported."
        case .invalidOffset: "The offset is invalid."
        case .insufficientAuthorization: "Authorization is insufficient."
        case .prepareQueueFull: "The prepare queue is full."
        case .attributeNotFound: "The attribute could not be found."
        case .attributeNotLong: "The attribute is not long."
        case .insufficientEncryptionKeySize: "The encryption key size is insufficient."
        case .invalidAttributeValueLength: "The value's length is invalid."
        case .unlikelyError: "Unlikely error."
        case .insufficientEncryption: "Encryption is insufficient."
        case .unsupportedGroupType: "The group type is not supported."
        case .insufficientResources: "Resources are insufficient."
        default: "Unknown ATT error."
        }
    }
}
