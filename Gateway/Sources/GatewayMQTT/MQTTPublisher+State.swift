import GatewayCore

extension MQTTPublisher {
    /// What the queue of a publisher changes.
    struct State {
        var outbox: Outbox
        var discovery: HomeAssistantDiscovery?
        var connection: BrokerConnection?
        var deliveredCount: UInt64 = 0
        var lastReason: String?
        /// The topics to which the broker has not answered yet, by the numbers of the subscriptions.
        var subscriptions: [Int32: String] = [:]
        /// The announcements and states, which are worthless later.
        var announcements = AnnouncementProgress()
        /// The last states of topics that were not sent, because the broker refuses them for a while.
        var omittedStates: [String: MQTTMessage] = [:]
        /// The number of messages that were sent.
        var sentCount: UInt64 = 0
        /// How many messages were sent before each one that the broker has not confirmed. Announcements and states are
        /// left out.
        var places: [Int32: UInt64] = [:]
        var progress = DeliveryProgress()
        /// The connections that the gateway can make; nil until it has said so.
        var slots: ConnectionSlots?
        /// The commands from the broker; nil if the gateway takes none.
        var channel: CommandChannel?
        /// Whether the gateway has said that it goes.
        var isEnding = false
        /// Resumed when the broker has confirmed everything.
        var drained: CheckedContinuation<Void, Never>?
    }
}

extension MQTTPublisher.State {
    /// Sends the messages that wait, as far as the broker confirms them.
    mutating func sendAll() {
        guard let connection else { return }
        var remaining = Int.max
        if progress.sendsOneAtATime { remaining = areMessagesConfirmed && announcements.isConfirmed ? 1 : 0 }
        // Taken, so that they are changed in place.
        var (sentCount, places) = (self.sentCount, self.places)
        self.places = [:]
        let send: (MQTTMessage) -> Int32? = { message in
            guard remaining > 0, let number = connection.publish(message) else { return nil }
            remaining -= 1
            places[number] = sentCount
            sentCount += 1
            return number
        }
        // Results are few, and somebody waits for them.
        channel?.sendAll(send)
        outbox.sendAll(send)
        (self.sentCount, self.places) = (sentCount, places)
    }

    /// Whether the broker has confirmed all messages but announcements and states.
    var areMessagesConfirmed: Bool { outbox.isConfirmed && channel?.isConfirmed != false }

    /// The number of messages that were dropped.
    var droppedCount: UInt64 { outbox.droppedCount + (channel?.droppedCount ?? 0) }

    /// Drops the message that the broker refuses, which is the only one that it has not confirmed.
    mutating func dropRefused() {
        channel?.dropUnconfirmed()
        outbox.dropUnconfirmed()
    }

    /// Sends an announcement or a state, if the broker is there. Remembers a state that the broker refuses for a while.
    ///
    /// - Returns: the number with which the delivery is reported; nil if the message is not sent.
    @discardableResult
    mutating func announce(_ message: MQTTMessage, isState: Bool = true, at now: Duration) -> Int32? {
        guard let connection else { return nil }
        guard announcements.sends(to: message.topic, isState: isState, at: now),
            let number = connection.publish(message)
        else {
            if isState { omittedStates[message.topic] = message }
            return nil
        }
        omittedStates[message.topic] = nil
        announcements.send(number, to: message.topic, place: sentCount, isState: isState, at: now)
        sentCount += 1
        return number
    }

    /// Subscribes to a topic, if the broker is there.
    mutating func subscribe(to topic: String) {
        guard let number = connection?.subscribe(to: topic) else { return }
        subscriptions[number] = topic
    }

    /// Sends the states that were not sent before, unless the broker still refuses their topics.
    mutating func sendOmittedStates(at now: Duration) {
        // If the broker refuses a state, the end of the connection must not count against a message that is sent alone.
        guard !progress.sendsOneAtATime || areMessagesConfirmed else { return }
        for message in omittedStates.values { announce(message, at: now) }
    }

    mutating func endDrain() {
        drained?.resume()
        drained = nil
    }
}
