import BLEATT
import BLEGATT
import BLEHCITransport
import BluetoothHost
import BluetoothTypes
import Foundation

/// The engine of a central manager on a host of this process.
///
/// Calls are submitted to the host's loop, to which the state is confined.
final class HostCentral: CentralEngine, HostMember {
    /// A connection that the app has requested, from the call until its end.
    struct Connection {
        enum Phase {
            /// Waits for the delay that the app has requested.
            case delayed
            /// Waits for the previous link to end.
            case waiting
            case connecting(ConnectionAttemptIdentifier?)
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
        /// Incremented by each request, and when there is a link. The timeouts of earlier requests no longer apply then.
        var timeoutNumber: UInt64 = 0
        /// The number of attempts since the last link that could not establish one.
        var failures = 0
        /// The subscriptions by value handle.
        var subscriptions: [AttributeHandle: Subscription] = [:]
        /// The number of values that the manager did not take.
        var droppedValues = 0
    }

    /// The subscription to a value, from the first call that requests it.
    struct Subscription {
        /// The host's identifier of the subscriber.
        let subscriber: UInt64
        /// The number of the app's calls to subscribe or unsubscribe. Only the last call determines the final state.
        var callCount = 1
        /// Whether the server has agreed.
        var isEstablished = false
    }

    /// Maximum number of retries if a link could not be established although the peer was heard.
    static let retryLimit = 3

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
        var currentScan: Scan?
        /// The session of channel sounding, by its peripheral; at most one.
        var soundings: [UUID: Sounding] = [:]
        fileprivate var lastNumber: UInt64 = 0
        var eventFilter: ConnectionEventFilter?
        /// The connections that have failed, by their peripherals, until the app tries again. Cancelling such a
        /// connection is still answered.
        fileprivate var failed: [UUID: ConnectionIdentifier] = [:]
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
    private var connectionsInOrder: [ConnectionIdentifier] {
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
            host.observeServer { [weak self] event in
                if case .mtuChanged(let link, let mtu) = event { self?.mtuChanged(link, mtu) }
            },
        ]
        if let identifier = restoreIdentifier, let record = open.restoration.central(identifier) {
            // Delivered once. From now on, the activity of this manager is saved.
            open.restoration.set(nil as Restoration.Central?, for: identifier)
            say(
                .restored(
                    RestoredCentral(
                        peripherals: open.peers.retrieve(record.peripherals),
                        scan: record.scan?.request
                    )
                )
            )
        }
        say(.stateChanged(host.isPoweredOn ? .poweredOn : .resetting))
    }

    func fail(_ failure: OpeningFailure) {
        say(.stateChanged(failure.state))
    }

    /// Passes an event to the manager.
    ///
    /// - Returns: false if the manager does not take the event, because the app does not keep up with this peer.
    @discardableResult
    func say(_ event: CentralEvent) -> Bool {
        listener.withLock { $0 }?.deliver(event) ?? true
    }

