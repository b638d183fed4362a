import BluetoothTypes
import L2CAP

/// Names one L2CAP channel for as long as the host lives; a channel identifier is used again.
package struct HostChannelIdentifier: Hashable, Sendable {
    package let link: LinkIdentifier
    let channel: ChannelIdentifier
    let number: UInt64
}

/// A channel that has just been opened.
package struct OpenedChannel: Sendable {
    package let identifier: HostChannelIdentifier
    package let psm: SPSM
    /// Who is at the other end.
    package let peer: DeviceAddress
}

/// A channel as it is.
package struct ChannelInformation: Hashable, Sendable {
    /// The longest SDU that we receive, in octets.
    package let mtu: Int
    /// The longest K-frame payload that we receive, in octets.
    package let mps: Int
    /// The longest SDU that the peer receives, in octets.
    package let peerMTU: Int
    /// The longest K-frame payload that the peer receives, in octets.
    package let peerMPS: Int
    /// How many SDUs wait to be read.
    package let unreadCount: Int
    /// How many SDUs are not sent whole yet.
    package let unsentCount: Int
}

/// What happens on an open channel.
package enum HostChannelEvent: Sendable {
    /// Something can be read where nothing could; read until there is nothing.
    case readable
    /// There is room where something was not taken for want of it.
    case hasRoom
    /// The peer receives SDUs of another length from now on.
    case peerReconfigured
    /// The channel has ended; what had come and was not read is here. The last event.
    case ended(ChannelEnd, unread: [[UInt8]])
}

/// Is told on the loop what happens on a channel. It may use the host.
package typealias ChannelHandler = @Sendable (HostChannelEvent) -> Void

/// Takes a channel that a peer has opened over, and gives who is told what happens on it. Called on the loop.
package typealias ChannelAcceptor = @Sendable (OpenedChannel) -> ChannelHandler

/// Takes what came of a request for a channel, and gives who is told what happens on it; nil gives it up. Called on the loop.
package typealias ChannelCompletion = @Sendable (Result<OpenedChannel, HostError>) -> ChannelHandler?

/// Who has a channel of a link, or waits for it.
struct ChannelUse {
    enum Phase {
        case opening(ChannelCompletion)
        case open(ChannelHandler)
    }

    let number: UInt64
    let psm: SPSM
    var phase: Phase
    /// The call that waits for the outcome of a reconfiguration.
    var reconfiguration: CallToken?

    mutating func removeReconfiguration(_ call: CallToken) {
        if reconfiguration == call { reconfiguration = nil }
    }
}
