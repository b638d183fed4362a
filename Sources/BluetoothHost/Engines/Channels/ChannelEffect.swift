import BLEByteCoding
import BLEL2CAP

/// What the caller of a ``ChannelEngine`` does, in the order of ``ChannelEngine/nextEffect()``.
///
/// Calls of apps' closures are deliveries of their own. So each effect is performed before the next input.
enum ChannelEffect: Equatable {
    /// A channel that the app requested is open. If the app does not take it, call ``ChannelEngine/reject(_:)``.
    case opened(ObserverToken, HostChannelIdentifier, SPSM)
    /// A channel that the app requested was not opened. The observer has ended.
    case failed(ObserverToken, HostError)
    /// The peer has opened a channel. Call ``ChannelEngine/observe(_:_:)``, or ``ChannelEngine/reject(_:)`` if no app
    /// takes it.
    case accepted(HostChannelIdentifier, SPSM)
    /// Data can be read and none could before.
    case readable(ObserverToken)
    /// The channel accepts data again.
    case hasRoom(ObserverToken)
    /// The peer has changed the length of the SDUs that it receives.
    case peerReconfigured(ObserverToken)
    /// An open channel has ended, with the received SDUs that were not read. The observer has ended.
    case ended(ObserverToken, ChannelEnd, unread: [[UInt8]])
    /// End a call: with success, or with this error.
    case finish(CallToken, HostError?)
}

/// What the caller of a ``ChannelEngine`` does after a frame on the signaling channel.
enum SignalingOutcome: Equatable {
    /// Nothing.
    case none
    /// The command was for the credit-based channels: take their commands, frames and effects.
    case forChannels
    /// Send the command in the buffer.
    case send
    /// The command could not be decoded: count it.
    case malformed(PacketDecodingError)
    /// The command could not be decoded: count it, and send the Command Reject in the buffer.
    case rejected(PacketDecodingError)
    /// The command was for the credit-based channels and could not be decoded: count it, and continue as after
    /// ``forChannels``.
    case malformedForChannels(PacketDecodingError)
    /// The command was dropped, because too many answers wait to be sent: count it.
    case overloaded
    /// The peer, a peripheral, requests these parameters: send the acceptance in the buffer, then begin the update.
    case parameterUpdateRequested(ConnectionParameterUpdateRequest)
    /// The request of this peripheral was answered; nil if it was rejected as a command.
    case parameterUpdateFinished(ConnectionParameterUpdateResponse?)
}
