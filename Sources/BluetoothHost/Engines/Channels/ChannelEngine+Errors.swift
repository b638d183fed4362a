import BLEL2CAP

// The errors of L2CAP as apps receive them.
extension HostError {
    static let invalidChannelLengths = HostError.invalidArgument(
        "a channel's MTU is 23 to 65535 bytes, its MPS 23 to 65533"
    )

    static func invalidPSM(_ psm: SPSM) -> HostError {
        .invalidArgument("a PSM is 1 to 255, not \(psm.rawValue)")
    }

    init(_ error: CreditBasedChannels.ConnectionError) {
        self =
            switch error {
            case .invalidSPSM(let psm): .invalidPSM(psm)
            case .invalidConfiguration: .invalidChannelLengths
            case .invalidCount(let count): .invalidArgument("one request is for 1 to 5 channels, not \(count)")
            case .tooManyChannels: .channel(.tooManyChannels)
            }
    }

    /// - Parameter end: why the link has ended, if it has.
    init(_ failure: CreditBasedChannels.ConnectionFailure, _ end: DisconnectionReason) {
        self =
            switch failure {
            case .refused(let result): .channel(.refused(result))
            case .rejected: .channel(.notUnderstood)
            case .invalidResponse, .destinationAlreadyAllocated: .channel(.invalidResponse)
            case .timedOut: .timedOut
            case .canceled: .cancelled
            case .linkEnded: .disconnected(end)
            }
    }

    init(_ error: CreditBasedChannels.ReconfigurationError) {
        self =
            switch error {
            case .notEnhanced: .notSupported("only enhanced channels are reconfigured")
            case .pending: .notReady
            case .notOpen: .channel(.ended(.byUs))
            case .reductionOfMTUNotAllowed, .reductionOfMPSNotAllowed, .invalidChannels, .invalidParameters:
                .invalidArgument("a channel's MTU cannot be reduced, and both lengths are 64 or more")
            }
    }
}

extension CreditBasedChannels.ReconfigurationOutcome {
    /// Nil if the peer has agreed.
    var failure: HostError? {
        switch self {
        case .answered(.successful): nil
        case .answered(let result): .channel(.reconfigurationRefused(result))
        case .rejected: .channel(.notUnderstood)
        case .timedOut: .timedOut
        }
    }
}

extension ChannelEnd {
    /// - Parameter end: why the link has ended, if it has.
    init(_ reason: CreditBasedChannels.CloseReason, _ end: DisconnectionReason) {
        self =
            switch reason {
            case .byUs: .byUs
            case .byPeer: .byPeer
            case .violation(let violation): .violation(violation)
            case .unverifiedPeer: .unverifiedPeer
            case .linkEnded: .disconnected(end)
            }
    }
}
