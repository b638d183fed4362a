import BLEL2CAP
import BluetoothTypes

/// A channel that has just been opened.
package struct OpenedChannel: Sendable {
    package let identifier: HostChannelIdentifier
    package let psm: SPSM
    /// The address of the peer.
    package let peer: DeviceAddress
}

/// An event of an open channel.
package enum HostChannelEvent: Sendable {
    /// Data can be read and none could before. The next event of this kind follows only after everything was read.
    case readable
    /// The channel accepts data again, after it did not accept all data of a call.
    case hasRoom
    /// The peer has changed the length of the SDUs that it receives.
    case peerReconfigured
    /// The channel has ended; with the received SDUs that were not read. No further event follows.
    case ended(ChannelEnd, unread: [[UInt8]])
}

/// Receives the events of a channel, on the loop. It may call the host.
package typealias ChannelHandler = @Sendable (HostChannelEvent) -> Void

/// Receives a channel that a peer has opened, on the loop, and returns the handler of the channel's events.
package typealias ChannelAcceptor = @Sendable (OpenedChannel) -> ChannelHandler

/// Receives the outcome of a request for a channel, on the loop, and returns the handler of the channel's events.
/// Returning nil closes the channel.
package typealias ChannelCompletion = @Sendable (Result<OpenedChannel, HostError>) -> ChannelHandler?

/// The closures of an app that observe one channel. The channel's ``ChannelEngine`` names them by their token.
///
/// A closure that is no longer needed is moved out of the table and released afterwards. So code of an app that runs at
/// its release finds no access to the host's state in progress.
enum ChannelObserver: Sendable {
    /// The channel is being opened by this host.
    case opening(ChannelCompletion)
    /// The channel was opened by the peer, and the app was not asked for a handler yet.
    case accepting
    case open(ChannelHandler)
}
