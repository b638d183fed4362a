/// Why a session ends.
public enum SessionEnd: Hashable, Sendable {
    /// The client asked for it.
    case clientDisconnected
    /// The client closed the connection without asking, or the network failed.
    case connectionLost
    /// The client broke the protocol.
    case protocolError(ProtocolError)
    /// The client does not use encryption, but the server requires it.
    case clientWithoutEncryption
    /// The client uses encryption, but the server does not.
    case clientWithEncryption
    /// The client did not finish the handshake and Hello in time.
    case handshakeTimedOut
    /// The client did not answer a ping.
    case unresponsive
    /// The client does not read what it is sent.
    case slowClient
    /// The client had not greeted, and newer ones needed its place.
    case displaced
    /// There are as many clients as there may be.
    case tooManyClients
    /// The server stops.
    case serverStopped

    /// A name for counters.
    public var label: String {
        switch self {
        case .clientDisconnected: "client_disconnected"
        case .connectionLost: "connection_lost"
        case .protocolError(.wrongKey): "wrong_key"
        case .protocolError(.oversizedFrame): "oversized_frame"
        case .protocolError(.malformedHandshake): "malformed_handshake"
        case .protocolError(.failedDecryption): "failed_decryption"
        case .protocolError(.undecodableMessage): "undecodable_message"
        case .protocolError(.requestBeforeHello): "request_before_hello"
        case .protocolError: "malformed_frame"
        case .clientWithoutEncryption: "client_without_encryption"
        case .clientWithEncryption: "client_with_encryption"
        case .handshakeTimedOut: "handshake_timeout"
        case .unresponsive: "unresponsive"
        case .slowClient: "slow_client"
        case .displaced: "displaced"
        case .tooManyClients: "too_many_clients"
        case .serverStopped: "server_stopped"
        }
    }
}

extension SessionEnd: CustomStringConvertible {
    public var description: String {
        switch self {
        case .clientDisconnected: "the client disconnected"
        case .connectionLost: "the connection was lost"
        case .protocolError(let error): "\(error)"
        case .clientWithoutEncryption: "the client uses no encryption; set the key of this gateway in the client"
        case .clientWithEncryption: "the client uses encryption, but this gateway runs without it"
        case .handshakeTimedOut: "the client did not finish the handshake in time"
        case .unresponsive: "the client does not respond"
        case .slowClient: "the client does not read what it is sent"
        case .displaced: "the client had not finished the handshake, and newer ones needed its place"
        case .tooManyClients: "there are too many clients"
        case .serverStopped: "the gateway stops"
        }
    }
}
