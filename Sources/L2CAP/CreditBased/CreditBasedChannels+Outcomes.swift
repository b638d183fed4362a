import ByteCoding

extension CreditBasedChannels {
    /// An event for the owner.
    public enum Event: Equatable, Sendable {
        /// A channel that we requested is open.
        case opened(ChannelIdentifier)
        /// A channel that the peer requested is open.
        case accepted(ChannelIdentifier)
        /// A channel that we requested will not open.
        case failed(ChannelIdentifier, ConnectionFailure)
        /// An SDU is available after none was; read until there is none.
        case received(ChannelIdentifier)
        /// An SDU was refused because the queue was full; there is room now.
        case hasRoom(ChannelIdentifier)
        /// Our reconfiguration was answered, or will not be answered.
        case reconfigurationFinished(ChannelIdentifierList, ReconfigurationOutcome)
        /// The peer has changed the lengths that it receives.
        case peerReconfigured(ChannelIdentifier)
        /// An open channel has ended. The unread SDUs are attached.
        case closed(ChannelIdentifier, CloseReason, unread: [[UInt8]])
    }

    /// The reason why a channel that we requested did not open.
    public enum ConnectionFailure: Error, Equatable, Sendable {
        case refused(CreditBasedConnectionResult)
        /// The peer rejected the command, for example because it does not support it.
        case rejected(CommandReject)
        /// The response reported the channel as open with values out of range, or did not list it.
        case invalidResponse
        /// The peer's endpoint belongs to another channel. That channel has ended too (Vol 3, Part A, 4.23 and 4.26).
        case destinationAlreadyAllocated
        case timedOut
        case linkEnded
        /// We canceled the channel before it was open.
        case canceled
    }

    /// The reason why an open channel has ended.
    public enum CloseReason: Equatable, Sendable {
        case byUs
        case byPeer
        case violation(CreditBasedChannel.Violation)
        /// The identity of the peer is no longer verified; see ``CreditBasedChannels/peerIsUnverified()``.
        case unverifiedPeer
        case linkEnded
    }

    /// The result of our reconfiguration.
    public enum ReconfigurationOutcome: Equatable, Sendable {
        case answered(CreditBasedReconfigureResult)
        case rejected(CommandReject)
        case timedOut
    }

    /// The reason why a channel cannot be requested.
    public enum ConnectionError: Error, Equatable, Sendable {
        case invalidSPSM(SPSM)
        case invalidConfiguration
        /// One request asks for 1 to 5 channels.
        case invalidCount(Int)
        /// The link would have more channels than its limit.
        case tooManyChannels
    }

    /// The reason why a reconfiguration cannot be requested (Vol 3, Part A, 4.27).
    public enum ReconfigurationError: Error, Equatable, Sendable {
        case notOpen(ChannelIdentifier)
        case notEnhanced(ChannelIdentifier)
        /// One request is for 1 to 5 channels, each listed once.
        case invalidChannels
        /// MTU or MPS is out of range.
        case invalidParameters
        case reductionOfMTUNotAllowed
        /// The MPS of several channels would decrease.
        case reductionOfMPSNotAllowed
        /// One of the channels has an unanswered reconfiguration.
        case pending
    }

    /// The outcome of a frame.
    public enum FrameOutcome: Equatable, Sendable {
        case taken
        /// No channel has this identifier.
        case unknownChannel
        /// The channel is opening or ending; its frames are ignored.
        case dropped
        /// The frame violated the rules; the channel ends.
        case violation(CreditBasedChannel.Violation)
    }

    /// The outcome of a signaling command.
    public enum CommandOutcome: Equatable, Sendable {
        /// The command was for the channels and has been processed.
        case handled
        /// It is for ``SignalingChannel``.
        case notForChannels
        /// The command was for the channels but could not be decoded; count it. If it is a request, a refusal is
        /// queued.
        case malformed(PacketDecodingError)
        /// The command was dropped, because too many commands wait to be taken.
        case overloaded
    }
}
