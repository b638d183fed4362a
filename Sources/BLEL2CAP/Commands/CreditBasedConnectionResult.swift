/// The result of a request for credit-based channels (Vol 3, Part A, 4.23 and 4.26).
///
/// Both variants share the values. In the enhanced variant, some values mean that all channels were refused. Others
/// mean that only the channels without a destination were refused. Only the enhanced variant has the last four values.
public struct CreditBasedConnectionResult: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt16

    @inlinable
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// All requested channels are open.
    public static let successful = CreditBasedConnectionResult(rawValue: 0x0000)
    /// No service has this SPSM.
    public static let spsmNotSupported = CreditBasedConnectionResult(rawValue: 0x0002)
    /// Refused, or some refused: insufficient resources available.
    public static let noResourcesAvailable = CreditBasedConnectionResult(rawValue: 0x0004)
    /// Refused: the link's key is not authenticated as the service requires, or there is no key to encrypt the link
    /// with.
    public static let insufficientAuthentication = CreditBasedConnectionResult(rawValue: 0x0005)
    /// Refused: the service requires authorization, and the requesting device is not authorized.
    public static let insufficientAuthorization = CreditBasedConnectionResult(rawValue: 0x0006)
    /// Refused: the link's encryption key is shorter than the service requires.
    public static let encryptionKeySizeTooShort = CreditBasedConnectionResult(rawValue: 0x0007)
    /// Refused: the service requires encryption. There is a key, but the link is not encrypted with it.
    public static let insufficientEncryption = CreditBasedConnectionResult(rawValue: 0x0008)
    /// Refused, or some refused: a source CID outside the dynamic range.
    public static let invalidSourceCID = CreditBasedConnectionResult(rawValue: 0x0009)
    /// Refused, or some refused: a source CID that the peer already uses for another channel.
    public static let sourceCIDAlreadyAllocated = CreditBasedConnectionResult(rawValue: 0x000A)
    /// Refused: a parameter of the request, for example the MTU or MPS, is not acceptable to the responding device.
    public static let unacceptableParameters = CreditBasedConnectionResult(rawValue: 0x000B)
    /// Enhanced only: all refused, because the request itself is invalid.
    public static let invalidParameters = CreditBasedConnectionResult(rawValue: 0x000C)
    /// Enhanced only: all pending, no further information available.
    public static let pending = CreditBasedConnectionResult(rawValue: 0x000D)
    /// Enhanced only: all pending authentication.
    public static let authenticationPending = CreditBasedConnectionResult(rawValue: 0x000E)
    /// Enhanced only: all pending authorization.
    public static let authorizationPending = CreditBasedConnectionResult(rawValue: 0x000F)

    /// Whether another response with the same identifier follows.
    public var isPending: Bool {
        self == .pending || self == .authenticationPending || self == .authorizationPending
    }

    /// Whether a response of the enhanced variant may list open channels. The result is then the reason for the refused
    /// ones.
    var allowsChannels: Bool {
        switch self {
        case .successful, .noResourcesAvailable, .invalidSourceCID, .sourceCIDAlreadyAllocated: true
        default: false
        }
    }
}

extension CreditBasedConnectionResult: CustomStringConvertible {
    public var description: String {
        switch self {
        case .successful: "successful"
        case .spsmNotSupported: "SPSM not supported"
        case .noResourcesAvailable: "no resources available"
        case .insufficientAuthentication: "insufficient authentication"
        case .insufficientAuthorization: "insufficient authorization"
        case .encryptionKeySizeTooShort: "encryption key size too short"
        case .insufficientEncryption: "insufficient encryption"
        case .invalidSourceCID: "invalid source CID"
        case .sourceCIDAlreadyAllocated: "source CID already allocated"
        case .unacceptableParameters: "unacceptable parameters"
        case .invalidParameters: "invalid parameters"
        case .pending: "pending"
        case .authenticationPending: "authentication pending"
        case .authorizationPending: "authorization pending"
        default: "result 0x\(String(rawValue, radix: 16, uppercase: true))"
        }
    }
}
