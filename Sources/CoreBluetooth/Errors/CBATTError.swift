// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The constants have the names that Apple gave them.

import ATT
import CCoreBluetooth
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

    public static var success: Code { .success }
    public static var invalidHandle: Code { .invalidHandle }
    public static var readNotPermitted: Code { .readNotPermitted }
    public static var writeNotPermitted: Code { .writeNotPermitted }
    public static var invalidPdu: Code { .invalidPdu }
    public static var insufficientAuthentication: Code { .insufficientAuthentication }
    public static var requestNotSupported: Code { .requestNotSupported }
    public static var invalidOffset: Code { .invalidOffset }
    public static var insufficientAuthorization: Code { .insufficientAuthorization }
    public static var prepareQueueFull: Code { .prepareQueueFull }
    public static var attributeNotFound: Code { .attributeNotFound }
    public static var attributeNotLong: Code { .attributeNotLong }
    public static var insufficientEncryptionKeySize: Code { .insufficientEncryptionKeySize }
    public static var invalidAttributeValueLength: Code { .invalidAttributeValueLength }
    public static var unlikelyError: Code { .unlikelyError }
    public static var insufficientEncryption: Code { .insufficientEncryption }
    public static var unsupportedGroupType: Code { .unsupportedGroupType }
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
    init(_ code: ATT.ErrorCode) {
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
