import BLE
import ESPHomeProtocol
import Logging
import Synchronization

/// The connections to devices, and the slots for them.
final class DeviceTable: Sendable {
    let limit: Int
    let adapters: AdapterSet
    let failedAttemptTime: Duration
    private let services = ServiceCache()
    let events: EventLog
    private let whenSlotsChanged: (@Sendable (ConnectionSlots) -> Void)?
    private let logger: Logger
    let state = Mutex(State())

    /// - Parameters:
    ///   - failedAttemptTime: see ``GatewayConfiguration/failedAttemptTime``.
    ///   - whenSlotsChanged: see ``GatewayConfiguration/whenSlotsChanged``.
    init(
        limit: Int,
        adapters: AdapterSet,
        failedAttemptTime: Duration = .seconds(5),
        events: EventLog = EventLog(),
        whenSlotsChanged: (@Sendable (ConnectionSlots) -> Void)? = nil,
        logger: Logger
    ) {
        self.limit = limit
        self.adapters = adapters
        self.failedAttemptTime = failedAttemptTime
        self.events = events
        self.whenSlotsChanged = whenSlotsChanged
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

    /// The slots now.
    var connectionSlots: ConnectionSlots { state.withLock { connectionSlots($0) } }

    func connectionSlots(_ state: borrowing State) -> ConnectionSlots {
        var usable: [ConnectionSlots.Adapter] = []
        for runner in adapters.runners where runner.usableAdapter != nil {
            usable.append(
                ConnectionSlots.Adapter(
                    capacity: state.capacities[runner.index]?.count,
                    usedCount: state.usedCount(of: runner.index)
                )
            )
        }
        return ConnectionSlots(configuredLimit: limit, usedCount: state.usedCount, adapters: usable)
    }

    private func slotMessage(_ state: borrowing State) -> Message {
        let slots = connectionSlots(state)
        return .connectionsFree(
            free: slots.free,
            limit: slots.limit,
            allocated: state.connections.map(\.address) + state.slots.keys.sorted()
        )
    }

    func informSubscribers(_ state: inout State) {
        let message = slotMessage(state)
        for client in state.subscribers { client.send(message) }
        guard let whenSlotsChanged else { return }
        let slots = connectionSlots(state)
        guard slots != state.lastSlots else { return }
        state.lastSlots = slots
        whenSlotsChanged(slots)
    }

    /// Informs clients that an adapter can be used now, or can no longer be used. To be called at the start too.
    func adaptersChanged() {
        state.withLock { state in
            // Another controller may be opened next, and one that is reset may have refused a link because it failed.
            for runner in adapters.runners where runner.usableAdapter == nil { state.capacities[runner.index] = nil }
            informSubscribers(&state)
        }
    }

    /// Learns from a link that was made through an adapter.
    func linkMade(through adapter: Int) {
        state.withLock { state in
            let capacity = state.capacities[adapter]
            state.capacities[adapter, default: LinkCapacity()].linkMade(count: state.linkCount(of: adapter))
            if state.capacities[adapter]?.count != capacity?.count { informSubscribers(&state) }
        }
    }

    /// Learns from an adapter's refusal to make a further link.
    func linkRefused(by adapter: Int, _ state: inout State) {
        guard adapters.runners[adapter].usableAdapter != nil else { return }
        state.capacities[adapter, default: LinkCapacity()].linkRefused(count: state.linkCount(of: adapter))
        logger.info(
            "the controller holds no further connection",
            metadata: [
                "adapter": "\(adapters.runners[adapter].name)",
                "capacity": "\(state.capacities[adapter]?.count ?? 0)",
            ]
        )
    }

    /// How many connections the controller of an adapter holds at one time; nil if it is not known.
    func capacity(of adapter: Int) -> Int? { state.withLock { $0.capacities[adapter]?.count } }

    // MARK: Connections

    /// Connects to a device. The client is sent the outcome.
    ///
    /// While a connection of the same client is ending, the message about its end is the outcome. A further request of
    /// a client that waits replaces the earlier one, and both have one outcome.
    func connect(_ address: UInt64, isRandom: Bool?, usesCache: Bool, for client: Client) {
        let request = Request(address: address, isRandom: isRandom, usesCache: usesCache, client: client)
        state.withLock { state in
            guard !client.hasEnded.load(ordering: .relaxed) else { return }
            guard state.slots[address] == nil else {
                return client.send(.disconnected(address, error: ClientErrorCode.alreadyOpen))
            }
            guard let connection = state.connections.first(where: { $0.address == address }) else {
                return start(request, &state)
            }
            if connection.client === client { return connection.confirm() }
            // The outcome is sent once, that of the last request.
            if state.waiting[address]?.client === client {
                state.waiting[address] = request
                return
            }
            if connection.client.hasEnded.load(ordering: .relaxed), state.waiting[address] == nil {
                state.waiting[address] = request
            } else {
                client.send(.disconnected(address, error: ClientErrorCode.alreadyOpen))
            }
        }
    }

    /// Takes a slot for a device that has none and starts to connect, or refuses the request.
    private func start(_ request: Request, _ state: inout State) {
        let address = request.address
        guard !state.isStopping, state.usedCount < limit,
            let runner = adapter(for: address, besides: request.refusals, &state), let adapter = runner.usableAdapter
        else { return request.client.send(.disconnected(address, error: ClientErrorCode.insufficientResources)) }
        if !request.usesCache { services.remove(address) }
        // Without its type, an address with the two highest bits set is taken as random static.
        let device = DeviceAddress(address, isRandom: request.isRandom ?? (address >> 46 == 0b11))
        let connection = DeviceConnection(
            device,
            client: request.client,
            adapter: adapter,
            adapterIndex: runner.index,
            adapters: adapters,
            services: services,
            failedAttemptTime: failedAttemptTime,
            events: events,
            logger: logger
        )
        state.connections.append(connection)
        informSubscribers(&state)
        connection.start(after: state.changes[address]?.task) { [self] in
            linkMade(through: connection.adapterIndex)
        } ended: { [self] message in
            await readBonds(of: connection.adapterIndex)
            remove(connection, of: request, informing: message)
        }
    }

    /// Reads an adapter's bonds again. It is called after a requested pairing, and before the slot of a connection is
    /// free, so that the next choice of an adapter follows a bond that was added or removed.
    func readBonds(of adapter: Int) async {
        await adapters.runners[adapter].readBonds()
    }

    /// The adapter for a connection to a device; nil if none is usable and has room. An attempt after a failed one
    /// prefers another.
    ///
    /// While an adapter that has the device's bond can be used, no other one is chosen, even if the adapter has no
    /// room. Another one does not have the key, and a new pairing through it may replace the device's bond.
    ///
    /// - Parameters:
    ///   - refusals: the positions of adapters that are not chosen.
    ///   - now: the time of the attempt.
    func adapter(
        for address: UInt64,
        besides refusals: Set<Int> = [],
        _ state: inout State,
        at now: ContinuousClock.Instant = .now
    ) -> AdapterRunner? {
        let failed = state.failedAttempts.take(address, at: now)
        var candidates: [AdapterChoice.Candidate] = []
        let usable = adapters.runners.filter { $0.usableAdapter != nil }
        let bonded = usable.filter { $0.hasBond(with: address) }
        for runner in bonded.isEmpty ? usable : bonded where !refusals.contains(runner.index) {
            let usedCount = state.usedCount(of: runner.index)
            if let capacity = state.capacities[runner.index]?.count, usedCount >= capacity { continue }
            let candidate = AdapterChoice.Candidate(
                index: runner.index,
                connectionCount: usedCount,
                rssi: adapters.scanner.rssi(of: address, by: runner.index),
                hasFailed: runner.index == failed
            )
            candidates.append(candidate)
        }
        guard let best = AdapterChoice.best(of: candidates) else { return nil }
        let runner = adapters.runners[best.index]
        if bonded.isEmpty, let absent = adapters.runners.first(where: { $0.hasBond(with: address) }) {
            logger.warning(
                "the adapter that has the device's bond cannot be used; connecting without the bond",
                metadata: [
                    "device": "\(DeviceAddress(address, isRandom: address >> 46 == 0b11))",
                    "bonded": "\(absent.name)",
                    "adapter": "\(runner.name)",
                ]
            )
        }
        return runner
    }

    /// Frees the slot of a connection that has ended, and informs its client.
    ///
    /// If the adapter holds no further connection, another one is asked. Its outcome is the message then.
    private func remove(_ connection: DeviceConnection, of request: Request, informing message: Message) {
        state.withLock { state in
            state.connections.removeAll { $0 === connection }
            if connection.isRefused {
                linkRefused(by: connection.adapterIndex, &state)
                if !state.isStopping, !request.client.hasEnded.load(ordering: .relaxed) {
                    var request = request
                    request.refusals.insert(connection.adapterIndex)
                    performRest(of: connection, &state)
                    informSubscribers(&state)
                    return start(request, &state)
                }
            }
            if connection.hasFailedToConnect {
                attemptFailed(connection.address, through: connection.adapterIndex, &state)
            }
            connection.client.send(message)
            performRest(of: connection, &state)
            informSubscribers(&state)
            if let next = state.waiting.removeValue(forKey: connection.address) { start(next, &state) }
        }
    }

    /// Performs the operations that a connection has not performed before its end, or answers them. An operation that
    /// needs no link is performed also if the client has gone.
    private func performRest(of connection: DeviceConnection, _ state: inout State) {
        let (address, client) = (connection.address, connection.client)
        for operation in connection.takeUnperformed() {
            performWithoutLink(operation, on: address, bondedAs: connection.bondAddresses, for: client, &state)
        }
        connection.finishRequests()
    }

    /// Learns that an attempt to connect to a device has failed.
    ///
    /// - Parameter now: the time of the failure.
    func attemptFailed(
        _ address: UInt64,
        through adapter: Int,
        _ state: inout State,
        at now: ContinuousClock.Instant = .now
    ) {
        state.failedAttempts.record(address, through: adapter, at: now)
    }

    /// Disconnects a device, or cancels the attempt to connect to it. The client is sent the end.
    func disconnect(_ address: UInt64, for client: Client) {
        state.withLock { state in
            if let connection = state.connections.first(where: { $0.address == address && $0.client === client }) {
                connection.disconnect()
            } else if state.waiting[address]?.client === client {
                state.waiting[address] = nil
                client.send(.disconnected(address, error: ClientErrorCode.connectionCancelled))
            } else {
                client.send(.disconnected(address, error: ClientErrorCode.noConnection))
            }
        }
    }

    /// Performs an operation on a device that the client has connected, after the client's earlier ones.
    func perform(_ operation: DeviceOperation, on address: UInt64, for client: Client) {
        state.withLock { state in
            let connection = state.connections.first { $0.address == address }
            if let connection, connection.client === client {
                if connection.submit(operation) { return }
            } else if connection != nil || state.slots[address] != nil, !operation.needsLink {
                // The device is in use.
                if let message = operation.failure(address, ClientErrorCode.alreadyOpen) { client.send(message) }
                return
            }
            performWithoutLink(operation, on: address, bondedAs: [address], for: client, &state)
        }
    }

    /// Performs an operation on a device that is not connected, or answers that it needs a connection.
    ///
    /// - Parameter addresses: the addresses under which adapters may be bonded to the device.
    private func performWithoutLink(
        _ operation: DeviceOperation,
        on address: UInt64,
        bondedAs addresses: Set<UInt64>,
        for client: Client,
        _ state: inout State
    ) {
        switch operation {
        case .unpair:
            change(address, for: client, &state) { [adapters] in
                let isRemoved = await adapters.removeBonds(with: addresses)
                return .unpairing(address, error: isRemoved ? 0 : ClientErrorCode.notPaired)
            }
        case .clearCache:
            services.remove(address)
            change(address, for: client, &state) { [adapters] in
                await adapters.discardDatabaseCaches(of: addresses)
                return .cacheCleared(address)
            }
        default:
            if let message = operation.failure(address) { client.send(message) }
        }
    }

    /// Ends everything that a client has requested, because its session has ended.
    func remove(_ client: Client) {
        let connections = state.withLock { state in
            state.subscribers.removeAll { $0 === client }
            client.hasEnded.store(true, ordering: .relaxed)
            state.waiting = state.waiting.filter { $1.client !== client }
            return state.connections.filter { $0.client === client }
        }
        for connection in connections { connection.cancel() }
    }

    /// Ends all connections, and waits until they and the changes of bonds have ended, for a limited time.
    func stop(timeout: Duration) async {
        let connections = state.withLock { state in
            state.isStopping = true
            state.waiting = [:]
            return state.connections
        }
        for connection in connections { connection.cancel() }
        await waitForEnds(atMost: timeout)
    }

    /// Waits until no connection and no change of bonds is left, for a limited time.
    ///
    /// - Returns: whether none is left.
    @discardableResult
    func waitForEnds(atMost timeout: Duration) async -> Bool {
        await wait(atMost: timeout) { [self] in
            while true {
                let (connections, changes) = state.withLock { state in
                    (state.connections, state.changes.values.map { $0.task })
                }
                guard !connections.isEmpty || !changes.isEmpty else { return }
                for connection in connections { await connection.finished() }
                // Some have waited for the ends of connections.
                for change in changes { await change.value }
            }
        }
    }
}
