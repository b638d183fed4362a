import BLE
import DequeModule
import ESPHomeProtocol
import Logging
import Synchronization

/// A client's connection to a device: makes it, performs the client's operations in their order, and ends it.
///
/// ## States
///
/// A connection is connecting, connected, ending or ended. The client is informed when it is connected and when it has
/// ended, whatever the reason.
///
/// ## Operations at the end
///
/// Once the end is requested, operations that need a link are refused. The others wait: ``DeviceTable`` performs them
/// after the end, with those that were accepted before and not performed; see ``takeUnperformed()``.
final class DeviceConnection: Sendable {
    private enum Phase {
        case connecting
        case connected(mtu: Int)
        case ending
    }

    private struct State {
        var phase = Phase.connecting
        var task: Task<Void, Never>?
        /// Cancels ``task`` if the operations before a disconnection do not end soon.
        var drainTimer: Task<Void, Never>?
        /// Whether the client or the gateway has ended the connection.
        var isEndRequested = false
        /// Whether the device could not be connected; not if the client has ended the attempt early.
        var hasFailedToConnect = false
        /// Whether the controller holds no further link.
        var isRefused = false
        /// Whether there is a link.
        var hasLink = false
        /// The address of the device on the link; nil while there was no link. It is the identity address if a bond has
        /// revealed it; see ``updateLinkAddress(of:)``.
        var linkAddress: DeviceAddress?
        /// The operations that wait for the earlier ones.
        var operations: Deque<DeviceOperation> = []
        /// The number of operations that were submitted and not finished.
        var unfinishedCount = 0
    }

    /// How long a device may take to accept the connection. Home Assistant gives up after 20 s, so it receives the
    /// reason of a failure before.
    private static let connectionTimeout = Duration.seconds(18)
    /// How long operations that were requested before a disconnection may take.
    private static let drainTimeout = Duration.seconds(3)

    /// The device's address as a 48-bit number.
    var address: UInt64 { device.value }
    let device: DeviceAddress
    let client: Client
    let adapter: Adapter
    let adapterIndex: Int
    /// All adapters of the gateway.
    let adapters: AdapterSet
    let services: ServiceCache
    private let failedAttemptTime: Duration
    private let events: EventLog
    let logger: Logger
    /// Has an element when operations were submitted since the last one. It ends with the link.
    private let submissions: AsyncStream<Void>
    private let submitted: AsyncStream<Void>.Continuation
    private let state = Mutex(State())

