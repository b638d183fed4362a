import BluetoothTypes
import L2CAP

/// The identifier of one L2CAP channel, unique during the host's life. Channel identifiers of L2CAP are reused.
package struct HostChannelIdentifier: Hashable, Sendable {
    package let link: LinkIdentifier
    let channel: ChannelIdentifier
    let number: UInt64
}

/// A channel that has just been opened.
package struct OpenedChannel: Sendable {
    package let identifier: HostChannelIdentifier
    package let psm: SPSM
    /// The address of the peer.
    package let peer: DeviceAddress
}

/// The current properties of a channel.
package struct ChannelInformation: Hashable, Sendable {
    /// The longest SDU that this host receives, in bytes.
    package let mtu: Int
    /// The longest K-frame payload that this host receives, in bytes.
    package let mps: Int
    /// The longest SDU that the peer receives, in bytes.
    package let peerMTU: Int
    /// The longest K-frame payload that the peer receives, in bytes.
    package let peerMPS: Int
    /// The number of received SDUs that were not read yet.
    package let unreadCount: Int
    /// The number of SDUs that are not completely sent yet.
    package let unsentCount: Int
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
/// A closure that is no longer needed is moved out of the table and released afterwards. So code of an app that runs at its
/// release finds no access to the host's state in progress.
enum ChannelObserver: Sendable {
    /// The channel is being opened by this host.
    case opening(ChannelCompletion)
    /// The channel was opened by the peer, and the app was not asked for a handler yet.
    case accepting
    case open(ChannelHandler)
}
