import BLE
import ESPHomeProtocol
import Logging
import Synchronization

/// The connections to devices, and the slots for them.
final class DeviceTable: Sendable {
    private struct State {
        /// The connections, also those that are being made or that end, the oldest first.
        var connections: [DeviceConnection] = []
        /// The clients that are informed about slots.
        var subscribers: [Client] = []
        /// Requests to connect to devices whose earlier connections are ending.
        var waiting: [(address: UInt64, isRandom: Bool?, usesCache: Bool, client: Client)] = []
        var isStopping = false
    }

    private let limit: Int
    private let adapters: AdapterSet
    private let services = ServiceCache()
    private let logger: Logger
    private let state = Mutex(State())

    init(limit: Int, adapters: AdapterSet, logger: Logger) {
        self.limit = limit
        self.adapters = adapters
        self.logger = logger
    }

    // MARK: Slots

    /// Informs a client about free slots, now and after each change.
    func subscribe(_ client: Client) {
        state.withLock { state in
            if !state.subscribers.contains(client) { state.subscribers.append(client) }
            client.send(slotMessage(state))
        }
    }

    private func slotMessage(_ state: borrowing State) -> Message {
        .connectionsFree(limit: limit, allocated: state.connections.map(\.address))
    }

    private func informSubscribers(_ state: borrowing State) {
        let message = slotMessage(state)
        for client in state.subscribers { client.send(message) }
    }

    // MARK: Connections

    /// Connects to a device. The client is sent the outcome.
    func connect(_ address: UInt64, isRandom: Bool?, usesCache: Bool, for client: Client) {
        state.withLock { state in
            guard !state.isStopping else {
                return client.send(.disconnected(address, error: ClientErrorCode.insufficientResources))
            }
            if let connection = state.connections.first(where: { $0.address == address }) {
                guard connection.client === client else {
                    return client.send(.disconnected(address, error: ClientErrorCode.alreadyOpen))
                }
                if !connection.confirm() {
                    state.waiting.append((address, isRandom, usesCache, client))
                }
                return
            }
            guard state.connections.count < limit, let runner = adapter(for: address, state),
                let adapter = runner.adapter
            else { return client.send(.disconnected(address, error: ClientErrorCode.insufficientResources)) }
            if !usesCache { services.remove(address) }
            // Without its type, an address with the two highest bits set is taken as random static.
            let device = DeviceAddress(address, isRandom: isRandom ?? (address >> 46 == 0b11))
            let connection = DeviceConnection(
                device,
                client: client,
                adapter: adapter,
                adapterIndex: runner.index,
                services: services,
                logger: logger
            )
            state.connections.append(connection)
            informSubscribers(state)
            connection.start { [self] in remove(connection, informing: $0) }
        }
    }

    /// The adapter that receives the device best, otherwise the adapter with the fewest connections; nil if none is open.
    private func adapter(for address: UInt64, _ state: borrowing State) -> AdapterRunner? {
        let open = adapters.runners.filter { $0.adapter != nil }
        if let best = adapters.scanner.bestAdapter(for: address), let runner = open.first(where: { $0.index == best }) {
            return runner
        }
        let counts = state.connections.map(\.adapterIndex)
        return open.min { left, right in
            counts.count { $0 == left.index } < counts.count { $0 == right.index }
        }
    }

    /// Frees the slot of a connection that has ended, and informs its client.
    private func remove(_ connection: DeviceConnection, informing message: Message) {
        let next = state.withLock { state in
            state.connections.removeAll { $0 === connection }
            connection.client.send(message)
            informSubscribers(state)
            let index = state.waiting.firstIndex { $0.address == connection.address }
            return index.map { state.waiting.remove(at: $0) }
        }
        if let next {
            connect(next.address, isRandom: next.isRandom, usesCache: next.usesCache, for: next.client)
        }
    }

    /// Disconnects a device, or cancels the attempt to connect to it. The client is sent the end.
    func disconnect(_ address: UInt64, for client: Client) {
        let connection = state.withLock { state in
            state.waiting.removeAll { $0.address == address && $0.client === client }
            return state.connections.first { $0.address == address && $0.client === client }
        }
        if let connection {
            connection.disconnect()
        } else {
            client.send(.disconnected(address, error: ClientErrorCode.noConnection))
        }
    }

    /// Performs an operation on a device that the client has connected, after the client's earlier ones.
    func perform(_ operation: DeviceOperation, on address: UInt64, for client: Client) {
        let connection = state.withLock { state in
            state.connections.first { $0.address == address && $0.client === client }
        }
        if let connection, connection.submit(operation) { return }
        switch operation {
        case .unpair: unpair(address, for: client)
        case .clearCache:
            services.remove(address)
            client.send(.cacheCleared(address))
        default:
            if let message = operation.failure(address) { client.send(message) }
        }
    }

    /// Removes the bonds of all adapters with a device that is not connected.
    private func unpair(_ address: UInt64, for client: Client) {
        let adapters = adapters.runners.compactMap(\.adapter)
        Task {
            for adapter in adapters {
                for isRandom in [false, true] { await adapter.removeBond(DeviceAddress(address, isRandom: isRandom)) }
            }
            client.send(.unpairing(address, error: 0))
        }
    }

    /// Ends everything that a client has requested, because its session has ended.
    func remove(_ client: Client) {
        let connections = state.withLock { state in
            state.subscribers.removeAll { $0 === client }
            state.waiting.removeAll { $0.client === client }
            return state.connections.filter { $0.client === client }
        }
        for connection in connections { connection.cancel() }
    }

    /// Ends all connections, and waits until they have ended.
    func stop() async {
        let connections = state.withLock { state in
            state.isStopping = true
            state.waiting = []
            return state.connections
        }
        for connection in connections { connection.cancel() }
        for connection in connections { await connection.finished() }
    }

    var statuses: [GatewayStatus.ConnectionStatus] {
        state.withLock(\.connections).map { connection in
            GatewayStatus.ConnectionStatus(
                address: "\(connection.device)",
                isConnected: connection.isConnected,
                client: connection.client.networkAddress
            )
        }
    }

    /// The number of connections through an adapter.
    func connectionCount(of adapter: Int) -> Int {
        state.withLock { state in state.connections.count { $0.adapterIndex == adapter } }
    }
}

/// The adapters of a gateway.
struct AdapterSet: Sendable {
    let runners: [AdapterRunner]
    let scanner: Scanner
}
