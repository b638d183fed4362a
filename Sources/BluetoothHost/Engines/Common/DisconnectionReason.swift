import BLEHCI

/// Why a link has ended.
public enum DisconnectionReason: Error, Hashable, Sendable {
    /// The link ended with this error code (Vol 1, Part F), which is usually the controller's.
    /// `connectionTerminatedByLocalHost` means that this host ended the link. `authenticationFailure` may mean that
    /// this host ended a link or a stream, because the peer is not verified.
    case controller(HCIErrorCode)
    /// The controller failed and was reset, which ends every link; the text describes the failure.
    case controllerReset(String)
    /// The peer left a request of the Attribute Protocol unanswered for 30 seconds (Vol 3, Part F, 3.3.3).
    case attributeTransactionTimeout
    /// The controller accepted packets for the link and neither sent them nor ended the link.
    case transmissionStalled
    /// The peer kept sending requests without taking the answers, and the host ended the link.
    case peerFlooding
    /// The adapter was closed.
    case adapterClosed

    /// Whether this host ended the link on request of an app.
    public var isLocal: Bool {
        self == .controller(.connectionTerminatedByLocalHost) || self == .adapterClosed
    }
}

extension DisconnectionReason: CustomStringConvertible {
    public var description: String {
        switch self {
        case .controller(let error): "\(error)"
        case .controllerReset(let cause): "controller reset: \(cause)"
        case .attributeTransactionTimeout: "the peer did not answer an attribute request within 30 seconds"
        case .transmissionStalled: "the controller no longer sends packets"
        case .peerFlooding: "the peer sent requests without receiving the answers"
        case .adapterClosed: "the adapter was closed"
        }
    }
}
