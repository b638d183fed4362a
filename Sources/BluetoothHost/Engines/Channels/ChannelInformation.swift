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
    /// The number of bytes of SDUs that are not sent yet.
    package let unsentByteCount: Int
}
