import ESPHomeProtocol
import Logging
import Metrics
import NIOCore
import Synchronization

/// The parts of a gateway, and its clients.
final class GatewayHub: Sendable {
    private struct State {
        /// The clients that have greeted.
        var clients: [Client] = []
        /// The clients that have not greeted yet, the oldest first.
        var newcomers: [Client] = []
        var lastIdentifier: UInt64 = 0
        var closedClientCounts: [String: UInt64] = [:]
        var refusals = RefusalLog()
        /// The advertisements of clients that have gone.
        var forwardedCount: UInt64 = 0
        var droppedCount: UInt64 = 0
        var isStopping = false
    }

    let logger: Logger
    let scanner: Scanner
    let devices: DeviceTable
    private let events: EventLog
    private let clientLimit: Int

    /// The greatest number of clients that have not greeted.
    static let newcomerLimit = 16
    private let state = Mutex(State())

    init(configuration: GatewayConfiguration, scanner: Scanner, devices: DeviceTable) {
        logger = configuration.logger
        events = configuration.events
        clientLimit = configuration.clientLimit
        self.scanner = scanner
        self.devices = devices
    }

    // MARK: Clients

    /// Creates a client, on its event loop.
    func makeClient(networkAddress: String, handler: ClientHandler, eventLoop: any EventLoop) -> Client {
        let identifier = state.withLock { state in
            state.lastIdentifier += 1
            return state.lastIdentifier
        }
        return Client(
            identifier: identifier,
            networkAddress: networkAddress,
            handler: handler,
            eventLoop: eventLoop
        )
    }

    /// Adds a client that has not greeted; false if the gateway stops.
    ///
    /// Such clients have places of their own. If there are too many, one of the address with the most of them is
    /// disconnected, so one address without the key cannot keep others out; see ``ConnectionOrigin``.
    func add(_ client: Client) -> Bool {
        let (isAdded, displaced) = state.withLock { state -> (Bool, Client?) in
            guard !state.isStopping else { return (false, nil) }
            state.newcomers.append(client)
            guard state.newcomers.count > Self.newcomerLimit else { return (true, nil) }
            return (true, Self.removeDisplaced(from: &state.newcomers))
        }
        if isAdded { logger.debug("client connected", metadata: metadata(of: client)) }
        displaced?.end(.displaced)
        return isAdded
    }

    private static func removeDisplaced(from newcomers: inout [Client]) -> Client? {
        let index = ConnectionOrigin.displacedIndex(among: newcomers.map { ConnectionOrigin($0.networkAddress) })
        return index.map { newcomers.remove(at: $0) }
    }

    /// Gives a client that has greeted its place, which it keeps.
    ///
    /// - Returns: nil, or the reason why there is none.
    func admit(_ client: Client) -> SessionEnd? {
        let refusal: SessionEnd? = state.withLock { state in
            guard let index = state.newcomers.firstIndex(of: client) else {
                return state.isStopping ? .serverStopped : .displaced
            }
            guard state.clients.count < clientLimit else { return .tooManyClients }
            state.clients.append(state.newcomers.remove(at: index))
            return nil
        }
        if refusal == nil {
            events.record(.clientConnected, client.networkAddress, client.information.withLock { $0 })
        }
        return refusal
    }

    /// Removes a client and everything that it has requested.
    ///
    /// The end of a client that had a place is logged at the level info. ``RefusalLog`` decides about the others.
    func remove(_ client: Client, _ reason: SessionEnd) {
        let suppressedCount = state.withLock { state -> Int? in
            let hadPlace = state.clients.contains(client)
            state.clients.removeAll { $0 === client }
            state.newcomers.removeAll { $0 === client }
            state.closedClientCounts[reason.label, default: 0] += 1
            state.forwardedCount += client.advertisementCount.load(ordering: .relaxed)
            state.droppedCount += client.droppedAdvertisementCount.load(ordering: .relaxed)
            return hadPlace ? 0 : state.refusals.record(client.networkAddress, reason.label, at: .now)
        }
        events.record(.clientDisconnected, client.networkAddress, "\(reason)")
        Counter(label: "ble_gateway_clients_closed_total", dimensions: [("reason", reason.label)]).increment()
        scanner.remove(client)
        devices.remove(client)
        var details = metadata(of: client)
        if let suppressedCount, suppressedCount > 0 { details["suppressed"] = "\(suppressedCount)" }
        let level: Logger.Level = suppressedCount == nil ? .debug : .info
        logger.log(level: level, "client disconnected: \(reason)", metadata: details)
    }

    /// Ends the sessions of all clients; none is added any more.
    func endClients() {
        let clients = state.withLock { state in
            state.isStopping = true
            return state.clients + state.newcomers
        }
        for client in clients { client.end(.serverStopped) }
    }

    private func metadata(of client: Client) -> Logger.Metadata {
        ["client": "\(client.networkAddress)", "id": "\(client.identifier)"]
    }

    var clientStatuses: [GatewayStatus.ClientStatus] {
        state.withLock { $0.clients + $0.newcomers }.map { client in
            GatewayStatus.ClientStatus(
                address: client.networkAddress,
                information: client.information.withLock { $0 },
                receivesAdvertisements: client.receivesAdvertisements.load(ordering: .relaxed),
                advertisementCount: client.advertisementCount.load(ordering: .relaxed),
                droppedAdvertisementCount: client.droppedAdvertisementCount.load(ordering: .relaxed)
            )
        }
    }

    /// The advertisements that were sent to clients, and those that clients were too slow to receive.
    var advertisementCounts: (forwarded: UInt64, dropped: UInt64) {
        state.withLock { state in
            state.clients.reduce((state.forwardedCount, state.droppedCount)) { counts, client in
                (
                    counts.0 + client.advertisementCount.load(ordering: .relaxed),
                    counts.1 + client.droppedAdvertisementCount.load(ordering: .relaxed)
                )
            }
        }
    }

    var closedClientCounts: [String: UInt64] { state.withLock(\.closedClientCounts) }

    // MARK: Requests

    /// Handles a request of a client. The responses are sent when they are known.
    func handle(_ request: BluetoothRequest, from client: Client) {
        switch request {
        case .subscribeAdvertisements: scanner.subscribe(client)
        case .unsubscribeAdvertisements: scanner.unsubscribe(client)
        case .setScannerMode(let isActive): scanner.setMode(isActive ? .active : .passive, for: client)
        case .subscribeConnectionsFree: devices.subscribe(client)
        case .connect(let address, let isRandom, let usesCache):
            devices.connect(address, isRandom: isRandom, usesCache: usesCache, for: client)
        case .disconnect(let address): devices.disconnect(address, for: client)
        case .pair(let address): devices.perform(.pair, on: address, for: client)
        case .unpair(let address): devices.perform(.unpair, on: address, for: client)
        case .clearCache(let address): devices.perform(.clearCache, on: address, for: client)
        case .setConnectionParameters(let address, let parameters):
            devices.perform(.setParameters(parameters), on: address, for: client)
        case .getServices(let address): devices.perform(.getServices, on: address, for: client)
        case .read(let address, let handle, _): devices.perform(.read(handle), on: address, for: client)
        case .write(let address, let handle, let value, let withResponse, _):
            devices.perform(.write(handle, value, withResponse: withResponse), on: address, for: client)
        case .notify(let address, let handle, let isEnabled):
            devices.perform(.notify(handle, isEnabled: isEnabled), on: address, for: client)
        }
    }
}
