import BLEHCITransport

/// The reason why a host could not be started.
package enum StartError: Error, Equatable, Sendable {
    /// The adapter could not be reached; the transport error describes what to do.
    case transport(TransportError)
    /// The controller could not be brought up.
    case host(HostError)
}

extension StartError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .transport(let error): "\(error)"
        case .host(let error): "\(error)"
        }
    }
}
