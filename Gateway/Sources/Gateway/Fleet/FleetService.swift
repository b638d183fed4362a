import Dispatch
import Foundation
import GatewayFleet
import GatewayMQTT
import Logging
import ServiceLifecycle
import Synchronization

/// Receives the messages of a fleet, and writes what they say together.
///
/// ## Threads
/// The session's thread takes messages: it stores each in the journal, then gives it to the consumer. A timer ends
/// windows, and passes lines on. The queue of ``FleetOutput`` writes them. A message is confirmed to the broker after
/// it is in the journal, and finished there after its line is written. If lines are published, the session of
/// ``EarlierElections`` receives the elections of the last process, on a thread of its own.
///
/// A thread that uses the journal has the lock of the state, and a slow disk may hold it for minutes. So neither
/// ``status`` nor ``answer()`` waits for it.
final class FleetService: Service {
    /// How often windows are ended and lines passed on. A line is up to this time late.
    private static let interval = DispatchTimeInterval.milliseconds(50)
    /// The greatest number of messages whose observations are not written.
    private static let unfinishedLimit = 100_000
    /// The greatest size of the files with these messages, in bytes. The next process reads them into memory.
    private static let unfinishedByteLimit = 64 << 20
    /// How long the last lines may take.
    private static let stopTimeout = Duration.seconds(5)
    /// The longest time between the request to end and the end: that of the lines, and of the three sessions, which end
    /// one after the other.
    static let longestEnd = stopTimeout + MQTTSession.longestEnd * 3

    private let configuration: Configuration
    private let logger: Logger
    private let timeSinceStart: @Sendable () -> Duration
    private let state: Mutex<State>
    /// The status of the last time that the state was free.
    private let lastStatus = Mutex(FleetStatus())
    /// The queue of the timer, which ends windows and passes lines on.
    let queue = DispatchQueue(label: "ble-gateway.fleet")
    /// Knows whether a thread uses the journal.
    let progress = QueueProgress()
    private let isStopping = Atomic(false)
    private let session = Mutex<MQTTSession?>(nil)
    /// Nil if lines are not published.
    private let earlierElections = Mutex<EarlierElections?>(nil)
    private let output = Mutex<FleetOutput?>(nil)
    private let failures = AsyncStream.makeStream(of: FleetOutputError.self)

    /// - Parameters:
    ///   - journal: nothing else may use it.
    ///   - timeSinceStart: returns the time since any moment before.
    /// - Throws: ``MQTTError`` if the configuration cannot be used.
    init(
        _ configuration: Configuration,
        journal: sending FleetJournal,
        timeSinceStart: @escaping @Sendable () -> Duration = FleetOutput.durationSinceNow(),
        logger: Logger
    ) throws(MQTTError) {
        self.configuration = configuration
        self.timeSinceStart = timeSinceStart
        self.logger = logger
        state = Mutex(State(consumer: FleetConsumer(window: configuration.window), journal: journal))
        let output = FleetOutput(
            descriptor: configuration.descriptor,
            logger: logger,
            finished: { [weak self] tokens in self?.finish(tokens) },
            failed: { [failures] error in
                failures.continuation.yield(error)
                failures.continuation.finish()
            }
        )
        if configuration.publishing != nil { try output.publish(by: configuration.connection) }
        self.output.withLock { $0 = output }
        let session = try MQTTSession(configuration.connection, name: configuration.session) { [weak self] reception in
            self?.receive(reception) ?? false
        } handle: { [weak self] event in
            self?.handle(event)
        }
        self.session.withLock { $0 = session }
        guard let publishing = configuration.publishing else { return }
        let elections = try EarlierElections(
            configuration.connection,
            topics: publishing,
            logger: logger
        ) { [weak self] address, payload in
            guard let self else { return }
            state.withLock { $0.consumer.addRetainedElection(of: address, payload: payload, at: now) }
        }
        earlierElections.withLock { $0 = elections }
    }

