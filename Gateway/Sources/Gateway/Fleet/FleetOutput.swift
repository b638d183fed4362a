import Dispatch
import Foundation
import GatewayMQTT
import Logging
import Synchronization

/// Writes lines to a file descriptor, then publishes them, and reports which messages they were made of.
///
/// A reader that is slow, a disk that is full, or a broker that is away makes lines wait. The caller must add no more
/// if ``isFull``.
final class FleetOutput: Sendable {
    /// A line of JSON.
    struct Line: Sendable {
        var text: String
        /// The topic on which it is published; nil for none.
        var topic: String?
        /// The published payload, if it differs from `text`.
        var payload: String?
        /// Whether the broker keeps it for later subscribers.
        var isRetained: Bool
        /// The messages that it was made of.
        var tokens: [UInt64]
    }

    private struct Counts {
        var waiting = 0
        var written: UInt64 = 0
    }

    /// The number of waiting lines from which no more should be added.
    static let limit = 4096
    /// The greatest number of lines that the broker has not confirmed.
    private static let deliveryLimit = 64
    /// After this number of connections that end before the broker confirms a line, it is taken to refuse the first
    /// one.
    private static let fruitlessConnectionLimit = 3
    /// The time after which lines that could not be written are tried again.
    private static let retryPause = DispatchTimeInterval.seconds(1)

    private let descriptor: Int32
    private let finished: @Sendable ([UInt64]) -> Void
    private let failed: @Sendable (FleetOutputError) -> Void
    private let queue = DispatchQueue(label: "ble-gateway.fleet.output")
    private let counts = Mutex(Counts())
    private let session = Mutex<MQTTSession?>(nil)
    /// Used on the queue only.
    private let unwritten = Mutex(UnwrittenLines())
    /// Why the last attempt to write lines failed; nil if it did not. While there is a reason, another attempt follows.
    private let lastFailure = Mutex<String?>(nil)
    /// Used on the queue only.
    private let deliveries: Mutex<DeliveryWindow<Line>>
    private let timeSinceStart: @Sendable () -> Duration
    /// Whether the connection is being ended, because a line was not confirmed in time. Used on the queue only.
    private let isReconnecting = Mutex(false)
    private let hasFailed = Mutex(false)
    /// Whether a check of the confirmations waits for the queue.
    private let isCheckPending = Mutex(false)
    /// The number of the connection on which lines are published; nil if there is none. It is set only after the end of
    /// the previous connection was handled. The session may already have a later connection, whose events still wait
    /// for the queue. Used on the queue only.
    private let connection = Mutex<UInt64?>(nil)
    private let logger: Logger

    /// - Parameters:
    ///   - confirmationTimeout: the time in which the broker should confirm a line.
    ///   - timeSinceStart: returns the time since any moment before.
    ///   - logger: receives the reasons why lines cannot be written now, and why the connection to the broker was lost.
    ///   - finished: is called with the messages of lines that are written and, if they have a topic, confirmed.
    ///   - failed: is called once if the descriptor can never be written again: its reader has gone, or it is closed.
    init(
        descriptor: Int32,
        confirmationTimeout: Duration = .seconds(60),
        timeSinceStart: @escaping @Sendable () -> Duration = FleetOutput.durationSinceNow(),
        logger: Logger,
        finished: @escaping @Sendable ([UInt64]) -> Void,
        failed: @escaping @Sendable (FleetOutputError) -> Void
    ) {
        self.descriptor = descriptor
        deliveries = Mutex(DeliveryWindow(limit: Self.deliveryLimit, timeout: confirmationTimeout))
        self.timeSinceStart = timeSinceStart
        self.logger = logger
        self.finished = finished
        self.failed = failed
    }

    /// Returns a closure that returns the time since this call.
    static func durationSinceNow() -> @Sendable () -> Duration {
        let start = ContinuousClock.now
        return { ContinuousClock.now - start }
    }

    /// Publishes the lines that have a topic.
    ///
    /// - Throws: ``MQTTError`` if the configuration cannot be used.
    func publish(by configuration: MQTTConfiguration) throws(MQTTError) {
        let session = try MQTTSession(configuration, name: nil) { _ in
            true
        } handle: { [weak self] event in
            guard let self else { return }
            let number = connectionNumber
            queue.async { [self] in handle(event, number) }
        }
        self.session.withLock { $0 = session }
    }

    /// Connects to the broker, if there is one.
    func start() { session.withLock { $0 }?.start() }

    /// The number of lines that are not written, or not confirmed.
    var waitingCount: Int { counts.withLock(\.waiting) }
    /// The number of lines that were written, and confirmed if they have a topic.
    var writtenCount: UInt64 { counts.withLock(\.written) }
    /// The number of the last connection to the broker; 0 if there was none.
    var connectionNumber: UInt64 { session.withLock { $0 }?.connectionNumber ?? 0 }
    /// Why lines cannot be written now, although they are tried again; nil if they can.
    var failure: String? { lastFailure.withLock { $0 } }
    /// Whether no more lines should be added.
    var isFull: Bool { waitingCount >= Self.limit }

    /// Writes lines after the earlier ones, and returns at once.
    func write(_ lines: [Line]) {
        guard !lines.isEmpty else { return }
        counts.withLock { $0.waiting += lines.count }
        queue.async { [self] in add(lines) }
    }

