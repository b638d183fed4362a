import GatewayCore
import Logging

/// The commands that come from the broker, and the results and notifications that wait for it.
///
/// Results and notifications are in memory only. If too many wait, the oldest are dropped and counted, and the log says
/// so.
struct CommandChannel {
    /// The greatest number of results, and of notifications, that wait.
    static let limit = 1024

    let commands: DeviceCommands
    private let topics: Topics
    private let boot: String
    private var results: Outbox
    private var notifications: Outbox
    private let logger: Logger
    /// The number of the last notification.
    private var lastNumber: UInt64 = 0
    /// Whether the log says that notifications were dropped before they were appended, and others still wait.
    private var isDropLogged = false

    init(_ commands: DeviceCommands, topics: Topics, boot: String, logger: Logger) {
        self.commands = commands
        self.topics = topics
        self.boot = boot
        self.logger = logger
        var logger = logger
        logger[metadataKey: "content"] = "results"
        results = Outbox(limit: 0, memoryLimit: Self.limit, logger: logger)
        logger[metadataKey: "content"] = "notifications"
        notifications = Outbox(limit: 0, memoryLimit: Self.limit, logger: logger)
    }

    /// Whether the broker has confirmed everything.
    var isConfirmed: Bool { results.isConfirmed && notifications.isConfirmed }

    /// The number of results and notifications that were appended and then dropped.
    var droppedCount: UInt64 { results.droppedCount + notifications.droppedCount }

    mutating func append(
        _ result: Result<DeviceCommandOutcome, DeviceCommandError>,
        of request: CommandRequest,
        isConnected: Bool
    ) {
        let text = request.text(of: result, gateway: topics.gateway)
        results.append(MQTTMessage(topic: topics.results, payload: text), isConnected: isConnected)
    }

    /// Appends notifications. Those whose numbers are missing before them were dropped.
    ///
    /// - Parameters:
    ///   - firstNumber: the sequence number of the first one. The others follow it without gaps.
    ///   - isLast: whether no others wait to be appended.
    mutating func append(
        _ newNotifications: [DeviceNotification],
        firstNumber: UInt64,
        isLast: Bool,
        isConnected: Bool
    ) {
        if firstNumber > lastNumber + 1, !isDropLogged {
            isDropLogged = true
            let reason = "more than \(Self.limit) wait, and the oldest go first"
            logger.warning("notifications of devices are dropped: \(reason)")
        }
        if isLast { isDropLogged = false }
        lastNumber = firstNumber + UInt64(newNotifications.count) - 1
        let messages = zip(firstNumber..., newNotifications).map { number, notification in
            MQTTMessage(
                topic: topics.notifications,
                payload: notification.text(gateway: topics.gateway, boot: boot, sequence: number)
            )
        }
        notifications.append(messages, isConnected: isConnected)
    }

    mutating func sendAll(_ send: (MQTTMessage) -> Int32?) {
        results.sendAll(send)
        notifications.sendAll(send)
    }

    mutating func confirm(_ delivery: Int32) {
        if !results.confirm(delivery) { notifications.confirm(delivery) }
    }

    /// Drops the messages that the broker has not confirmed, because it refuses them.
    mutating func dropUnconfirmed() {
        results.dropUnconfirmed()
        notifications.dropUnconfirmed()
    }

    /// Keeps the messages that were not confirmed for the next connection, and ends all commands.
    mutating func connectionLost() {
        results.connectionLost()
        notifications.connectionLost()
        commands.cancelAll(DeviceCommandError(.brokerLost, "the connection to the broker was lost"))
    }
}