    private func hostEvent(_ event: HostEvent) {
        switch event {
        case .poweredOn: say(.stateChanged(.poweredOn))
        case .resetting:
            // All links have ended. The other requests of the app end without further events.
            open?.host.assumeIsolated { host in
                endScan(on: host)
                if let open {
                    for connection in connectionsInOrder { end(connection, isAnswered: false, on: host, open) }
                }
            }
            state.failed.removeAll()
            say(.stateChanged(.resetting))
        case .closed: say(.stateChanged(.unsupported))
        // Sequences of the app report these: see `HostEvents`.
        case .scanRestarted, .stateUnavailable, .eventsDropped: break
        }
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

    // MARK: Connections

    func connect(_ connection: ConnectionIdentifier, _ request: ConnectionRequest) {
        post { host, open in self.connect(connection, request, on: host, open) }
    }

    private func connect(
        _ connection: ConnectionIdentifier,
        _ request: ConnectionRequest,
        on host: isolated BluetoothHost,
        _ open: OpenHost
    ) {
        let peripheral = connection.peripheral
        state.failed[peripheral] = nil
        switch state.connections[peripheral]?.phase {
        case .connected(let link):
            state.connections[peripheral]?.identifier = connection
            state.connections[peripheral]?.request = request
            // If the manager does not take it, an earlier event for the same link waits for the app.
            if state.connections[peripheral]?.isRefused == false { _ = sayConnected(peripheral, link, on: host) }
            return
        case .delayed, .waiting, .connecting:
            state.connections[peripheral]?.identifier = connection
            state.connections[peripheral]?.request = request
            return startTimeout(of: peripheral, on: host)
        // The object that has requested the end was released.
        case .ending, nil: break
        }
        guard open.peers.use(peripheral) else {
            state.connections[peripheral] = nil
            keepRestoration()
            return connectionFailed(connection, .core(.unkownDevice))
        }
        state.lastNumber += 1
        let number = state.lastNumber
        state.connections[peripheral] = Connection(
            identifier: connection,
            request: request,
            phase: .delayed,
            number: number
        )
        keepRestoration()
        startTimeout(of: peripheral, on: host)
        if request.delay > .zero {
            host.run(after: request.delay) { [weak self] in self?.proceed(peripheral, number) }
        } else {
            proceed(peripheral, number)
        }
    }

    /// Starts the timeout of a connection's last request, if it has one, in place of those of earlier requests.
    private func startTimeout(of peripheral: UUID, on host: isolated BluetoothHost) {
        state.connections[peripheral]?.timeoutNumber += 1
        guard let connection = state.connections[peripheral], let timeout = connection.request.timeout else { return }
        host.run(after: timeout) { [weak self] in
            self?.waitedLongEnough(for: peripheral, connection.number, connection.timeoutNumber)
        }
    }

    /// Ends a connection attempt that has reached the timeout of its last request. Called on the loop.
    private func waitedLongEnough(for peripheral: UUID, _ number: UInt64, _ timeoutNumber: UInt64) {
        guard let open, let connection = state.connections[peripheral], connection.number == number,
            connection.timeoutNumber == timeoutNumber
        else { return }
        open.host.assumeIsolated { end(connection.identifier, isAnswered: false, on: $0, open) }
        connectionFailed(connection.identifier, .core(.connectionTimeout))
    }

    /// Takes the next step towards a link, if the connection is still wanted. Called on the loop.
    private func proceed(_ peripheral: UUID, _ number: UInt64) {
        guard let open, state.connections[peripheral]?.number == number else { return }
        open.host.assumeIsolated { host in
            guard let address = open.peers.address(of: peripheral) else { return }
            guard let link = host.link(to: address) else {
                state.connections[peripheral]?.phase = .connecting(nil)
                let attempt = host.beginConnecting(to: address) { [weak self] result in
                    self?.attemptEnded(peripheral, number, result)
                }
                if case .connecting? = state.connections[peripheral]?.phase {
                    state.connections[peripheral]?.phase = .connecting(attempt)
                }
                return
            }
            guard link.isEnding else {
                return connected(peripheral, number, link.identifier, on: host, open)
            }
            state.connections[peripheral]?.phase = .waiting
            host.observeEnd(of: link.identifier) { [weak self] _ in self?.proceed(peripheral, number) }
        }
    }

    private func attemptEnded(_ peripheral: UUID, _ number: UInt64, _ result: Result<LinkIdentifier, HostError>) {
        guard let open, let connection = state.connections[peripheral], connection.number == number,
            case .connecting = connection.phase
        else { return }
        switch result {
        case .success(let link):
            open.host.assumeIsolated { connected(peripheral, number, link, on: $0, open) }
        case .failure(.disconnected(.controller(.connectionFailedToBeEstablished)))
        where connection.failures < HostCentral.retryLimit:
            state.connections[peripheral]?.failures += 1
            proceed(peripheral, number)
        case .failure(let error):
            state.connections[peripheral] = nil
            keepRestoration()
            connectionFailed(connection.identifier, EngineError(error))
        }
    }

    private func connectionFailed(_ connection: ConnectionIdentifier, _ error: EngineError) {
        state.failed[connection.peripheral] = connection
        say(.connectionFailed(connection, error))
    }

    private func connected(
        _ peripheral: UUID,
        _ number: UInt64,
        _ link: LinkIdentifier,
        on host: isolated BluetoothHost,
        _ open: OpenHost
    ) {
        state.connections[peripheral]?.phase = .connected(link)
        state.connections[peripheral]?.timeoutNumber += 1
        state.connections[peripheral]?.failures = 0
        // Before the link is shared, so that its users learn of the end in the order in which they joined.
        host.observeEnd(of: link) { [weak self] reason in self?.linkEnded(peripheral, number, link, reason) }
        guard sayConnected(peripheral, link, on: host) else {
            state.connections[peripheral]?.isRefused = true
            return host.disconnectFlooding(link)
        }
        open.links.join(link, to: peripheral, self, on: host)
    }

    /// Reports a link to the manager.
    ///
    /// - Returns: false if the manager does not take it, because too many connections to the peripheral wait for the
    ///   app.
    private func sayConnected(
        _ peripheral: UUID,
        _ link: LinkIdentifier,
        on host: isolated BluetoothHost
    ) -> Bool {
        guard let connection = state.connections[peripheral]?.identifier,
            let mtu = try? host.information(on: link).mtu
        else { return true }
        return say(.connected(connection, mtu: mtu))
    }

    private func linkEnded(_ peripheral: UUID, _ number: UInt64, _ link: LinkIdentifier, _ reason: DisconnectionReason)
    {
        guard let open, let connection = state.connections[peripheral], connection.number == number else { return }
        let time = open.wallClock()
        switch connection.phase {
        case .connected(link)
        where connection.request.reconnects && !connection.isRefused && !reason.isEndOfController:
            state.connections[peripheral]?.subscriptions = [:]
            say(
                .disconnected(
                    connection.identifier,
                    Disconnection(error: EngineError(reason), isReconnecting: true, time: time)
                )
            )
            proceed(peripheral, number)
        case .connected(link):
            state.connections[peripheral] = nil
            keepRestoration()
            say(.disconnected(connection.identifier, Disconnection(error: EngineError(reason), time: time)))
        case .ending(link):
            state.connections[peripheral] = nil
            keepRestoration()
            say(.disconnected(connection.identifier, Disconnection(error: nil, time: time)))
        case .connected, .ending, .delayed, .waiting, .connecting: break
        }
    }

    func cancelConnection(_ connection: ConnectionIdentifier) {
        post { host, open in self.end(connection, isAnswered: true, on: host, open) }
    }

    func release(_ connection: ConnectionIdentifier) {
        // An object may outlive its manager, so this is not a call of the app.
        post(call: nil) { host, open in self.end(connection, isAnswered: false, on: host, open) }
    }

    /// Ends a connection in any phase. Does nothing if the app has requested a later one to the same peripheral.
    ///
    /// - Parameter isAnswered: whether the manager is notified of the end.
    private func end(
        _ identifier: ConnectionIdentifier,
        isAnswered: Bool,
        on host: isolated BluetoothHost,
        _ open: OpenHost
    ) {
        defer { keepRestoration() }
        let peripheral = identifier.peripheral
        guard let connection = state.connections[peripheral], connection.identifier == identifier else {
            guard state.failed[peripheral] == identifier else { return }
            state.failed[peripheral] = nil
            if isAnswered { sayCancelled(identifier, open) }
            return
        }
        switch connection.phase {
        case .delayed, .waiting, .connecting(nil):
            state.connections[peripheral] = nil
            if isAnswered { sayCancelled(identifier, open) }
        case .connecting(let attempt?):
            state.connections[peripheral] = nil
            host.cancelConnecting(attempt)
            if isAnswered { sayCancelled(identifier, open) }
        case .connected(let link):
            let sounding = endSounding(with: peripheral, on: host)
            if isAnswered { sounding?.completion(.success(())) }
            for (handle, subscription) in connection.subscriptions {
                host.removeSubscriber(subscription.subscriber, of: handle, on: link)
            }
            let isEnding = open.links.leave(link, self, on: host)
            if isEnding, isAnswered {
                state.connections[peripheral]?.phase = .ending(link)
                state.connections[peripheral]?.subscriptions = [:]
            } else {
                state.connections[peripheral] = nil
                if isAnswered { sayCancelled(identifier, open) }
            }
        case .ending:
            if !isAnswered { state.connections[peripheral] = nil }
        }
    }

    private func sayCancelled(_ connection: ConnectionIdentifier, _ open: OpenHost) {
        say(.disconnected(connection, Disconnection(error: nil, time: open.wallClock())))
    }
}
