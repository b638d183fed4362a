/// A message for an MQTT broker.
public struct MQTTMessage: Hashable, Sendable {
    /// The topic, without wildcards.
    public var topic: String
    /// The content, in UTF-8.
    public var payload: String
    /// Whether the broker keeps the message for later subscribers.
    public var isRetained: Bool

    /// Creates a message.
    public init(topic: String, payload: String, isRetained: Bool = false) {
        self.topic = topic
        self.payload = payload
        self.isRetained = isRetained
    }

    /// Whether a broker takes a message with this topic.
    var hasValidTopic: Bool {
        (1...65_535).contains(topic.utf8.count) && !topic.contains { "+#\0".contains($0) }
    }
}
