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
package final class MQTTPublisher: Service {
    /// The greatest number of announcements and removals of announcements that the broker has not confirmed. Further
    /// announcements follow with later readings, and further removals when the broker has confirmed some.
    private static let announcementLimit = 256
    /// The greatest number of observations that wait for the queue.
    private static let observationLimit = 4096
    /// The greatest number of messages from the broker that wait for the queue. Others wait at the broker.
    private static let receptionLimit = 64
    /// How long the broker may take to confirm the last messages, in seconds.
    private static let drainTimeout = 2
    /// How long transactions of the store may take at the end, in seconds. If another program has locked the file, one
    /// waits when the end is requested, one during ``drain()``, and one to store what the broker has not confirmed.
    private static let storeTimeout = 3 * MessageStore.lockTimeout
    /// The longest time between the request to end and the end.
    package static let longestEnd = Duration.seconds(drainTimeout + MQTTClient.stopTimeout) + .seconds(storeTimeout)

    private let configuration: MQTTConfiguration
    let topics: Topics
    let logger: Logger
    /// Distinguishes the runs of a gateway: eight hexadecimal digits.
    let boot: String
    let queue = DispatchQueue(label: "ble-gateway.mqtt")
    let queueProgress = QueueProgress()
    private let checkInterval: DispatchTimeInterval
    private let timeSinceStart: @Sendable () -> Duration
    private var now: Duration { timeSinceStart() }
    private let observationIntake = Mutex(QueueIntake<SensorObservation>(limit: MQTTPublisher.observationLimit))
    let notificationIntake = Mutex(QueueIntake<DeviceNotification>(limit: CommandChannel.limit))
    /// The last connections that the gateway could make. Earlier ones are of no use.
    private let slotsIntake = Mutex(QueueIntake<ConnectionSlots>(limit: 1))
    /// Used on the queue only.
    private let state: Mutex<State>
    /// The status after the last change. A slow disk does not hold it up.
    private let published: Mutex<GatewayStatus.BrokerStatus>
    private let client = Mutex<MQTTClient?>(nil)

    /// - Throws: ``MQTTError`` if the configuration cannot be used.
    package convenience init(_ configuration: MQTTConfiguration) throws(MQTTError) {
        let start = ContinuousClock.now
        try self.init(configuration, timeSinceStart: { ContinuousClock.now - start })
    }

    /// - Parameters:
    ///   - checkInterval: how often the publisher looks whether the broker confirms anything and which devices are
    ///     silent, and tries a store again that has failed.
    ///   - timeSinceStart: returns the time since any moment before.
    init(
        _ configuration: MQTTConfiguration,
        checkInterval: DispatchTimeInterval = .seconds(10),
        timeSinceStart: @escaping @Sendable () -> Duration
    ) throws(MQTTError) {
        self.configuration = configuration
        self.checkInterval = checkInterval
        self.timeSinceStart = timeSinceStart
        var logger = configuration.logger
        logger[metadataKey: "broker"] = "\(configuration.broker)"
        self.logger = logger
        boot = Self.randomBoot()
        let topics = Topics(prefix: configuration.topicPrefix, gateway: configuration.gateway)
        self.topics = topics
        let ageLimit = Int64(configuration.storeDays) * 86_400
        let outbox = Outbox(
            limit: configuration.storeLimit,
            ageLimit: ageLimit,
            queueProgress: queueProgress,
            logger: logger
        )
        let prefix = configuration.theengsTopic == nil ? configuration.discoveryPrefix : nil
        let discovery = prefix.map { HomeAssistantDiscovery(prefix: $0, topics: topics) }
        state = Mutex(State(outbox: outbox, discovery: discovery))
        published = Mutex(GatewayStatus.BrokerStatus(address: "\(configuration.broker)"))
        let will = MQTTMessage(topic: topics.status, payload: "offline", isRetained: true)
        let receptions = DispatchSemaphore(value: Self.receptionLimit)
        let client = try MQTTClient(configuration, will: will) { [weak self] event in
            guard let self else { return }
            guard case .received = event else { return queue.async { self.handle(event) } }
            receptions.wait()
            queue.async {
                self.handle(event)
                receptions.signal()
            }
        }
        self.client.withLock { $0 = client }
    }

    private static func randomBoot() -> String {
        let digits = String(UInt32.random(in: 0...UInt32.max), radix: 16)
        return String(repeating: "0", count: 8 - digits.count) + digits
    }

    // MARK: Service

    /// Publishes until graceful shutdown or until the task is cancelled. Nothing else may use the store while this call
    /// runs.
    package func run() async throws {
        let client = client.withLock { $0 }
        await perform { [configuration] state in
            if let path = configuration.storePath { state.outbox.useStore(at: path) }
        }
        client?.start()
        let timer = DispatchSource.makeTimerSource(queue: queue)
        timer.schedule(deadline: .now() + checkInterval, repeating: checkInterval, leeway: .seconds(1))
        timer.setEventHandler { [weak self] in self?.performTimedWork() }
        timer.resume()
        defer { timer.cancel() }
        try? await gracefulShutdown()
        await drain()
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                client?.stop()
                continuation.resume()
            }
        }
        // What the broker has not confirmed outlives the process.
        await perform { [self] state in
            state.connection = nil
            state.outbox.limitLockWaits()
            while !observationIntake.withLock(\.isEmpty) {
                let (observations, firstNumber, _) = observationIntake.withLock { $0.take() }
                append(observations, firstNumber, &state)
            }
            state.outbox.connectionLost()
        }
    }

    /// Runs `body` on the queue.
    private func perform(_ body: @escaping @Sendable (inout State) -> Void) async {
        await withCheckedContinuation { continuation in
            queue.async { [self] in
                change(body)
                continuation.resume()
            }
        }
    }

    /// Changes the state, on the queue.
    func change(_ body: (inout State) -> Void) {
        state.withLock { state in
            body(&state)
            state.progress.update(isConfirmed: state.areMessagesConfirmed, at: now)
            let isConfirmed = state.areMessagesConfirmed && state.announcements.isConfirmed
            let observations = observationIntake.withLock { (isEmpty: $0.isEmpty, droppedCount: $0.droppedCount) }
            let notifications = notificationIntake.withLock { (isEmpty: $0.isEmpty, droppedCount: $0.droppedCount) }
            let areIntakesEmpty = observations.isEmpty && notifications.isEmpty
            if isConfirmed && areIntakesEmpty || state.connection == nil { state.endDrain() }
            published.withLock { status in
                status.isConnected = state.connection != nil
                status.waitingCount = state.outbox.count
                status.deliveredCount = state.deliveredCount
                status.droppedCount = state.droppedCount + observations.droppedCount + notifications.droppedCount
                status.storeFailure = state.outbox.storeFailure
            }
        }
    }

    /// Sends the last message, and waits until the broker has confirmed everything, for a limited time.
    private func drain() async {
        await withCheckedContinuation { continuation in
            queue.async { [self] in
                change { state in
                    // If the socket were closed before the confirmation has come, the kernel would reset the
                    // connection, and the broker would publish the will.
                    state.isEnding = true
                    state.outbox.limitLockWaits()
                    state.announce(MQTTMessage(topic: topics.status, payload: "offline", isRetained: true), at: now)
                    state.drained = continuation
                }
            }
            queue.asyncAfter(deadline: .now() + .seconds(Self.drainTimeout)) { [self] in change { $0.endDrain() } }
        }
    }

    // MARK: Observations

    /// Publishes an observation.
    package func publish(_ observation: SensorObservation) {
        // The lock makes the order of the numbers that of the messages.
        if observationIntake.withLock({ $0.append(observation) }) { queue.async { self.publishWaiting() } }
    }

    private func publishWaiting() {
        let (observations, firstNumber, needsTurn) = observationIntake.withLock { $0.take() }
        change { state in
            for observation in observations { state.discovery?.hear(observation, at: now) }
            if state.connection != nil, !state.progress.sendsOneAtATime {
                for observation in observations { announce(observation, &state) }
                forgetSilentDevices(&state)
            }
            append(observations, firstNumber, &state)
            state.sendAll()
        }
        if needsTurn { queue.async { self.publishWaiting() } }
    }

    /// Tries a store again that has failed. Ends a connection on which the broker confirms nothing. Otherwise sends the
    /// states that were left out, looks at the devices that are silent, and sends what the store has again.
    private func performTimedWork() {
        change { state in
            state.outbox.retryStore()
            guard let connection = state.connection else { return }
            let sendsOneAtATime = state.progress.sendsOneAtATime
            // Messages that are sent one at a time wait for the states before them.
            let start = sendsOneAtATime ? state.announcements.firstTime : nil
            if state.progress.checkStalled(at: now, waitingSince: start) {
                logger.warning("the broker confirms nothing; the gateway connects again")
                connection.abort()
            } else {
                state.sendOmittedStates(at: now)
                if !sendsOneAtATime { forgetSilentDevices(&state) }
                state.sendAll()
            }
        }
    }

    private func append(_ observations: [SensorObservation], _ firstNumber: UInt64, _ state: inout State) {
        let messages = zip(firstNumber..., observations).map { message(for: $1, $0) }
        state.outbox.append(messages, isConnected: state.connection != nil)
    }

    private func announce(_ observation: SensorObservation, _ state: inout State) {
        guard state.announcements.count < Self.announcementLimit else { return }
        let wasFull = state.discovery?.wasFull
        let progress = state.announcements
        let announcements =
            state.discovery?.announcements(for: observation, at: now) {
                progress.sends(to: $0, isState: false, at: now)
            } ?? []
        if wasFull == false, state.discovery?.wasFull == true {
            let text = "\(HomeAssistantDiscovery.limit) readings are announced to Home Assistant; more are not"
            logger.warning("\(text)", metadata: ["address": "\(observation.address)"])
        }
        for announcement in announcements { state.announce(announcement, isState: false, at: now) }
    }

    private func forgetSilentDevices(_ state: inout State) {
        let room = Self.announcementLimit - state.announcements.count
        guard let connection = state.connection, let actions = state.discovery?.sweep(at: now, room: room) else {
            return
        }
        for topic in actions.subscribe { state.subscribe(to: topic) }
        for topic in actions.unsubscribe { connection.unsubscribe(from: topic) }
        for removal in actions.removals {
            guard let number = state.announce(removal.message, isState: false, at: now) else { continue }
            state.discovery?.send(removal, as: number)
        }
    }

    private func message(for observation: SensorObservation, _ number: UInt64) -> MQTTMessage {
        if let topic = configuration.theengsTopic {
            return MQTTMessage(
                topic: "\(topic)/\("\(observation.address)".filter { $0 != ":" })",
                payload: TheengsPayload(observation: observation).text
            )
        }
        return MQTTMessage(
            topic: topics.readings(of: observation.address, by: observation.gateway),
            payload: observation.json(boot: boot, sequence: number)
        )
    }

    // MARK: Connections to devices

    /// Publishes the connections that the gateway can make.
    package func publish(_ slots: ConnectionSlots) {
        if slotsIntake.withLock({ $0.append(slots) }) { queue.async { self.publishLastSlots() } }
    }

    private func publishLastSlots() {
        let slots = slotsIntake.withLock { $0.take().elements.last }
        change { state in
            state.slots = slots
            announceSlots(&state)
        }
    }

    private func announceSlots(_ state: inout State) {
        guard let slots = state.slots else { return }
        state.announce(MQTTMessage(topic: topics.connections, payload: slots.json, isRetained: true), at: now)
    }

    // MARK: The connection

    private func handle(_ event: MQTTClient.Event) {
        change { state in
            switch event {
            case .connected(let connection):
                state.connection = connection
                state.lastReason = nil
                configuration.events.record(.brokerConnected, "\(configuration.broker)")
                logger.info("connected to the broker", metadata: ["waiting": "\(state.outbox.count)"])
                // The broker may still publish the will of an earlier connection, whose loss it has not noticed.
                state.subscribe(to: topics.status)
                if state.channel != nil { state.subscribe(to: topics.commands) }
                if let topic = state.discovery?.statusTopic { state.subscribe(to: topic) }
                announceStatus(&state)
                announceSlots(&state)
                state.discovery?.connectionMade()
                state.sendAll()
            case .disconnected(let reason):
                state.connection = nil
                state.subscriptions = [:]
                takeLoss(of: &state)
                state.outbox.connectionLost()
                configuration.events.record(.brokerLost, "\(configuration.broker)", reason)
                state.channel?.connectionLost()
                if state.lastReason != reason { logger.warning("the broker cannot be reached: \(reason)") }
                state.lastReason = reason
            case .delivered(let number):
                state.places[number] = nil
                if state.announcements.confirm(number) {
                    state.discovery?.confirm(number)
                } else {
                    state.progress.confirm()
                }
                if state.outbox.confirm(number) { state.deliveredCount += 1 }
                state.channel?.confirm(number)
                state.sendAll()
            case .subscribed(let number, let isGranted):
                guard let topic = state.subscriptions.removeValue(forKey: number), !isGranted else { return }
                logger.warning("the broker refuses the subscription to \(topic); allow this user to read the topic")
            case .received(let reception) where reception.topic == topics.commands: perform(reception, state)
            case .received(let reception) where reception.topic == topics.status:
                if reception.isWill, !state.isEnding { announceStatus(&state) }
            case .received(let reception):
                state.discovery?.hear(reception.topic, at: now)
                guard reception.topic == state.discovery?.statusTopic else { return }
                // Home Assistant has started.
                if let payload = reception.payload, payload.elementsEqual("online".utf8) { state.discovery?.restart() }
            }
        }
    }

    private func takeLoss(of state: inout State) {
        let firstMessage = state.places.values.min()
        state.places = [:]
        let isForOtherReason = state.announcements.isReason(firstMessage: firstMessage, at: now)
        let text = "the broker ends the connection at messages for"
        switch state.announcements.connectionLost(firstMessage: firstMessage, at: now) {
        case .topics(let topics):
            let list = topics.joined(separator: ", ")
            logger.warning("\(text) \(list), which are not sent for a while; check its limits and access control")
        case .announcements:
            logger.warning("\(text) Home Assistant, which are not sent for a day; check its access control")
        case nil: break
        }
        if state.progress.connectionLost(at: now, isForOtherReason: isForOtherReason) { state.dropRefused() }
    }

    private func announceStatus(_ state: inout State) {
        state.announce(MQTTMessage(topic: topics.status, payload: "online", isRetained: true), at: now)
    }

    // MARK: Status

    /// Returns once the publisher's queue has performed its earlier work. Time in the store does not count.
    package func answer() async { await queueProgress.answer(of: queue) }

    /// What the publisher has done.
    package var status: GatewayStatus.BrokerStatus { published.withLock { $0 } }
}

extension MQTTReception {
    /// Whether a message about the gateway's status says that the gateway has gone. One that the broker has kept is
    /// from before this connection.
    var isWill: Bool { !isRetained && payload?.elementsEqual("offline".utf8) == true }
}
