import ATT
import BluetoothTypes
import ByteCoding

/// Why a GATT procedure did not succeed.
public enum ClientError: Error, Hashable, Sendable {
    /// The server answered with an Error Response.
    case attribute(ATT.ErrorCode, handle: AttributeHandle, request: Opcode)
    /// The server's response could not be read.
    case malformedResponse(Opcode)
    /// The server answered with handles that it was not asked for, or that do not rise.
    case handlesOutOfOrder(Opcode)
    /// The server gave back another value than was prepared; nothing was written (Vol 3, Part G, 4.9.5).
    case valueMismatch(handle: AttributeHandle)
    /// The server has more attributes than one procedure takes (``DiscoveryLimits/attributes``).
    case tooManyAttributes(limit: Int)
    /// The server has not given all in as many requests as one procedure sends (``DiscoveryLimits/requests``).
    case tooManyRequests(limit: Int)
    /// The bearer died or the link went before the procedure was done.
    case bearerClosed
    case cancelled
    /// What was asked cannot be sent.
    case invalidArgument
}

extension ClientError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .attribute(let error, let handle, _): "\(error) (attribute \(handle))"
        case .malformedResponse(let opcode): "the peer's answer to \(opcode) is malformed"
        case .handlesOutOfOrder(let opcode): "the peer's answer to \(opcode) has handles out of order"
        case .valueMismatch(let handle):
            "the peer understood another value for attribute \(handle); nothing was written"
        case .tooManyAttributes(let limit):
            "the peer has more than \(limit) attributes and discovery was stopped; \(ClientError.discoveryAdvice)"
        case .tooManyRequests(let limit):
            "discovery was stopped after \(limit) requests that did not reach the end; \(ClientError.discoveryAdvice)"
        case .bearerClosed: "the link was lost"
        case .cancelled: "cancelled"
        case .invalidArgument: "the request cannot be sent as it is"
        }
    }

    /// What can be done if a whole database cannot be discovered.
    private static let discoveryAdvice = "use attributes by their handles, or discover single services"
}
