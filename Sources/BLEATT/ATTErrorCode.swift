/// The reason why a server refuses a request (Vol 3, Part F, 3.4.1.1; common profile errors: Core Specification
/// Supplement, Part B).
public struct ATTErrorCode: RawRepresentable, Hashable, Sendable, Error {
    /// The code on the air, which may be reserved by the specification.
    public let rawValue: UInt8

    /// The error with a code, reserved or not.
    @inlinable
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The handle is not valid on this server.
    public static let invalidHandle = ATTErrorCode(rawValue: 0x01)
    /// The attribute cannot be read.
    public static let readNotPermitted = ATTErrorCode(rawValue: 0x02)
    /// The attribute cannot be written.
    public static let writeNotPermitted = ATTErrorCode(rawValue: 0x03)
    /// The request's PDU is malformed.
    public static let invalidPDU = ATTErrorCode(rawValue: 0x04)
    /// The link must be authenticated first.
    public static let insufficientAuthentication = ATTErrorCode(rawValue: 0x05)
    /// The server does not support the request.
    public static let requestNotSupported = ATTErrorCode(rawValue: 0x06)
    /// The offset is past the end of the value.
    public static let invalidOffset = ATTErrorCode(rawValue: 0x07)
    /// The client must be authorized first.
    public static let insufficientAuthorization = ATTErrorCode(rawValue: 0x08)
    /// Too many prepared writes are queued.
    public static let prepareQueueFull = ATTErrorCode(rawValue: 0x09)
    /// No attribute of the type is in the range.
    public static let attributeNotFound = ATTErrorCode(rawValue: 0x0A)
    /// The attribute cannot be read by Read Blob.
    public static let attributeNotLong = ATTErrorCode(rawValue: 0x0B)
    /// The key that encrypts the link is too short.
    public static let encryptionKeySizeTooShort = ATTErrorCode(rawValue: 0x0C)
    /// The attribute does not allow a value of this length.
    public static let invalidAttributeValueLength = ATTErrorCode(rawValue: 0x0D)
    /// The server failed in a way that no other code describes.
    public static let unlikelyError = ATTErrorCode(rawValue: 0x0E)
    /// The link must be encrypted first.
    public static let insufficientEncryption = ATTErrorCode(rawValue: 0x0F)
    /// The type is not one of a group that the server supports.
    public static let unsupportedGroupType = ATTErrorCode(rawValue: 0x10)
    /// The server lacks the resources for the request.
    public static let insufficientResources = ATTErrorCode(rawValue: 0x11)
    /// The client must discover the server's database again.
    public static let databaseOutOfSync = ATTErrorCode(rawValue: 0x12)
    /// The attribute does not allow this value.
    public static let valueNotAllowed = ATTErrorCode(rawValue: 0x13)
    /// The write is refused for a reason outside the protocol.
    public static let writeRequestRejected = ATTErrorCode(rawValue: 0xFC)
    /// The Client Characteristic Configuration Descriptor is not set as the profile requires.
    public static let cccdImproperlyConfigured = ATTErrorCode(rawValue: 0xFD)
    /// An earlier procedure has not ended yet.
    public static let procedureAlreadyInProgress = ATTErrorCode(rawValue: 0xFE)
    /// The value is outside the range that the profile allows.
    public static let outOfRange = ATTErrorCode(rawValue: 0xFF)

    /// Whether the code is defined by the application: 0x80 to 0x9F.
    @inlinable
    public var isApplicationError: Bool { (0x80...0x9F).contains(rawValue) }
}

extension ATTErrorCode: CustomStringConvertible {
    public var description: String {
        switch self {
        case .invalidHandle: "Invalid Handle"
        case .readNotPermitted: "Read Not Permitted"
        case .writeNotPermitted: "Write Not Permitted"
        case .invalidPDU: "Invalid PDU"
        case .insufficientAuthentication: "Insufficient Authentication"
        case .requestNotSupported: "Request Not Supported"
        case .invalidOffset: "Invalid Offset"
        case .insufficientAuthorization: "Insufficient Authorization"
        case .prepareQueueFull: "Prepare Queue Full"
        case .attributeNotFound: "Attribute Not Found"
        case .attributeNotLong: "Attribute Not Long"
        case .encryptionKeySizeTooShort: "Encryption Key Size Too Short"
        case .invalidAttributeValueLength: "Invalid Attribute Value Length"
        case .unlikelyError: "Unlikely Error"
        case .insufficientEncryption: "Insufficient Encryption"
        case .unsupportedGroupType: "Unsupported Group Type"
        case .insufficientResources: "Insufficient Resources"
        case .databaseOutOfSync: "Database Out Of Sync"
        case .valueNotAllowed: "Value Not Allowed"
        case .writeRequestRejected: "Write Request Rejected"
        case .cccdImproperlyConfigured: "Client Characteristic Configuration Descriptor Improperly Configured"
        case .procedureAlreadyInProgress: "Procedure Already in Progress"
        case .outOfRange: "Out of Range"
        default:
            (isApplicationError ? "Application Error 0x" : "Error 0x") + String(rawValue, radix: 16, uppercase: true)
        }
    }
}
