import BLESMP

/// The outcome of a suspended call.
enum CallOutcome: Sendable {
    /// The call succeeded, and returns nothing.
    case success
    /// A procedure has ended; its run has the result.
    case ended(elevationFailure: HostError? = nil)
    case connected(LinkIdentifier)
    case secured(KeyStrength)
    case transmitPower(TransmitPower)
    /// The call failed. A procedure was not started.
    case failure(HostError)

    /// Why the link could not be made as secure as the server requires, if the procedure failed for it.
    var elevationFailure: HostError? {
        if case .ended(let failure) = self { failure } else { nil }
    }

    init(_ result: Result<Void, HostError>) {
        switch result {
        case .success: self = .success
        case .failure(let error): self = .failure(error)
        }
    }
}
