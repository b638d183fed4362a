/// A message for an MQTT broker.
package struct MQTTMessage: Hashable, Sendable {
    /// The topic, without wildcards.
    package var topic: String
    /// The content, in UTF-8.
    package var payload: String
    /// Whether the broker keeps the message for later subscribers.
    package var isRetained: Bool

    /// Creates a message.
    package init(topic: String, payload: String, isRetained: Bool = false) {
        self.topic = topic
        self.payload = payload
        self.isRetained = isRetained
    }

    /// Whether a broker takes a message with this topic.
    var hasValidTopic: Bool {
        (1...65_535).contains(topic.utf8.count) && !topic.contains { "+#\0".contains($0) }
    }
}
