/// Keeps a peer in the ``PeerDirectory`` for as long as a copy of the hold lives.
///
/// Each object that stands for a peer has one, such as a `CBPeripheral` that the app keeps. All holds are equal, so
/// that descriptions of peers compare by their contents.
struct PeerHold: Hashable, Sendable {
    /// The directory has a reference to it for each peer, and keeps the peer while there is another one.
    final class Token: Sendable {}

    private let token: Token?

    /// - Parameter token: the token of the peer; nil for a peer of no directory.
    init(_ token: Token? = nil) {
        self.token = token
    }

    static func == (first: PeerHold, second: PeerHold) -> Bool { true }

    func hash(into hasher: inout Hasher) {}
}
