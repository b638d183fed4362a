import Foundation

/// Names a connection-oriented L2CAP channel's service (Vol 3, Part A, 4.22).
public typealias CBL2CAPPSM = UInt16

/// A connection-oriented L2CAP channel to a peer. It is closed when nobody keeps it.
open class CBL2CAPChannel: NSObject, @unchecked Sendable {
    // @unchecked: the class is open, which the compiler does not check; its streams lock their state.

    /// The device at the other end.
    public let peer: CBPeer!
    /// What the peer sends: to be scheduled and opened by the app.
    public let inputStream: InputStream!
    /// What is sent to the peer: to be scheduled and opened by the app.
    public let outputStream: OutputStream!
    public let psm: CBL2CAPPSM

    init(peer: CBPeer, psm: CBL2CAPPSM, streams: ChannelStreams) {
        self.peer = peer
        self.psm = psm
        inputStream = streams.input
        outputStream = streams.output
    }
}
