import ByteCoding

extension CreditBasedChannels {
    /// What the owner is to know.
    public enum Event: Equatable, Sendable {
        /// A channel that we asked for is open.
        case opened(ChannelIdentifier)
        /// A channel that the peer asked for is open.
        case accepted(ChannelIdentifier)
        /// A channel that we asked for will not be opened.
        case failed(ChannelIdentifier, ConnectionFailure)
        /// An SDU can be read where none could before; read until there is none.
        case received(ChannelIdentifier)
        /// There is room for SDUs where one was refused for want of it.
        case hasRoom(ChannelIdentifier)
        /// Our reconfiguration was answered, or will not be.
        case reconfigurationFinished(ChannelIdentifierList, ReconfigurationOutcome)
        /// The peer receives other lengths from now on.
        case peerReconfigured(ChannelIdentifier)
        /// A channel that was open has ended. What had come and was not read is here.
        case closed(ChannelIdentifier, CloseReason, unread: [[UInt8]])
    }

    /// Why a channel that we asked for was not opened.
    public enum ConnectionFailure: Error, Equatable, Sendable {
        case refused(CreditBasedConnectionResult)
        /// The peer does not know the command, for example.
        case rejected(CommandReject)
        /// The response said that the channel was made, but with values out of range, or did not speak of it.
        case invalidResponse
        /// The peer gave an end that is another channel's; that one has ended too (Vol 3, Part A, 4.23 and 4.26).
        case destinationAlreadyAllocated
        case timedOut
        case linkEnded
        /// We gave the channel up before it was open.
        case canceled
    }

    /// Why a channel that was open has ended.
    public enum CloseReason: Equatable, Sendable {
        case byUs
        case byPeer
        case violation(CreditBasedChannel.Violation)
        /// The identity of the peer is not verified any more; see ``CreditBasedChannels/peerIsUnverified()``.
        case unverifiedPeer
        case linkEnded
    }

    /// What came of our reconfiguration.
    public enum ReconfigurationOutcome: Equatable, Sendable {
        case answered(CreditBasedReconfigureResult)
        case rejected(CommandReject)
        case timedOut
    }

    /// A channel cannot be asked for.
    public enum ConnectionError: Error, Equatable, Sendable {
        case invalidSPSM(SPSM)
        case invalidConfiguration
        /// One request asks for 1 to 5 channels.
        case invalidCount(Int)
        /// The link would have more channels than its limit.
        case tooManyChannels
    }

    /// A reconfiguration cannot be asked for (Vol 3, Part A, 4.27).
    public enum ReconfigurationError: Error, Equatable, Sendable {
        case notOpen(ChannelIdentifier)
        case notEnhanced(ChannelIdentifier)
        /// One request is for 1 to 5 channels, each named once.
        case invalidChannels
        /// MTU or MPS is out of range.
        case invalidParameters
        case reductionOfMTUNotAllowed
        /// The MPS of several channels at once.
        case reductionOfMPSNotAllowed
        /// One of the channels has a reconfiguration that was not answered yet.
        case pending
    }

    /// What came of a frame.
    public enum FrameOutcome: Equatable, Sendable {
        case taken
        /// No channel has this name.
        case unknownChannel
        /// The channel is being made or ended; what comes on it then means nothing.
        case dropped
        /// The frame broke the rules; the channel ends.
        case violation(CreditBasedChannel.Violation)
    }

    /// What came of a signalling command.
    public enum CommandOutcome: Equatable, Sendable {
        /// It was for the channels, and has been acted upon.
        case handled
        /// It is for ``SignalingChannel``.
        case notForChannels
        /// It was for the channels but could not be read. Count it. A request is refused; its answer waits to be sent.
        case malformed(PacketDecodingError)
        /// It was let go, since too many answers wait to be taken.
        case overloaded
    }
}
