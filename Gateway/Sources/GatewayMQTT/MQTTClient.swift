import Foundation
import Synchronization

/// Keeps a connection to a broker, on a thread of its own: makes a new one whenever the last one has ended.
final class MQTTClient: Sendable {
    enum Event: Sendable {
        case connected(BrokerConnection)
        /// The connection was lost or could not be made. No event of it follows.
        case disconnected(reason: String)
        /// The broker has taken the message with this number.
        case delivered(Int32)
        /// The broker has answered the subscription with this number.
        case subscribed(Int32, isGranted: Bool)
        case received(MQTTReception)
    }

    private struct State {
        var isStopping = false
        var connection: BrokerConnection?
    }

    /// The longest pause between two attempts to connect, in seconds.
    private static let longestPause = 60.0
    /// After a connection that has lasted this time, the pauses are short again.
    private static let stableTime = DispatchTimeInterval.seconds(10)
    /// How long the end of a connection may take.
    private static let disconnectionTimeout = DispatchTimeInterval.seconds(2)
    /// How long ``stop()`` waits, in seconds. The thread may hang while it resolves a name or connects.
    static let stopTimeout = 3
    /// How long a wait sleeps before it looks at its condition again, in microseconds. Semaphores of Dispatch measure
    /// their time-outs by the system's time: when that is set back, they would wait as long as it was set back.
    private static let waitStep: UInt32 = 50_000

    private let configuration: MQTTConfiguration
    private let session: String?
    private let will: MQTTMessage?
    private let handle: @Sendable (Event) -> Void
    private let state = Mutex(State())
    private let hasEnded = Atomic(false)
    private let isStarted = Atomic(false)

    /// - Parameters:
    ///   - session: the name of a session that the broker keeps; nil for one that ends with the connection.
    ///   - will: the message that the broker publishes when the connection is lost; nil for none.
    ///   - handle: is called on the client's thread with each event.
    /// - Throws: ``MQTTError`` if no connection can be made with the configuration.
    init(
        _ configuration: MQTTConfiguration,
        session: String? = nil,
        will: MQTTMessage?,
        handle: @escaping @Sendable (Event) -> Void
    ) throws(MQTTError) {
        self.configuration = configuration
        self.session = session
        self.will = will
        self.handle = handle
        _ = try BrokerConnection(configuration, session: session, will: will) { _ in }
    }

    /// Connects, and connects again whenever the connection is lost, until ``stop()``. To be called once.
    func start() {
        isStarted.store(true, ordering: .releasing)
        let thread = Thread { [self] in
            run()
            hasEnded.store(true, ordering: .releasing)
        }
        thread.name = "mqtt"
        thread.start()
    }

    /// Disconnects after the messages that were given before, and waits for the end of the thread, for a limited time.
    func stop() {
        let connection = state.withLock { state in
            state.isStopping = true
            return state.connection
        }
        connection?.disconnect()
        guard isStarted.load(ordering: .acquiring) else { return }
        Self.wait(until: .now() + .seconds(Self.stopTimeout)) { hasEnded.load(ordering: .acquiring) }
    }

    /// Ends the connection at once, and makes a new one after a pause. What the broker sent and was not told to have
    /// arrived, also the message that is being handled, is sent again if the broker keeps the session.
    func abortConnection() {
        state.withLock(\.connection)?.abort()
    }

    /// Waits until a condition is true, or until a time of the monotonic clock.
    private static func wait(until deadline: DispatchTime, _ condition: () -> Bool) {
        while !condition(), .now() < deadline { usleep(waitStep) }
    }

    // MARK: The thread

    private var isStopping: Bool { state.withLock(\.isStopping) }

    private func run() {
        var failureCount = 0
        while !isStopping {
            let start = DispatchTime.now()
            let (reason, wasAccepted) = runConnection()
            if isStopping { break }
            handle(.disconnected(reason: reason))
            // A broker that accepts connections and closes them at once is no reason to hurry.
            if wasAccepted, .now() >= start + Self.stableTime { failureCount = 0 }
            // Gateways that lost the same broker do not return at the same time.
            let pause = min(Double(1 << min(failureCount, 6)), Self.longestPause) * .random(in: 0.5...1)
            Self.wait(until: .now() + pause) { isStopping }
            failureCount += 1
        }
    }

    /// Connects, and waits for the end of the connection.
    private func runConnection() -> (reason: String, wasAccepted: Bool) {
        let outcome = Mutex<(refusal: String?, wasAccepted: Bool)>((nil, false))
        // The handler refers to the connection that it belongs to, while the connection runs.
        let current = Mutex<BrokerConnection?>(nil)
        let connection: BrokerConnection
        do throws(MQTTError) {
            connection = try BrokerConnection(configuration, session: session, will: will) { [handle] event in
                switch event {
                case .accepted:
                    outcome.withLock { $0.wasAccepted = true }
                    if let connection = current.withLock({ $0 }) { handle(.connected(connection)) }
                case .refused(let reason): outcome.withLock { $0.refusal = reason }
                case .delivered(let number): handle(.delivered(number))
                case .subscribed(let number, let isGranted): handle(.subscribed(number, isGranted: isGranted))
                case .received(let reception): handle(.received(reception))
                }
            }
        } catch {
            return ("\(error)", false)
        }
        current.withLock { $0 = connection }
        state.withLock { $0.connection = connection }
        defer {
            state.withLock { $0.connection = nil }
            current.withLock { $0 = nil }
        }
        var reason = connection.connect()
        // A stop during the attempt to connect has not disconnected.
        if isStopping { connection.disconnect() }
        var deadline: DispatchTime?
        while reason == nil {
            if isStopping {
                deadline = deadline ?? .now() + Self.disconnectionTimeout
                if let deadline, .now() >= deadline { break }
            }
            reason = connection.loop()
        }
        return outcome.withLock { ($0.refusal ?? reason ?? "stopped", $0.wasAccepted) }
    }
}
