import BLEATT
import BLEGATT
import BLEHCI
import BluetoothTypes

/// Why the host could not perform an operation.
public enum HostError: Error, Equatable, Sendable {
    /// The controller refused a command or left it unanswered.
    case command(CommandFailure)
    /// The controller failed during bring-up: it reported an error, or the connection to it was lost. The text says
    /// which.
    case controllerFailed(String)
    /// The controller is being brought up again and cannot be used now.
    case notReady
    /// The adapter was closed.
    case closed
    /// The operation exceeded its time limit.
    case timedOut
    /// The operation was cancelled.
    case cancelled
    /// The link has ended, or did not exist.
    case disconnected(DisconnectionReason)
    /// The GATT client's procedure failed.
    case client(ClientError)
    /// An L2CAP channel could not be opened or used.
    case channel(ChannelError)
    /// The link could not be made as secure as required.
    case security(SecurityError)
    /// The saved state could not be used as it was, or changes cannot be saved, and the configuration requires both.
    case stateUnavailable(String)
    /// A broadcast isochronous group cannot be received.
    case broadcast(BroadcastError)
    /// The host or the controller already has as many of something as it can have. The same call succeeds after another
    /// one has ended; the text has the limit.
    case limitReached(String)
    /// The controller does not support the operation.
    case notSupported(String)
    /// An argument is outside the range that the specification allows.
    case invalidArgument(String)
}

extension HostError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .command(let failure): "\(failure)"
        case .controllerFailed(let what): "the controller failed while it was brought up: \(what)"
        case .notReady: "the controller is being brought up; try again in a moment"
        case .closed: "the adapter is closed"
        case .timedOut: "timed out"
        case .cancelled: "cancelled"
        case .disconnected(let reason): "disconnected: \(reason)"
        case .client(let error): "\(error)"
        case .channel(let error): "\(error)"
        case .security(let error): "\(error)"
        case .broadcast(let error): "\(error)"
        case .stateUnavailable(let reason): reason
        case .limitReached(let what): what
        case .notSupported(let what): "not supported: \(what)"
        case .invalidArgument(let what): "invalid argument: \(what)"
        }
    }
}
