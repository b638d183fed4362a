/// Why a request was not carried out (Vol 3, Part F, 3.4.1.1; common profile errors: Core Specification Supplement,
/// Part B).
public struct ErrorCode: RawRepresentable, Hashable, Sendable, Error {
    public let rawValue: UInt8

    @inlinable
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let invalidHandle = ErrorCode(rawValue: 0x01)
    public static let readNotPermitted = ErrorCode(rawValue: 0x02)
    public static let writeNotPermitted = ErrorCode(rawValue: 0x03)
    public static let invalidPDU = ErrorCode(rawValue: 0x04)
    public static let insufficientAuthentication = ErrorCode(rawValue: 0x05)
    public static let requestNotSupported = ErrorCode(rawValue: 0x06)
    public static let invalidOffset = ErrorCode(rawValue: 0x07)
    public static let insufficientAuthorization = ErrorCode(rawValue: 0x08)
    public static let prepareQueueFull = ErrorCode(rawValue: 0x09)
    public static let attributeNotFound = ErrorCode(rawValue: 0x0A)
    public static let attributeNotLong = ErrorCode(rawValue: 0x0B)
    public static let encryptionKeySizeTooShort = ErrorCode(rawValue: 0x0C)
    public static let invalidAttributeValueLength = ErrorCode(rawValue: 0x0D)
    public static let unlikelyError = ErrorCode(rawValue: 0x0E)
    public static let insufficientEncryption = ErrorCode(rawValue: 0x0F)
    public static let unsupportedGroupType = ErrorCode(rawValue: 0x10)
    public static let insufficientResources = ErrorCode(rawValue: 0x11)
    public static let databaseOutOfSync = ErrorCode(rawValue: 0x12)
    public static let valueNotAllowed = ErrorCode(rawValue: 0x13)
    public static let writeRequestRejected = ErrorCode(rawValue: 0xFC)
    public static let cccdImproperlyConfigured = ErrorCode(rawValue: 0xFD)
    public static let procedureAlreadyInProgress = ErrorCode(rawValue: 0xFE)
    public static let outOfRange = ErrorCode(rawValue: 0xFF)

    /// Whether the code is one that the application above defines: 0x80 to 0x9F.
    @inlinable
    public var isApplicationError: Bool { (0x80...0x9F).contains(rawValue) }
}

extension ErrorCode: CustomStringConvertible {
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
