import BLE
import BLEHCITransport
import BLEKeyStore
import BluetoothHost
import Foundation

/// An open host, and the objects that the backends of its managers share.
final class OpenHost: Sendable {
    /// A security policy that the managers have set on an adapter of the app.
    private struct ManagerPolicy {
        let policy: SecurityPolicy
        /// The policy of the app, which it has replaced and which the host keeps.
        let original: UInt64

        /// Whether the host still has the policy. The out-of-band data does not count: a pairing removes it.
        func isSet(on host: isolated BluetoothHost) -> Bool {
            var current = host.currentSecurityPolicy
            current.ownOutOfBandData = policy.ownOutOfBandData
            current.peerOutOfBandData = policy.peerOutOfBandData
            return current == policy
        }
    }

    let host: BluetoothHost
    let store: KeyStore
    /// The peers as the managers know them. The next open host has only the peers that the store has.
    let peers: PeerDirectory
    let links: SharedLinks
    let centrals: CentralIdentities
    let restoration: Restoration
    private let pairing: Pairing
    private let isAdopted: Bool
    private let managerPolicy = Guarded<ManagerPolicy?>(nil)
    /// The observers of the host's power, of its security, and of failures to reach its controller again.
    private let observers = Guarded<[UInt64]>([])
    /// The observers that report to the sequences of apps.
    private let reporters = Guarded<[UInt64]>([])
    private let sounding = Guarded(false)
    /// The text of the last failure to reach the controller again, which is noted only once.
    private let notedFailure = Guarded<String?>(nil)
    /// The time of day, for the events of apps.
    let wallClock: @Sendable () -> CFAbsoluteTime
    /// Closes the adapter; nil if the app has opened it and closes it itself.
    let close: (@Sendable () async -> Void)?

    /// - Parameters:
    ///   - isAdopted: whether the app has opened the adapter itself. The adapter's own pairing delegate then stays.
    ///   - makeIdentifier: creates identifiers for new peers.
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
        self.isAdopted = isAdopted
        peers = PeerDirectory(store: store, makeIdentifier: makeIdentifier)
        links = SharedLinks(peers: peers, loop: host.loop)
        centrals = CentralIdentities(peers: peers, makeIdentifier: makeIdentifier)
        restoration = Restoration(store: store)
        pairing = Pairing(executor: host.loop.appTaskExecutor)
        host.loop.execute { [host, peers, observers, sounding, notedFailure] in
            host.assumeIsolated { host in
                let isSupported = (try? host.controllerInformation())?.supportsChannelSounding ?? false
                sounding.withLock { $0 = isSupported }
                // After a recovery, the adapter may have another controller.
                let power = host.observe { event in
                    guard case .poweredOn(let information) = event else { return }
                    sounding.withLock { $0 = information.supportsChannelSounding }
                    notedFailure.withLock { $0 = nil }
                }
                let reopening = host.observeReopening { error in
                    let failure = OpeningFailure(error)
                    guard failure.state == .poweredOff else { return }
                    let isNews = notedFailure.withLock { noted in
                        defer { noted = failure.text }
                        return noted != failure.text
                    }
                    if isNews { ProgrammerError.note(failure.text) }
                }
                peers.setBonded(host.bondInformation().map(\.identity))
                let security = host.observeSecurity { [weak host] event in
                    switch event {
                    // A peer that distributes its identity keeps the identifier by which the app knows it.
                    case .paired(_, let result): peers.identify(result.peer, as: result.identity)
                    case .bondAdded, .bondRemoved:
                        host?.assumeIsolated { peers.setBonded($0.bondInformation().map(\.identity)) }
                    default: break
                    }
                }
                observers.withLock { $0 = [power, security, reopening] }
            }
        }
    }

    /// The state of the managers while the controller is not on: off if it cannot be reached again before a user has
    /// acted.
    static func state(ofRecovery failure: TransportError?) -> CBManagerState {
        guard let failure, OpeningFailure(failure).state == .poweredOff else { return .resetting }
        return .poweredOff
    }

    /// The present state for the managers.
    func managerState(on host: isolated BluetoothHost) -> CBManagerState {
        host.isPoweredOn ? .poweredOn : OpenHost.state(ofRecovery: host.openingFailure)
    }

    /// Whether the controller supports channel sounding. False until the host has begun.
    var supportsChannelSounding: Bool { sounding.withLock { $0 } }

    deinit {
        end()
        host.loop.execute { [host, observers] in
            host.assumeIsolated { host in
                for observer in observers.withLock({ $0 }) { host.removeObserver(observer) }
            }
        }
    }

    /// Begins to report the host's events, and to answer its pairing questions for the managers.
    func begin(reportingTo source: HostEvents.Source) {
        host.loop.execute { [host, pairing, reporters, isAdopted] in
            host.assumeIsolated { host in
                if !isAdopted || !host.hasPairingHandler { pairing.install(on: host) }
                let added = [host.observe { source.send($0) }, host.observeSecurity { source.send($0) }]
                reporters.withLock { $0 += added }
            }
        }
    }

    /// Reverses ``begin(reportingTo:)``, and releases the pairing delegate. An adopted adapter has its own security
    /// policy again, unless the app has set another one in the meantime.
    func end() {
        host.loop.execute { [host, pairing, reporters, managerPolicy] in
            host.assumeIsolated { host in
                pairing.setDelegate(nil)
                pairing.uninstall(from: host)
                if let last = managerPolicy.withLock({ $0.take() }),
                    let original = host.takeSecurityPolicy(last.original), last.isSet(on: host)
                {
                    host.setSecurityPolicy(original)
                }
                let reporters = reporters.withLock { reporters in
                    defer { reporters = [] }
                    return reporters
                }
                for reporter in reporters { host.removeObserver(reporter) }
            }
        }
    }

    /// Sets the host's security policy. It replaces an adopted adapter's own policy until the last manager is released.
    func setSecurityPolicy(_ policy: SecurityPolicy, on host: isolated BluetoothHost) {
        if isAdopted {
            let last = managerPolicy.withLock { $0 }
            let original: UInt64
            if let last, last.isSet(on: host) {
                original = last.original
            } else {
                if let last { _ = host.takeSecurityPolicy(last.original) }
                original = host.saveSecurityPolicy(host.currentSecurityPolicy)
            }
            managerPolicy.withLock { $0 = ManagerPolicy(policy: policy, original: original) }
        }
        host.setSecurityPolicy(policy)
    }

    /// Sets the delegate that answers the host's pairing questions. It also replaces an adopted adapter's own
    /// delegate, until the last manager is released.
    func setPairingDelegate(_ delegate: (any PairingDelegate)?, on host: isolated BluetoothHost) {
        pairing.setDelegate(delegate)
        pairing.install(on: host)
    }

    /// Runs `action` on the loop, after the work that already waits there.
    func run(_ action: @escaping SharedHost.Action) {
        host.loop.execute { self.host.assumeIsolated { action($0, self) } }
    }
}
