import BLEATT
import BLEByteCoding
import BluetoothTypes

/// The reason why a GATT procedure failed.
public enum ClientError: Error, Hashable, Sendable {
    /// The server answered with an Error Response.
    case attribute(ATTErrorCode, handle: AttributeHandle, request: ATTOpcode)
    /// The server's response could not be read.
    case malformedResponse(ATTOpcode)
    /// The server answered with handles that are outside the requested range or not in rising order.
    case handlesOutOfOrder(ATTOpcode)
    /// The server echoed another value than was prepared; nothing was written (Vol 3, Part G, 4.9.5).
    case valueMismatch(handle: AttributeHandle)
    /// The server has more attributes than one procedure accepts (``DiscoveryLimits/attributes``).
    case tooManyAttributes(limit: Int)
    /// The procedure did not finish within the number of requests that it may send (``DiscoveryLimits/requests``).
    case tooManyRequests(limit: Int)
    /// The bearer failed or the connection ended before the procedure finished.
    case bearerClosed
    /// The caller cancelled the procedure, or asked for its outcome before it had one.
    case cancelled
    /// The request cannot be sent with these arguments.
    case invalidArgument
    /// The server has changed an attribute that the procedure uses (Vol 3, Part G, 2.5.2). Another attribute may have
    /// its handle now. So the procedure was ended, or not started.
    case attributesChanged
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
        case .attributesChanged: "the peer has changed the attribute; discover its services again"
        }
    }

    /// The advice for a server whose whole database cannot be discovered.
    private static let discoveryAdvice = "use attributes by their handles, or discover single services"
}
