import BLEATT
import BLEGATT
import BLEHCITransport
import BluetoothHost
import BluetoothTypes
import Foundation

/// The backend of a central manager on a host of this process.
///
/// Calls are submitted to the host's loop, to which the state is confined.
final class HostCentral: CentralBackend, HostMember {
    /// A connection that the app has requested, from the call until its end.
    struct Connection {
        enum Phase {
            /// Waits for the delay that the app has requested.
            case delayed
            /// Waits for the previous link to end.
            case waiting
            case connecting(ConnectionAttemptIdentifier?)
            /// Waits until the peer of a new link has been heard.
            case establishing(LinkIdentifier)
            case connected(LinkIdentifier)
            /// Waits for the end of the link, which the app has requested.
            case ending(LinkIdentifier)
        }

        /// The identifier of the app's last request.
        var identifier: ConnectionIdentifier
        var request: ConnectionRequest
        var phase: Phase
        /// Distinguishes the connection from an earlier one to the same peripheral. The app's further requests do not
        /// change it.
        let number: UInt64
        /// Whether the manager did not take the event that the link was made. The link ends, and the host does not
        /// reconnect.
        var isRefused = false
        /// Incremented by each request, and when there is a link. The timeouts of earlier requests no longer apply
        /// then.
        var timeoutNumber: UInt64 = 0
        /// Incremented by each request with another delay. The delays of earlier requests no longer apply then.
        var delayNumber: UInt64 = 0
        /// The number of attempts since the last link that could not establish one.
        var failures = 0
        /// Whether there was a link. Automatic reconnection then has no limit.
        var wasConnected = false
        /// The subscriptions by value handle.
        var subscriptions: [AttributeHandle: Subscription] = [:]
        /// The changes of the peripheral's attributes since the link was last reported to the manager.
        var changes = DatabaseChanges()
        /// The number of values that the manager did not take.
        var droppedValues = 0
    }

    /// The subscription to a value, from the first call that requests it.
    struct Subscription {
        /// The host's identifier of the subscriber.
        let subscriber: UInt64
        /// The handles of the value and of its descriptors.
        let handles: HandleRange
        /// The number of the app's calls to subscribe or unsubscribe. Only the last call determines the final state.
        var callCount = 1
        /// Whether the server has agreed.
        var isEstablished = false
    }

    /// Maximum number of retries if a link could not be established although the peer was heard.
    static let retryLimit = 3
    /// Maximum number of times that a discovery of services is performed, if the peripheral changes its services each
    /// time before the discovery has ended.
    static let discoveryLimit = 3

    let shared: SharedHost
    let options: HostOptions
    private let restoreIdentifier: String?
    /// Receives the events. A closure stored bare under the lock would be wrapped once more at each access.
    private struct Listener {
        let deliver: @Sendable (CentralEvent) -> Bool
    }

    private let listener = Guarded<Listener?>(nil)

    final class State {
        var connections: [UUID: Connection] = [:]
        fileprivate(set) var open: OpenHost?
        fileprivate var observers: [UInt64] = []
        /// The state that was last reported of the open host.
        fileprivate var reported = CBManagerState.unknown
        var currentScan: Scan?
        /// The session of channel sounding, by its peripheral; at most one.
        var soundings: [UUID: Sounding] = [:]
        var lastNumber: UInt64 = 0
        /// The number of the last change of services of any peripheral.
        var lastChange: UInt64 = 0
        var eventFilter: ConnectionEventFilter?
        /// The links that were made while the app observed connections, and were not reported. The peripherals do not
        /// match the filter as far as their services are known.
        var unreportedLinks: Set<LinkIdentifier> = []
        /// The connections that have failed, by their peripherals, until the manager has handled the failure or the app
        /// tries again. Cancelling such a connection is still answered.
        var failed: [UUID: ConnectionIdentifier] = [:]
    }

    private let loop = HostLoop()
    private let confined: LoopConfined<State>
    var state: State { confined.value }
    var open: OpenHost? { state.open }

