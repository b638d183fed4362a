import BluetoothHost
import Foundation
import KeyStore

/// An open host, and what the engines of its managers share.
final class OpenHost: Sendable {
    let host: BluetoothHost
    let store: KeyStore
    let peers: PeerDirectory
    let links: SharedLinks
    let restoration: Restoration
    /// The time of day, for what apps are told.
    let wallClock: @Sendable () -> CFAbsoluteTime
    /// Lets the adapter go; nil where that is somebody else's.
    let close: (@Sendable () async -> Void)?

    /// - Parameter makeIdentifier: makes identifiers for peers that are new.
    init(
        _ host: BluetoothHost,
        store: KeyStore,
        makeIdentifier: @escaping @Sendable () -> UUID = { UUID() },
        wallClock: @escaping @Sendable () -> CFAbsoluteTime = CFAbsoluteTimeGetCurrent,
        close: (@Sendable () async -> Void)? = nil
    ) {
        self.host = host
        self.store = store
        self.wallClock = wallClock
        self.close = close
        peers = PeerDirectory(store: store, makeIdentifier: makeIdentifier)
        links = SharedLinks(peers: peers)
        restoration = Restoration(store: store)
    }

    /// Runs `action` on the loop, after what already waits there.
    func run(_ action: @escaping SharedHost.Action) {
        host.loop.execute { self.host.assumeIsolated { action($0, self) } }
    }
}
