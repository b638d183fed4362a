import BLEByteCoding

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
        /// The peer's response refused the channel with this result.
        case refused(CreditBasedConnectionResult)
        /// The peer rejected the command, for example because it does not support it.
        case rejected(CommandReject)
        /// The response reported the channel as open with values out of range, or did not list it.
        case invalidResponse
        /// The peer's endpoint belongs to another channel. That channel has ended too (Vol 3, Part A, 4.23 and 4.26).
        case destinationAlreadyAllocated
        /// The peer did not respond in time: 30 s, or 60 s after it had answered that the request is pending.
        case timedOut
        /// The connection ended before the channel was open.
        case linkEnded
        /// We canceled the channel before it was open.
        case canceled
    }

    /// The reason why an open channel has ended.
    public enum CloseReason: Equatable, Sendable {
        /// This device ended the channel: see ``CreditBasedChannels/disconnect(_:)`` and
        /// ``CreditBasedChannels/finish(_:)``.
        case byUs
        /// The peer sent a Disconnection Request.
        case byPeer
        /// This device ended the channel because the peer violated the protocol.
        case violation(CreditBasedChannel.Violation)
        /// The identity of the peer is no longer verified; see ``CreditBasedChannels/peerIsUnverified()``.
        case unverifiedPeer
        /// The connection ended.
        case linkEnded
    }

    /// The result of our reconfiguration.
    public enum ReconfigurationOutcome: Equatable, Sendable {
        /// The peer responded. The new lengths apply only if the result is ``CreditBasedReconfigureResult/successful``.
        case answered(CreditBasedReconfigureResult)
        /// The peer rejected the command; the former lengths still apply.
        case rejected(CommandReject)
        /// The peer did not respond within 30 s, or has not used its credits for 30 s, so that the request was not
        /// sent. The former lengths still apply.
        case timedOut
    }

    /// The reason why a channel cannot be requested.
    public enum ConnectionError: Error, Equatable, Sendable {
        /// The SPSM is in neither of the two ranges of ``SPSM``.
        case invalidSPSM(SPSM)
        /// MTU or MPS is out of range; see ``CreditBasedChannel/Configuration/isValid``.
        case invalidConfiguration
        /// One request asks for 1 to 5 channels.
        case invalidCount(Int)
        /// The link would have more channels than its limit.
        case tooManyChannels
    }

    /// The reason why a reconfiguration cannot be requested (Vol 3, Part A, 4.27).
    public enum ReconfigurationError: Error, Equatable, Sendable {
        /// This channel does not exist, or it is opening or ending.
        case notOpen(ChannelIdentifier)
        /// This channel has the variant ``CreditBasedChannel/Variant/le``, whose lengths cannot be changed.
        case notEnhanced(ChannelIdentifier)
        /// One request is for 1 to 5 channels, each listed once.
        case invalidChannels
        /// MTU or MPS is out of range.
        case invalidParameters
        /// The MTU of a channel would decrease.
        case reductionOfMTUNotAllowed
        /// The MPS of several channels would decrease.
        case reductionOfMPSNotAllowed
        /// One of the channels has an unanswered reconfiguration.
        case pending
    }

    /// The outcome of a frame.
    public enum FrameOutcome: Equatable, Sendable {
        /// The frame was for an open channel and has been processed.
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