    /// Connects again if the broker does not confirm a line in time. To be called now and then.
    ///
    /// - Returns: whether a check was added. None is added while the last one waits for lines to be written.
    @discardableResult
    func checkConfirmations() -> Bool {
        let isAdded = isCheckPending.withLock { isPending in
            defer { isPending = true }
            return !isPending
        }
        guard isAdded else { return false }
        // The queue may write for long. Confirmations that come during that time are handled after this check.
        let time = timeSinceStart()
        queue.async { [self] in
            isCheckPending.withLock { $0 = false }
            check(at: time)
        }
        return true
    }

    /// Waits until all lines are written and confirmed, for a limited time, and ends the connection to the broker.
    func stop(timeout: Duration) {
        let deadline = ContinuousClock.now + timeout
        while waitingCount > 0, ContinuousClock.now < deadline, !hasFailed.withLock({ $0 }) { usleep(10_000) }
        session.withLock { $0 }?.stop()
    }

    // MARK: On the queue

    private func add(_ lines: [Line]) {
        guard !hasFailed.withLock({ $0 }) else { return }
        unwritten.withLock { $0.append(lines) }
        // After a failure, the next attempt writes them.
        if failure == nil { writeAll() }
    }

    private func writeAll() {
        while let bytes = unwritten.withLock({ $0.nextBytes }) {
            let (count, error) = LineWriter.write(bytes, to: descriptor)
            if let error { writeFailed(error) } else { writeSucceeded() }
            publish(unwritten.withLock { $0.removeWritten(count) })
            if error != nil { return }
        }
    }

    private func writeFailed(_ error: Int32) {
        guard ![EPIPE, EBADF].contains(error) else {
            hasFailed.withLock { $0 = true }
            return failed(FleetOutputError(errorNumber: error))
        }
        let reason = String(cString: strerror(error))
        let isKnown = lastFailure.withLock { failure in
            defer { failure = reason }
            return failure != nil
        }
        if !isKnown { logger.error("lines cannot be written to standard output, and wait: \(reason)") }
        queue.asyncAfter(deadline: .now() + Self.retryPause) { [weak self] in self?.writeAll() }
    }

    private func writeSucceeded() {
        let hadFailed = lastFailure.withLock { failure in
            defer { failure = nil }
            return failure != nil
        }
        if hadFailed { logger.notice("lines are written to standard output again") }
    }

    /// Publishes lines that are written.
    private func publish(_ lines: [Line]) {
        let isPublished = session.withLock { $0 != nil }
        complete(lines.filter { !isPublished || $0.topic == nil })
        guard isPublished else { return }
        for line in lines where line.topic != nil { deliveries.withLock { $0.append(line) } }
        sendAll()
    }

    private func sendAll() {
        guard let connection = connection.withLock({ $0 }), let session = session.withLock({ $0 }) else { return }
        deliveries.withLock { deliveries in
            deliveries.sendAll(at: timeSinceStart()) { line in
                let payload = line.payload ?? line.text
                return session.publish(
                    MQTTMessage(topic: line.topic ?? "", payload: payload, isRetained: line.isRetained),
                    on: connection
                )
            }
        }
    }

    private func check(at time: Duration) {
        guard connection.withLock({ $0 }) == connectionNumber, !isReconnecting.withLock({ $0 }) else { return }
        switch deliveries.withLock({ $0.checkOverdue(at: time) }) {
        case .reconnect:
            isReconnecting.withLock { $0 = true }
            session.withLock { $0 }?.reconnect()
        case .removed(let line):
            leaveOut(line, "the broker did not confirm a line on \(DeliveryWindow<Line>.overdueLimit) connections")
            sendAll()
        case nil: break
        }
    }

    /// - Parameter number: the number of the last connection when the event came.
    private func handle(_ event: MQTTSession.Event, _ number: UInt64) {
        switch event {
        case .connected:
            connection.withLock { $0 = number }
            isReconnecting.withLock { $0 = false }
            sendAll()
        case .disconnected(let reason):
            let wasConnected = connection.withLock { connection in
                defer { connection = nil }
                return connection != nil
            }
            if wasConnected {
                logger.warning("lines cannot be published: \(reason)", metadata: ["lines": "\(waitingCount)"])
            }
            let refused = deliveries.withLock { deliveries -> Line? in
                deliveries.connectionLost()
                let isRefused = deliveries.fruitlessConnectionCount >= Self.fruitlessConnectionLimit
                return isRefused ? deliveries.removeFirst() : nil
            }
            if let refused { leaveOut(refused, "the broker ends each connection on which a line is published") }
        case .delivered(let number):
            if let line = deliveries.withLock({ $0.confirm(number) }) { complete([line]) }
            sendAll()
        case .subscribed: break
        }
    }

    /// Does not publish a line. Otherwise no later line would be published, or its messages would be stored forever.
    private func leaveOut(_ line: Line, _ reason: String) {
        logger.error(
            "\(reason), so the line is left out; check the broker's limits for messages and its log",
            metadata: ["topic": "\(line.topic ?? "")", "bytes": "\(line.text.utf8.count)"]
        )
        complete([line])
    }

    private func complete(_ lines: [Line]) {
        guard !lines.isEmpty else { return }
        let tokens = lines.flatMap(\.tokens)
        if !tokens.isEmpty { finished(tokens) }
        counts.withLock { counts in
            counts.waiting -= lines.count
            counts.written += UInt64(lines.count)
        }
    }
}

/// The reason why lines can never be written again.
struct FleetOutputError: Error, Equatable, CustomStringConvertible {
    let errorNumber: Int32

    var description: String {
        let reason = String(cString: strerror(errorNumber))
        return "standard output cannot be written: \(reason); what was not written follows at the next start"
    }
}
