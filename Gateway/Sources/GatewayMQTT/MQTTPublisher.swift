import BLE
import Dispatch
import Foundation
import GatewayCore
import Logging
import ServiceLifecycle
import Synchronization

/// Publishes the readings of sensors to a broker.
///
/// Calls return at once: everything happens on a queue of the publisher. The messages of a sensor keep their order.
public final class MQTTPublisher: Service {
    private struct State {
        var outbox: Outbox
        var discovery: HomeAssistantDiscovery?
        var isConnected = false
        var deliveredCount: UInt64 = 0
        var lastReason: String?
    }

    /// The greatest number of observations that wait for the queue.
    private static let queueLimit = 4096

    private let configuration: MQTTConfiguration
    private let topics: Topics
    private let logger: Logger
    private let queue = DispatchQueue(label: "ble-gateway.mqtt")
    private let queuedCount = Atomic(0)
    private let overflowCount = Atomic<UInt64>(0)
    // Used on the queue only, except for the status.
    private let state: Mutex<State>
    private let client = Mutex<MQTTClient?>(nil)

    /// - Throws: ``MQTTError`` if the configuration cannot be used.
    public init(_ configuration: MQTTConfiguration) throws(MQTTError) {
        self.configuration = configuration
        var logger = configuration.logger
        logger[metadataKey: "broker"] = "\(configuration.broker)"
        self.logger = logger
        topics = Topics(prefix: configuration.topicPrefix, gateway: configuration.gateway)
        let outbox = Outbox(limit: configuration.storeLimit, logger: logger)
        let topics = topics
        let discovery = configuration.discoveryPrefix.map { HomeAssistantDiscovery(prefix: $0, topics: topics) }
        state = Mutex(State(outbox: outbox, discovery: discovery))
        let will = MQTTMessage(topic: topics.status, payload: "offline", isRetained: true)
        let client = try MQTTClient(configuration, will: will) { [weak self] event in
            guard let self else { return }
            queue.async { self.handle(event) }
        }
        self.client.withLock { $0 = client }
    }

    /// Opens the store. One that is damaged is set aside.
    private static func openStore(_ path: String?, _ logger: Logger) -> MessageStore? {
        guard let path else { return nil }
        do {
            return try MessageStore(path: path)
        } catch {
            logger.error(
                "the messages that wait for the broker cannot be read: \(error)",
                metadata: ["path": "\(path)"]
            )
            for suffix in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) }
            _ = rename(path, path + ".damaged")
            return try? MessageStore(path: path)
        }
    }

    // MARK: Service

    /// Publishes until graceful shutdown or until the task is cancelled. Nothing else may use the store meanwhile.
    public func run() async throws {
        let client = client.withLock { $0 }
        await Self.run(on: queue) { [self] in
            if let store = Self.openStore(configuration.storePath, logger) { state.withLock { $0.outbox.use(store) } }
        }
        client?.start()
        try? await gracefulShutdown()
        await Self.run(on: queue) { [self] in
            send(MQTTMessage(topic: topics.status, payload: "offline", isRetained: true))
        }
        await Self.run(on: DispatchQueue.global()) { client?.stop() }
    }

    private static func run(on queue: DispatchQueue, _ body: @escaping @Sendable () -> Void) async {
        await withCheckedContinuation { continuation in
            queue.async {
                body()
                continuation.resume()
            }
        }
    }

    // MARK: Observations

    /// Publishes an observation.
    public func publish(_ observation: SensorObservation) {
        guard queuedCount.wrappingAdd(1, ordering: .relaxed).newValue <= Self.queueLimit else {
            queuedCount.wrappingSubtract(1, ordering: .relaxed)
            overflowCount.wrappingAdd(1, ordering: .relaxed)
            return
        }
        queue.async { [self] in
            queuedCount.wrappingSubtract(1, ordering: .relaxed)
            let topic = topics.readings(of: observation.address, by: observation.gateway)
            state.withLock { state in
                if state.isConnected {
                    for announcement in state.discovery?.announcements(for: observation) ?? [] { send(announcement) }
                }
                let message = MQTTMessage(topic: topic, payload: observation.json)
                state.outbox.append(message, isConnected: state.isConnected)
                sendAll(&state)
            }
        }
    }

    private func sendAll(_ state: inout State) {
        guard state.isConnected else { return }
        state.outbox.sendAll { client.withLock { $0 }?.publish($0) }
    }

    /// Sends a message that is worthless later.
    private func send(_ message: MQTTMessage) {
        _ = client.withLock { $0 }?.publish(message)
    }

    // MARK: The connection

    private func handle(_ event: MQTTClient.Event) {
        state.withLock { state in
            switch event {
            case .connected:
                state.isConnected = true
                state.lastReason = nil
                logger.info("connected to the broker", metadata: ["waiting": "\(state.outbox.count)"])
                send(MQTTMessage(topic: topics.status, payload: "online", isRetained: true))
                announceAgain(&state)
                if let prefix = state.discovery?.prefix { client.withLock { $0 }?.subscribe(to: "\(prefix)/status") }
                sendAll(&state)
            case .disconnected(let reason):
                state.isConnected = false
                if state.lastReason != reason { logger.warning("the broker cannot be reached: \(reason)") }
                state.lastReason = reason
            case .delivered(let number):
                state.deliveredCount += 1
                state.outbox.confirm(number)
                sendAll(&state)
            case .received(_, let payload):
                // Home Assistant has started.
                if payload == "online" { announceAgain(&state) }
            }
        }
    }

    private func announceAgain(_ state: inout State) {
        state.discovery?.restart()
    }

    /// What the publisher has done.
    public var status: GatewayStatus.BrokerStatus {
        state.withLock { state in
            GatewayStatus.BrokerStatus(
                address: "\(configuration.broker)",
                isConnected: state.isConnected,
                waitingCount: state.outbox.count,
                deliveredCount: state.deliveredCount,
                droppedCount: state.outbox.droppedCount + overflowCount.load(ordering: .relaxed)
            )
        }
    }
}
