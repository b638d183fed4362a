import BLEL2CAP

/// The identifier of one L2CAP channel, unique during the host's life. Channel identifiers of L2CAP are reused.
package struct HostChannelIdentifier: Hashable, Sendable {
    package let link: LinkIdentifier
    let channel: ChannelIdentifier
    let number: UInt64
}