    init(
        _ device: DeviceAddress,
        client: Client,
        adapter: Adapter,
        adapterIndex: Int,
        adapters: AdapterSet,
        services: ServiceCache,
        failedAttemptTime: Duration,
        events: EventLog,
        logger: Logger
    ) {
        self.device = device
        self.client = client
        self.adapter = adapter
        self.adapterIndex = adapterIndex
        self.adapters = adapters
        self.services = services
        self.failedAttemptTime = failedAttemptTime
        self.events = events
        var logger = logger
        logger[metadataKey: "device"] = "\(device)"
        self.logger = logger
        (submissions, submitted) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    var isConnected: Bool {
        state.withLock { if case .connected = $0.phase { true } else { false } }
    }

    var hasFailedToConnect: Bool { state.withLock(\.hasFailedToConnect) }

    /// Whether the attempt to connect has failed because the controller holds no further link, and the connection is
    /// still wanted.
    var isRefused: Bool { state.withLock { $0.isRefused && !$0.isEndRequested } }

    /// Whether there is a link, also one that is not confirmed to the client yet, or that ends.
    var hasLink: Bool { state.withLock(\.hasLink) }

    /// The addresses under which adapters may be bonded to the device: the address that the client knows, and the
    /// address on the link.
    var bondAddresses: Set<UInt64> {
        var addresses: Set<UInt64> = [address]
        if let linkAddress = state.withLock(\.linkAddress) { addresses.insert(linkAddress.value) }
        return addresses
    }

    /// Reads the address of the device on the link again. A pairing on the link may have revealed its identity address.
    func updateLinkAddress(of peripheral: RemotePeripheral) async {
        guard let information = try? await peripheral.linkInformation else { return }
        state.withLock { $0.linkAddress = information.identity }
    }

    // MARK: Requests

    /// Starts to connect.
    ///
    /// - Parameters:
    ///   - predecessor: work on the same device that has to end first.
    ///   - linkMade: is called when there is a link.
    ///   - ended: is called once with the message for the client when the connection has ended. The connection has
    ///     finished when the call returns.
    func start(
        after predecessor: Task<Void, Never>?,
        linkMade: @escaping @Sendable () -> Void,
        ended: @escaping @Sendable (Message) async -> Void
    ) {
        // On the adapter's own thread, an operation needs no thread switch.
        let task = Task(executorPreference: adapter.taskExecutor) {
            await predecessor?.value
            let error = await self.run(linkMade)
            self.state.withLock(\.drainTimer)?.cancel()
            await ended(.disconnected(self.address, error: error))
        }
        state.withLock { $0.task = task }
    }

    /// Confirms an existing connection to the client. The outcome of an attempt under way, or the end of a connection
    /// that is ending, is sent in any case.
    func confirm() {
        state.withLock { state in
            if case .connected(let mtu) = state.phase, !state.isEndRequested {
                client.send(.connected(address, mtu: mtu))
            }
        }
    }

    /// Performs an operation after the earlier ones. While the connection ends, an operation that needs no link waits
    /// for ``takeUnperformed()``.
    ///
    /// - Returns: false if the operation was not accepted: the device is not connected yet, or is not any more.
    func submit(_ operation: DeviceOperation) -> Bool {
        state.withLock { state in
            switch state.phase {
            case .connecting where !state.isEndRequested: return false
            case .connected where !state.isEndRequested: break
            case .connecting, .connected, .ending: if operation.needsLink { return false }
            }
            submit(operation, &state)
            return true
        }
    }

    private func submit(_ operation: DeviceOperation, _ state: inout State) {
        state.unfinishedCount += 1
        client.beginRequest()
        state.operations.append(operation)
        submitted.yield()
    }

    /// Returns the operations that were accepted and not performed, in their order. To be called when the connection
    /// has ended and no operation is submitted any more. The operations count as unfinished until ``finishRequests()``.
    func takeUnperformed() -> [DeviceOperation] {
        state.withLock { state in
            // The end of the connection is the answer to a disconnection.
            let operations = state.operations.filter { $0 != .disconnect }
            state.operations = []
            return Array(operations)
        }
    }

    /// Counts all operations of the connection as finished.
    func finishRequests() {
        let count = state.withLock { state in
            let count = state.unfinishedCount
            state.unfinishedCount = 0
            return count
        }
        client.finishRequests(count)
    }

    /// Disconnects after the earlier operations, if they end soon. Cancels an attempt to connect.
    func disconnect() {
        state.withLock { state in
            guard !state.isEndRequested else { return }
            state.isEndRequested = true
            switch state.phase {
            case .connecting: state.task?.cancel()
            case .connected:
                submit(.disconnect, &state)
                state.drainTimer = Task { [task = state.task] in
                    guard (try? await Task.sleep(for: Self.drainTimeout)) != nil else { return }
                    task?.cancel()
                }
            case .ending: break
            }
        }
    }

    /// Disconnects at once.
    func cancel() {
        let task = state.withLock { state in
            state.isEndRequested = true
            return state.task
        }
        task?.cancel()
    }

    /// Waits until the connection has ended.
    func finished() async {
        await state.withLock(\.task)?.value
    }

    // MARK: The connection

    /// Makes the connection and uses it until its end.
    ///
    /// - Returns: the error code that the client is sent about the end.
    private func run(_ linkMade: () -> Void) async -> Int32 {
        let peripheral: RemotePeripheral
        let start = ContinuousClock.now
        do throws(BLEError) {
            peripheral = try await adapter.central.connect(to: device, timeout: Self.connectionTimeout)
        } catch {
            logger.debug("the connection failed: \(error)")
            events.record(.deviceFailed, "\(device)", "\(error)")
            state.withLock { state in
                state.phase = .ending
                state.hasFailedToConnect = error.isFailedAttempt(
                    after: ContinuousClock.now - start,
                    failedAttemptTime: failedAttemptTime
                )
                state.isRefused = !state.isEndRequested && error.meansNoFurtherLink
            }
            return ClientErrorCode.connection(error)
        }
        state.withLock { state in
            state.hasLink = true
            state.linkAddress = peripheral.address
        }
        linkMade()
        let error = await use(peripheral)
        let hasFailed = state.withLock { state in
            // The controller reports a link before the device has answered on it.
            let isEarlyEnd = state.isEndRequested && ContinuousClock.now - start < failedAttemptTime
            if case .connecting = state.phase, !isEarlyEnd { state.hasFailedToConnect = true }
            state.phase = .ending
            return state.hasFailedToConnect
        }
        // The slot is free only when the link has ended, also if this task is cancelled.
        await Task { await peripheral.disconnect() }.value
        state.withLock { $0.hasLink = false }
        let reason = await Task { try? await peripheral.disconnection() }.value
        events.record(hasFailed ? .deviceFailed : .deviceDisconnected, "\(device)", reason.map { "\($0)" })
        return error
    }

    private func use(_ peripheral: RemotePeripheral) async -> Int32 {
        // The exchange of the ATT_MTU comes first on each link, so it has ended when this read has. Most devices do not
        // have this value; its absence costs one request.
        do throws(BLEError) {
            _ = try await peripheral.read(uuid: "2B3A")
        } catch {
            if error == .security(.keyMissing) { await removeUnrequestedBond(with: peripheral.address) }
        }
        let mtu = await peripheral.mtu
        guard await peripheral.isConnected else {
            return await Self.endCode(of: peripheral)
        }
        let isCancelled = state.withLock { state in
            if !state.isEndRequested { state.phase = .connected(mtu: mtu) }
            return state.isEndRequested
        }
        guard !isCancelled else { return ClientErrorCode.connectionCancelled }
        client.send(.connected(address, mtu: mtu))
        logger.debug("connected", metadata: ["mtu": "\(mtu)"])
        events.record(.deviceConnected, "\(device)", "for the client \(client.networkAddress)")

        await withDiscardingTaskGroup { group in
            group.addTask { [submitted] in
                _ = try? await peripheral.disconnection()
                submitted.finish()
            }
            var session = DeviceSession(connection: self, peripheral: peripheral)
            while let operation = await nextOperation(), operation != .disconnect {
                if let subscription = await session.perform(operation) {
                    group.addTask { [client, address] in await subscription.forward(to: client, address: address) }
                }
                state.withLock { $0.unfinishedCount -= 1 }
                client.finishRequests()
            }
            // Values that have arrived are still sent; then the subscriptions end, because the connection has.
            state.withLock { $0.phase = .ending }
            await updateLinkAddress(of: peripheral)
            await Task { await peripheral.disconnect() }.value
        }
        return await Self.endCode(of: peripheral)
    }

    /// Removes the bond whose key the device has lost, if no client has requested it: no client would replace it
    /// either. The link ends, and the next one is without the bond.
    private func removeUnrequestedBond(with identity: DeviceAddress) async {
        let bonds = await adapter.bonds()
        guard bonds.contains(where: { $0.identity == identity && !$0.isPrivileged }) else { return }
        logger.notice("the device has lost the key of a bond that no client has requested; the bond is removed")
        await adapter.removeBond(identity)
    }

    /// Waits for the next operation.
    ///
    /// - Returns: nil if the link has ended and no operation waits, or if the task is cancelled.
    private func nextOperation() async -> DeviceOperation? {
        var iterator = submissions.makeAsyncIterator()
        while !Task.isCancelled {
            if let operation = state.withLock({ $0.operations.popFirst() }) { return operation }
            guard await iterator.next() != nil else { return nil }
        }
        return nil
    }

    /// The code of a connection's end.
    private static func endCode(of peripheral: RemotePeripheral) async -> Int32 {
        let reason = await Task { try? await peripheral.disconnection() }.value
        return reason.map(ClientErrorCode.end) ?? ClientErrorCode.failed
    }
}
