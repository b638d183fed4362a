// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The constants have the names that Apple gave them.

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
    /// Every byte is a code. The codes of applications and profiles (0x80 to 0xFF) have a raw value and no public name:
    /// they are cases that apps cannot write. A `switch` therefore needs only the named cases, as on Apple's platforms.
    /// The enumeration has 256 cases in the order of their raw values, so its one byte in memory is the raw value.
    public enum Code: RawRepresentable, _ErrorCodeProtocol, Hashable, Sendable {
        public typealias _ErrorType = CBATTError

        case success
        case invalidHandle
        case readNotPermitted
        case writeNotPermitted
        case invalidPdu
        case insufficientAuthentication
        case requestNotSupported
        case invalidOffset
        case insufficientAuthorization
        case prepareQueueFull
        case attributeNotFound
        case attributeNotLong
        case insufficientEncryptionKeySize
        case invalidAttributeValueLength
        case unlikelyError
        case insufficientEncryption
        case unsupportedGroupType
        case insufficientResources
        @available(*, unavailable, message: "use init(rawValue:)")
        case _12, _13, _14, _15, _16, _17, _18, _19, _1A, _1B, _1C, _1D, _1E, _1F, _20, _21, _22, _23, _24,
            _25, _26, _27, _28, _29, _2A, _2B, _2C, _2D, _2E, _2F, _30, _31, _32, _33, _34, _35, _36, _37,
            _38, _39, _3A, _3B, _3C, _3D, _3E, _3F, _40, _41, _42, _43, _44, _45, _46, _47, _48, _49, _4A,
            _4B, _4C, _4D, _4E, _4F, _50, _51, _52, _53, _54, _55, _56, _57, _58, _59, _5A, _5B, _5C, _5D,
            _5E, _5F, _60, _61, _62, _63, _64, _65, _66, _67, _68, _69, _6A, _6B, _6C, _6D, _6E, _6F, _70,
            _71, _72, _73, _74, _75, _76, _77, _78, _79, _7A, _7B, _7C, _7D, _7E, _7F, _80, _81, _82, _83,
            _84, _85, _86, _87, _88, _89, _8A, _8B, _8C, _8D, _8E, _8F, _90, _91, _92, _93, _94, _95, _96,
            _97, _98, _99, _9A, _9B, _9C, _9D, _9E, _9F, _A0, _A1, _A2, _A3, _A4, _A5, _A6, _A7, _A8, _A9,
            _AA, _AB, _AC, _AD, _AE, _AF, _B0, _B1, _B2, _B3, _B4, _B5, _B6, _B7, _B8, _B9, _BA, _BB, _BC,
            _BD, _BE, _BF, _C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _CA, _CB, _CC, _CD, _CE, _CF,
            _D0, _D1, _D2, _D3, _D4, _D5, _D6, _D7, _D8, _D9, _DA, _DB, _DC, _DD, _DE, _DF, _E0, _E1, _E2,
            _E3, _E4, _E5, _E6, _E7, _E8, _E9, _EA, _EB, _EC, _ED, _EE, _EF, _F0, _F1, _F2, _F3, _F4, _F5,
            _F6, _F7, _F8, _F9, _FA, _FB, _FC, _FD, _FE, _FF

        /// Creates the code with a raw value; nil if the value is not 0 to 255.
        public init?(rawValue: Int) {
            guard let octet = UInt8(exactly: rawValue) else { return nil }
            self = unsafeBitCast(octet, to: Code.self)
        }

        public var rawValue: Int { Int(unsafeBitCast(self, to: UInt8.self)) }
    }

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

extension CBATTError.Code {
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
