import GatewayCore

extension MQTTPublisher {
    /// What the queue of a publisher changes.
    struct State {
        var outbox: Outbox
        var discovery: HomeAssistantDiscovery?
        var connection: BrokerConnection?
        var deliveredCount: UInt64 = 0
        var lastReason: String?
        /// The announcements and states, which are worthless later.
        var announcements = AnnouncementProgress()
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

    /// Drops the message that the broker refuses, which is the only one that it has not confirmed.
    mutating func dropRefused() {
        channel?.dropUnconfirmed()
        outbox.dropUnconfirmed()
    }

    /// Sends a message that is worthless later, if the broker is there.
    mutating func announce(_ message: MQTTMessage, isState: Bool = true, at now: Duration) {
        guard announcements.sends(to: message.topic, isState: isState, at: now),
            let number = connection?.publish(message)
        else { return }
        announcements.send(number, to: message.topic, place: sentCount, isState: isState, at: now)
        sentCount += 1
    }

    mutating func endDrain() {
        drained?.resume()
        drained = nil
    }
}
