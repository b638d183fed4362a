import BLEATT
import BLEHCI
import BluetoothHost
import BluetoothTypes

/// The reason why an operation failed. The description gives it in one line, with advice if there is any.
public enum BLEError: Error, Hashable, Sendable {
    /// The controller cannot be reached.
    case adapter(TransportError)
    /// The controller refused a command or did not answer it.
    case controllerFailed(String)
    /// The adapter is being brought up again after a failure.
    case notReady
    /// The adapter was closed.
    case closed
    /// The operation timed out; the text says which.
    case timedOut(String)
    /// The task was cancelled.
    case cancelled
    /// The link has ended.
    case disconnected(DisconnectionReason)
    /// The peer answered with an error of the Attribute Protocol.
    case attribute(ATTErrorCode, handle: AttributeHandle)
    /// The peer broke the protocol.
    case malformedResponse(String)
    /// The peer does not have the attribute.
    case notFound(MissingAttribute, peer: DeviceAddress)
    /// An L2CAP channel could not be opened or used, or has ended.
    case channel(ChannelError)
    /// A link could not be made as secure as it has to be.
    case security(SecurityError)
    /// Saved state could not be used as it was found, or changes cannot be saved
    /// (``Adapter/Configuration/requiresState``).
    case stateUnavailable(String)
    /// A broadcast isochronous group cannot be received.
    case broadcast(BroadcastError)
    /// The host or the controller already has as many of something as it can have. The same call succeeds after another
    /// one has ended; the text has the limit.
    case limitReached(String)
    /// The controller or the characteristic cannot do it.
    case notSupported(String)
    /// An argument is out of its range, or contradicts another one; the text says which.
    case invalidArgument(String)
}

extension BLEError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .adapter(let error): "\(error)"
        case .controllerFailed(let what): what
        case .notReady: "the controller is being brought up again; try again in a moment"
        case .closed: "the adapter is closed"
        case .timedOut(let what): "timed out: \(what)"
        case .cancelled: "cancelled"
        case .disconnected(let reason): "disconnected: \(reason)"
        case .attribute(let error, let handle): "the peer answered: \(error) (attribute \(handle))"
        case .malformedResponse(let what): what
        case .notFound(let attribute, let peer): "\(peer) has no \(attribute)"
        case .channel(let error): "\(error)"
        case .security(let error): "\(error)"
        case .broadcast(let error): "\(error)"
        case .stateUnavailable(let reason): reason
        case .limitReached(let what): what
        case .notSupported(let what): "not supported: \(what)"
        case .invalidArgument(let what): what
        }
    }
}

extension BLEError {
    /// - Parameter what: the operation that timed out, if one did.
    init(_ error: HostError, doing what: @autoclosure () -> String = "the operation") {
        self =
            switch error {
            case .command(let failure): .controllerFailed("\(failure)")
            case .controllerFailed: .controllerFailed("\(error)")
            case .notReady: .notReady
            case .closed: .closed
            case .timedOut: .timedOut(what())
            case .cancelled: .cancelled
            case .disconnected(let reason): .disconnected(reason)
            case .client(.attribute(let code, let handle, _)): .attribute(code, handle: handle)
            case .client(.cancelled): .cancelled
            case .client(.invalidArgument): .invalidArgument("\(error)")
            case .client(let error): .malformedResponse("\(error)")
            case .channel(let error): .channel(error)
            case .security(let error): .security(error)
            case .broadcast(let error): .broadcast(error)
            case .stateUnavailable(let reason): .stateUnavailable(reason)
            case .limitReached(let what): .limitReached(what)
            case .notSupported(let what): .notSupported(what)
            case .invalidArgument(let what): .invalidArgument(what)
            }
    }
}

extension BLEError {
    init(_ error: StartError) {
        self =
            switch error {
            case .transport(let error): .adapter(error)
            case .host(let error): BLEError(error, doing: "bringing the controller up")
            }
    }
}

/// Runs `body` and converts its errors to ``BLEError``.
nonisolated(nonsending) func translating<Value>(
    _ what: @autoclosure () -> String = "the operation",
    _ body: nonisolated(nonsending) () async throws(HostError) -> Value
) async throws(BLEError) -> Value {
    do throws(HostError) {
        return try await body()
    } catch {
        throw BLEError(error, doing: what())
    }
}
