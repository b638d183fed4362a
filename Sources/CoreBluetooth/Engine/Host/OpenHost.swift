import BLE
import BluetoothHost
import Foundation
import KeyStore

/// An open host, and what the engines of its managers share.
final class OpenHost: Sendable {
    let host: BluetoothHost
    let store: KeyStore
    let peers: PeerDirectory
    let links: SharedLinks
    let centrals: CentralIdentities
    let restoration: Restoration
    private let pairing: Pairing
    /// The observer of the host's security events.
    private let observer = Guarded<UInt64?>(nil)
    /// The time of day, for what apps are told.
    let wallClock: @Sendable () -> CFAbsoluteTime
    /// Lets the adapter go; nil where that is somebody else's.
    let close: (@Sendable () async -> Void)?

    /// - Parameters:
    ///   - isAdopted: whether the app has opened the adapter itself: a pairing delegate that it has stays.
    ///   - makeIdentifier: makes identifiers for peers that are new.
    init(
        _ host: BluetoothHost,
        store: KeyStore,
        isAdopted: Bool = false,
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
        centrals = CentralIdentities(peers: peers, makeIdentifier: makeIdentifier)
        restoration = Restoration(store: store)
        pairing = Pairing(executor: host.loop.appTaskExecutor)
        host.loop.execute { [host, pairing, peers, observer] in
            host.assumeIsolated { host in
                if !isAdopted || !host.hasPairingHandler { pairing.install(on: host) }
                peers.setBonded(host.bondInformation().map(\.identity))
                let security = host.observeSecurity { [weak host] event in
                    switch event {
                    // A peer that gives its identity when it pairs keeps the identifier that the app knows it by.
                    case .paired(_, let result): peers.identify(result.peer, as: result.identity)
                    case .bondAdded, .bondRemoved:
                        host?.assumeIsolated { peers.setBonded($0.bondInformation().map(\.identity)) }
                    default: break
                    }
                }
                observer.withLock { $0 = security }
            }
        }
    }

    deinit {
        host.loop.execute { [host, pairing, observer] in
            host.assumeIsolated { host in
                pairing.uninstall(from: host)
                if let observer = observer.withLock({ $0 }) { host.removeObserver(observer) }
            }
        }
    }

    /// Sets the delegate that answers the host's pairing questions. It also replaces an adopted adapter's own
    /// delegate, as long as the managers live.
    func setPairingDelegate(_ delegate: (any PairingDelegate)?, on host: isolated BluetoothHost) {
        pairing.setDelegate(delegate)
        pairing.install(on: host)
    }

    /// Runs `action` on the loop, after what already waits there.
    func run(_ action: @escaping SharedHost.Action) {
        host.loop.execute { self.host.assumeIsolated { action($0, self) } }
    }
}