    init(_ shared: SharedHost, options: HostOptions = HostOptions(), restoreIdentifier: String? = nil) {
        self.shared = shared
        self.options = options
        self.restoreIdentifier = restoreIdentifier
        confined = LoopConfined(State(), to: loop)
    }

    /// The peripherals whose connections the app has requested, in the order of the requests.
    var peripheralsInOrder: [UUID] { connectionsInOrder.map(\.peripheral) }

    /// The connections that the app has requested, in the order of the requests.
    var connectionsInOrder: [ConnectionIdentifier] {
        state.connections.values.sorted { $0.number < $1.number }.map(\.identifier)
    }

    // MARK: Life

    func start(_ deliver: @escaping @Sendable (CentralEvent) -> Bool) {
        listener.withLock { $0 = Listener(deliver: deliver) }
        shared.join(self)
    }

    func stop() {
        listener.withLock { $0 = nil }
        shared.leave(self) { host, open in
            open.links.remove(self)
            for observer in self.state.observers { host.removeObserver(observer) }
            self.endScan(on: host)
            for connection in self.connectionsInOrder { self.end(connection, isAnswered: false, on: host, open) }
            if let identifier = self.restoreIdentifier {
                open.restoration.set(nil as Restoration.Central?, for: identifier)
            }
            self.state.open = nil
        }
    }

    func begin(with open: OpenHost, on host: isolated BluetoothHost) {
        loop.set(host.loop)
        state.open = open
        open.links.add(self)
        state.observers = [
            host.observe { [weak self] event in self?.hostEvent(event) },
            host.observeReopening { [weak self] error in self?.reopeningFailed(error) },
            host.observeServer { [weak self] event in
                if case .mtuChanged(let link, let mtu) = event { self?.mtuChanged(link, mtu) }
            },
        ]
        if let identifier = restoreIdentifier, let record = open.restoration.central(identifier) {
            // Delivered once. From now on, the activity of this manager is saved.
            open.restoration.set(nil as Restoration.Central?, for: identifier)
            deliver(
                .restored(
                    RestoredCentral(
                        peripherals: open.peers.retrieve(record.peripherals),
                        scan: record.scan?.request
                    )
                )
            )
        }
        report(open.managerState(on: host))
    }

    func fail(_ failure: OpeningFailure) {
        deliver(.stateChanged(failure.state))
    }

    /// Passes an event to the manager.
    ///
    /// - Returns: false if the manager does not take the event, because the app does not keep up with this peer.
    @discardableResult
    func deliver(_ event: CentralEvent) -> Bool {
        listener.withLock { $0 }?.deliver(event) ?? true
    }

    private func hostEvent(_ event: HostEvent) {
        switch event {
        case .poweredOn: report(.poweredOn)
        case .resetting:
            // All links have ended. The other requests of the app end without further events.
            open?.host.assumeIsolated { host in
                endScan(on: host)
                if let open {
                    for connection in connectionsInOrder { end(connection, isAnswered: false, on: host, open) }
                }
            }
            state.failed.removeAll()
            report(.resetting)
        case .closed: report(.unsupported)
        // Sequences of the app report these: see `HostEvents`.
        case .scanRestarted, .stateUnavailable, .eventsDropped: break
        }
    }

    /// Handles a failure to reach the lost controller again. Called on the loop.
    private func reopeningFailed(_ error: TransportError) {
        let now = OpenHost.state(ofRecovery: error)
        if open != nil, now != state.reported { report(now) }
    }

    private func report(_ now: CBManagerState) {
        state.reported = now
        deliver(.stateChanged(now))
    }

    /// Saves the activity of the manager for the next process.
    func keepRestoration() {
        guard let restoreIdentifier, let open else { return }
        open.restoration.set(
            Restoration.Central(
                peripherals: state.connections.keys.sorted { $0.uuidString < $1.uuidString },
                scan: (state.currentScan?.request).map(Restoration.Scan.init)
            ),
            for: restoreIdentifier
        )
    }
}
