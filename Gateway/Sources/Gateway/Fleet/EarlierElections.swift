import Dispatch
import GatewayFleet
import GatewayMQTT
import Logging
import Synchronization

/// Receives the elections that an earlier process has published, and that the broker has kept.
///
/// It has a session of its own, because messages of the service's session are stored. The session ends a minute after
/// the broker has answered the subscription.
final class EarlierElections: Sendable {
    private static let duration = Duration.seconds(60)

    private let topics: FleetTopics
    private let logger: Logger
    private let receive: @Sendable (UInt64, String) -> Void
    private let session = Mutex<MQTTSession?>(nil)
    /// When the session ends; nil until the broker has answered the subscription.
    private let end = Mutex<ContinuousClock.Instant?>(nil)

    /// - Parameters:
    ///   - topics: those on which elections are published.
    ///   - receive: is called with the tag and the payload of each election, on the session's thread.
    /// - Throws: ``MQTTError`` if the configuration cannot be used.
    init(
        _ configuration: MQTTConfiguration,
        topics: FleetTopics,
        logger: Logger,
        receive: @escaping @Sendable (UInt64, String) -> Void
    ) throws(MQTTError) {
        self.topics = topics
        self.logger = logger
        self.receive = receive
        let session = try MQTTSession(configuration, name: nil) { [weak self] reception in
            self?.take(reception)
            return true
        } handle: { [weak self] event in
            self?.handle(event)
        }
        self.session.withLock { $0 = session }
    }

    /// Connects to the broker.
    func start() { session.withLock { $0 }?.start() }

    /// Ends the session. Blocks for up to some seconds.
    func stop() { takeSession()?.stop() }

    /// Ends the session if it is time, without waiting for it. To be called now and then.
    func advance() {
        guard let end = end.withLock({ $0 }), .now >= end, let session = takeSession() else { return }
        DispatchQueue.global().async { session.stop() }
    }

    private func takeSession() -> MQTTSession? {
        session.withLock { session in
            defer { session = nil }
            return session
        }
    }

    private func take(_ reception: MQTTSession.Reception) {
        // The others are those of this process.
        guard reception.isRetained, let address = topics.electedTag(of: reception.topic) else { return }
        // A payload that is too long is malformed.
        receive(address, reception.payload.map { String(decoding: $0, as: UTF8.self) } ?? "too long")
    }

    private func handle(_ event: MQTTSession.Event) {
        switch event {
        case .connected:
            let session = session.withLock { $0 }
            _ = session?.subscribe(to: topics.electionFilter)
        case .subscribed(_, let isGranted):
            end.withLock { $0 = .now + (isGranted ? Self.duration : .zero) }
            if !isGranted {
                logger.warning(
                    """
                    the broker refuses the subscription to \(topics.electionFilter), so elections of an earlier run stay \
                    there; allow this user to read the topic
                    """
                )
            }
        case .disconnected, .delivered: break
        }
    }
}
