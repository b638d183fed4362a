import Foundation

/// A reference that keeps a peer in the ``PeerDirectory`` for as long as a copy of it lives.
///
/// Each object that represents a peer has one, such as a `CBPeripheral` that the app keeps. All holds are equal, so
/// that descriptions of peers compare by their contents.
struct PeerHold: Hashable, Sendable {
    /// The directory has a reference to the token of each peer, and keeps the peer while there is another reference.
    final class Token: Sendable {}

    private let token: Token?

    /// - Parameter token: the token of the peer; nil for a peer that is in no directory.
    init(_ token: Token? = nil) {
        self.token = token
    }

    static func == (first: PeerHold, second: PeerHold) -> Bool { true }

    func hash(into hasher: inout Hasher) {}
}

/// The identifier of a peer, and a hold that keeps the peer in the directory.
struct HeldPeer: Sendable {
    let identifier: UUID
    /// Empty if the peer is in no directory.
    var hold = PeerHold()
}