    /// Combines messages until graceful shutdown or until the task is cancelled. The windows that are open end then.
    ///
    /// - Throws: ``FleetOutputError`` if lines can never be written again.
    func run() async throws {
        restore()
        let timer = DispatchSource.makeTimerSource(queue: queue)
        timer.schedule(deadline: .now(), repeating: Self.interval, leeway: .milliseconds(5))
        timer.setEventHandler { [weak self] in self?.advance() }
        timer.resume()
        output.withLock { $0 }?.start()
        session.withLock { $0 }?.start()
        earlierElections.withLock { $0 }?.start()
        let failure = await withTaskCancellationOrGracefulShutdownHandler {
            await failures.stream.first { _ in true }
        } onCancelOrGracefulShutdown: { [failures] in
            failures.continuation.finish()
        }
        timer.cancel()
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async { [self] in
                stop()
                continuation.resume()
            }
        }
        report()
        if let failure { throw failure }
    }

    private func stop() {
        isStopping.store(true, ordering: .releasing)
        session.withLock { $0 }?.stop()
        earlierElections.withLock { $0 }?.stop()
        state.withLock { state in
            take(state.consumer.finish(at: now), &state)
            flush(&state)
        }
        output.withLock { $0 }?.stop(timeout: Self.stopTimeout)
        state.withLock { flush(&$0) }
    }

    /// What the service has done. If a thread uses the state now, it is what was done shortly before; if that thread
    /// waits for the disk, before the wait.
    var status: FleetStatus {
        _ = state.withLockIfAvailable { updateStatus($0) }
        return lastStatus.withLock { $0 }
    }

    /// Returns once the queue that ends windows has performed its earlier work, or a thread uses the journal, or the
    /// task is cancelled.
    func answer() async { await progress.answer(of: queue) }

    /// To be called with the lock of the state, so counters never decrease.
    private func updateStatus(_ state: State) {
        let output = output.withLock { $0 }
        var status = state.consumer.status(at: now)
        status.isConnected = state.isConnected
        status.connectCount = state.connectCount
        status.waitingLineCount = state.lines.count + (output?.waitingCount ?? 0)
        status.lineCount = output?.writtenCount ?? 0
        status.waitingMessageCount = state.journal.unfinishedCount
        status.storeFailure = state.journal.failure
        status.outputFailure = output?.failure
        lastStatus.withLock { $0 = status }
    }

    private var now: Duration { timeSinceStart() }
    /// The system's time in milliseconds since 1970. It may be set while the program runs, for example after the start
    /// of a machine without a clock.
    private var systemTime: Int64 { Int64(Date().timeIntervalSince1970 * 1000) }

    // MARK: Messages

    /// Takes the messages that were not finished when the last process ended.
    private func restore() {
        let (now, systemTime) = (now, systemTime)
        state.withLock { state in
            var restored: [FleetWindow.Restored] = []
            for entry in state.journal.takeFound() {
                guard let message = message(entry) else {
                    if !entry.isFinished { state.finished.append(entry.token) }
                    continue
                }
                // Negative if the clock was set back: it is not known when the message arrived.
                let age = Duration.milliseconds(systemTime.subtractingReportingOverflow(entry.arrival).partialValue)
                restored.append(.init(message, token: entry.token, isFinished: entry.isFinished, age: age))
            }
            let count = restored.count { !$0.isFinished }
            if count > 0 { logger.info("messages of the last run are collected", metadata: ["count": "\(count)"]) }
            let (skipped, removed) = (state.journal.skippedByteCount, state.journal.removedByteCount)
            if skipped > 0 {
                let metadata: Logger.Metadata = ["bytes": "\(skipped)"]
                logger.warning("damaged records of the journal are skipped; messages may be lost", metadata: metadata)
            }
            if removed > 0 {
                let metadata: Logger.Metadata = ["bytes": "\(removed)"]
                logger.notice("incomplete records at the end of files of the journal were removed", metadata: metadata)
            }
            take(state.consumer.restore(restored, at: now, systemTime: .milliseconds(systemTime)), &state)
        }
    }

    /// The message of a topic of readings; nil for another topic, or if it cannot be decoded.
    private func message(_ entry: FleetJournal.Entry) -> FleetMessage? {
        guard case .readings(let address, let gateway) = configuration.topics.subject(of: entry.topic) else {
            return nil
        }
        let payload = String(decoding: entry.payload, as: UTF8.self)
        return try? FleetMessage(gateway: gateway, address: address, payload: payload)
    }

    /// Whether too many lines wait, or too many messages are not finished.
    private var isFull: Bool {
        output.withLock { $0?.isFull ?? false }
            || state.withLock { state in
                state.journal.unfinishedCount >= Self.unfinishedLimit
                    || state.journal.unfinishedByteCount >= Self.unfinishedByteLimit
            }
    }

    /// Takes a message.
    ///
    /// - Returns: whether the broker may forget it.
    func receive(_ reception: MQTTSession.Reception) -> Bool {
        // Messages that are not received yet stay in the session at the broker. If this takes long, the broker ends the
        // connection, and the client connects again.
        while isFull {
            guard !isStopping.load(ordering: .acquiring) else { return false }
            usleep(10_000)
        }
        return state.withLock { state in
            switch configuration.topics.subject(of: reception.topic) {
            case .status(let gateway):
                let isOnline = reception.payload?.elementsEqual("online".utf8) ?? false
                take(state.consumer.setOnline(isOnline, gateway: gateway, at: now), &state)
                return true
            case .connections(let gateway):
                setConnections(reception, gateway, &state)
                return true
            case .readings(let address, let gateway): return receive(reception, address, gateway, &state)
            case nil: return true
            }
        }
    }

    private func setConnections(_ reception: MQTTSession.Reception, _ gateway: String, _ state: inout State) {
        let payload = String(decoding: reception.payload ?? [], as: UTF8.self)
        // A publisher removes a retained message by an empty one.
        guard !payload.isEmpty else { return }
        do throws(FleetMessageError) {
            take(try state.consumer.setConnections(payload, gateway: gateway, at: now), &state)
        } catch {
            reportMalformed(reception, error, &state)
        }
    }

    private func reportMalformed(
        _ reception: MQTTSession.Reception,
        _ error: FleetMessageError,
        _ state: inout State
    ) {
        guard state.consumer.countMalformed() else { return }
        logger.warning("a message is not used: \(error)", metadata: ["topic": "\(reception.topic)"])
    }

    private func receive(
        _ reception: MQTTSession.Reception,
        _ address: UInt64,
        _ gateway: String,
        _ state: inout State
    ) -> Bool {
        let message: FleetMessage
        let payload = reception.payload ?? []
        do throws(FleetMessageError) {
            guard reception.payload != nil else { throw .tooLong(MQTTSession.Reception.sizeLimit + 1) }
            let text = String(decoding: payload, as: UTF8.self)
            message = try FleetMessage(gateway: gateway, address: address, payload: text)
        } catch {
            reportMalformed(reception, error, &state)
            return true
        }
        progress.beginStoreUse()
        let token = state.journal.append(topic: reception.topic, payload: payload, arrival: systemTime)
        progress.endStoreUse()
        guard let token else {
            if !state.hasStoreFailure {
                state.hasStoreFailure = true
                let reason = state.journal.failure ?? "unknown"
                logger.error("messages cannot be stored, and wait at the broker: \(reason)")
            }
            return false
        }
        if state.hasStoreFailure {
            state.hasStoreFailure = false
            logger.notice("messages are stored again")
        }
        // The window begins after a wait for the disk: the other messages of the transmission have waited as well.
        take(state.consumer.receive(message, token: token, at: now, systemTime: .milliseconds(systemTime)), &state)
        return true
    }

    // MARK: Output

    private func take(_ output: FleetConsumer.Output, _ state: inout State) {
        guard !output.isEmpty else { return }
        for change in output.changes {
            let topic = configuration.publishing?.election(of: change.address)
            // An empty message removes the retained one.
            let payload = change.gateway == nil ? "" : nil
            let line = FleetOutput.Line(text: change.json, topic: topic, payload: payload, isRetained: true, tokens: [])
            state.lines.append(line)
        }
        for (observation, elected) in output.observations {
            let topic = configuration.publishing?.observations(of: observation.address)
            let text = observation.json(elected: elected)
            state.lines.append(.init(text: text, topic: topic, isRetained: false, tokens: observation.tokens))
        }
        state.finished += output.discarded
    }

    /// Ends windows, and passes lines on.
    func advance() {
        state.withLock { state in
            take(state.consumer.advance(to: now), &state)
            flush(&state)
            updateStatus(state)
        }
        earlierElections.withLock { $0 }?.advance()
        output.withLock { $0 }?.checkConfirmations()
    }

    /// Passes lines on, and stores which messages are finished.
    private func flush(_ state: inout State) {
        if !state.lines.isEmpty {
            output.withLock { $0 }?.write(state.lines)
            state.lines = []
        }
        storeFinished(&state)
    }

    private func finish(_ tokens: [UInt64]) {
        state.withLock { state in
            state.finished += tokens
            storeFinished(&state)
        }
    }

    private func storeFinished(_ state: inout State) {
        guard !state.finished.isEmpty else { return }
        progress.beginStoreUse()
        defer { progress.endStoreUse() }
        state.finished = state.journal.finish(state.finished)
    }

    // MARK: The broker

    private func handle(_ event: MQTTSession.Event) {
        switch event {
        case .connected:
            state.withLock { state in
                state.isConnected = true
                state.connectCount += 1
                state.lastReason = nil
            }
            logger.info("connected to the broker", metadata: ["session": "\(configuration.session)"])
            subscribe()
        case .disconnected(let reason):
            let isNew = state.withLock { state in
                defer { state.lastReason = reason }
                state.isConnected = false
                state.subscriptions = [:]
                return state.lastReason != reason
            }
            if isNew { logger.warning("the broker cannot be reached: \(reason)") }
        case .delivered: break
        case .subscribed(let number, let isGranted):
            let (filter, isLast) = state.withLock { state in
                (state.subscriptions.removeValue(forKey: number), state.subscriptions.isEmpty)
            }
            if let filter, !isGranted {
                logger.error("the broker refuses the subscription to \(filter); allow this user to read the topic")
            }
            if isLast { logger.info("subscribed to the topics of the gateways") }
        }
    }

    private func subscribe() {
        guard let session = session.withLock({ $0 }) else { return }
        for filter in configuration.topics.filters {
            // The answer comes on this thread.
            if let number = session.subscribe(to: filter) { state.withLock { $0.subscriptions[number] = filter } }
        }
    }

    private func report() {
        state.withLock { updateStatus($0) }
        let status = status
        let messages = status.messages
        logger.notice(
            "stopped",
            metadata: [
                "received": "\(messages.received)", "observations": "\(messages.observations)",
                "duplicates": "\(messages.duplicates)", "late": "\(messages.late)", "missing": "\(messages.missing)",
                "malformed": "\(status.malformedCount)", "waiting": "\(status.waitingMessageCount)",
            ]
        )
    }
}
