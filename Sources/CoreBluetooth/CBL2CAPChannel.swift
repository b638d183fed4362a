import Foundation

/// The number of a service on connection-oriented L2CAP channels (Vol 3, Part A, 4.22).
public typealias CBL2CAPPSM = UInt16

/// A connection-oriented L2CAP channel to a peer. It closes when both streams are closed or released.
open class CBL2CAPChannel: NSObject, @unchecked Sendable {
    // @unchecked: the class is open, which the compiler does not check; its streams lock their state.

    /// The device at the other end.
    public let peer: CBPeer!
    /// The data that the peer sends. The app schedules and opens the stream.
    public let inputStream: InputStream!
    /// The data that the app sends to the peer. The app schedules and opens the stream.
    public let outputStream: OutputStream!
    /// The number of the service: the peripheral's for a channel that this host opened, otherwise this host's own.
    public let psm: CBL2CAPPSM

    init(peer: CBPeer, psm: CBL2CAPPSM, streams: ChannelStreams) {
        self.peer = peer
        self.psm = psm
        inputStream = streams.input
        outputStream = streams.output
    }
}
