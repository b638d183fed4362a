import GatewayCore
import Logging

/// The commands that come from the broker, and the results and notifications that wait for it.
///
/// Results and notifications are in memory only. If too many wait, the oldest are dropped, and the log says so.
struct CommandChannel {
    /// The greatest number of results, and of notifications, that wait.
    static let limit = 1024

    let commands: DeviceCommands
    private let topics: Topics
    private let boot: String
    private var results: Outbox
    private var notifications: Outbox
    private var notificationCount: UInt64 = 0

    init(_ commands: DeviceCommands, topics: Topics, boot: String, logger: Logger) {
        self.commands = commands
        self.topics = topics
        self.boot = boot
        var logger = logger
        logger[metadataKey: "content"] = "results"
        results = Outbox(limit: 0, memoryLimit: Self.limit, logger: logger)
        logger[metadataKey: "content"] = "notifications"
        notifications = Outbox(limit: 0, memoryLimit: Self.limit, logger: logger)
    }

    /// Whether the broker has confirmed everything.
    var isConfirmed: Bool { results.isConfirmed && notifications.isConfirmed }

    mutating func append(
        _ result: Result<DeviceCommandOutcome, DeviceCommandError>,
        of request: CommandRequest,
        isConnected: Bool
    ) {
        let text = request.text(of: result, gateway: topics.gateway)
        results.append(MQTTMessage(topic: topics.results, payload: text), isConnected: isConnected)
    }

    mutating func append(_ notification: DeviceNotification, isConnected: Bool) {
        notificationCount += 1
        let text = notification.text(gateway: topics.gateway, boot: boot, sequence: notificationCount)
        notifications.append(MQTTMessage(topic: topics.notifications, payload: text), isConnected: isConnected)
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
