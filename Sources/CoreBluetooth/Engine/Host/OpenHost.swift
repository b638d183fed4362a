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
    let pairing = Pairing()
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
        host.loop.execute { [host, pairing, peers] in
            host.assumeIsolated { host in
                host.setPairingHandler(pairing.handler(for: host))
                peers.setBonded(host.bondInformation().map(\.identity))
                _ = host.observeSecurity { event in
                    switch event {
                    // A peer that gives its identity when it pairs keeps the identifier that the app knows it by.
                    case .paired(_, let result): peers.identify(result.peer, as: result.identity)
                    case .bondAdded, .bondRemoved:
                        host.assumeIsolated { peers.setBonded($0.bondInformation().map(\.identity)) }
                    default: break
                    }
                }
            }
        }
    }

    /// Runs `action` on the loop, after what already waits there.
    func run(_ action: @escaping SharedHost.Action) {
        host.loop.execute { self.host.assumeIsolated { action($0, self) } }
    }
}
