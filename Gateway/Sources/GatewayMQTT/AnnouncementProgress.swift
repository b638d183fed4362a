/// The announcements and states that the broker has not confirmed, and the announcements that it refuses.
///
/// They are worthless later, so they are not sent again by themselves. A broker that refuses a message ends the connection,
/// and has confirmed what it received before. If the first message without a confirmation was an announcement in
/// ``refusalLimit`` connections that ended soon after it, the broker refuses it. It is not sent for ``refusalTime`` then.
/// If these were several announcements, of which none was ever confirmed, the broker refuses all of them.
struct AnnouncementProgress {
    /// What the broker refuses.
    enum Refusal: Equatable {
        case topic(String)
        case all
    }

    /// The number of connections that announcements end before they count as refused.
    static let refusalLimit = 5
    /// How long announcements that the broker refuses are not sent. Its settings may be changed meanwhile.
    static let refusalTime = Duration.seconds(86_400)
    /// The greatest number of refused topics. With more, all announcements count as refused.
    static let topicLimit = 64

    private struct Announcement {
        let topic: String
        let place: UInt64
        let time: Duration
        /// Whether the broker may refuse the message for ever. The gateway's own states are always sent.
        let isDispensable: Bool
    }

    private var unconfirmed: [Int32: Announcement] = [:]
    private var suspicion: (topics: Set<String>, count: Int) = ([], 0)
    private var refusals: [String: Duration] = [:]
    private var refusalOfAll: Duration?

    /// The number of announcements that the broker has not confirmed.
    var count: Int { unconfirmed.count }
    var isConfirmed: Bool { unconfirmed.isEmpty }
    /// The time of the first announcement that the broker has not confirmed.
    var firstTime: Duration? { unconfirmed.values.min { $0.place < $1.place }?.time }

    /// Whether an announcement for a topic is to be sent.
    func sends(to topic: String, at now: Duration) -> Bool {
        guard let time = refusalOfAll ?? refusals[topic] else { return true }
        return now - time >= Self.refusalTime
    }

    /// Takes that a message was sent.
    ///
    /// - Parameters:
    ///   - place: the number of messages of all kinds that were sent before it.
    ///   - isDispensable: whether it is an announcement; false for a state of the gateway.
    mutating func send(_ number: Int32, to topic: String, place: UInt64, isDispensable: Bool, at now: Duration) {
        unconfirmed[number] = Announcement(topic: topic, place: place, time: now, isDispensable: isDispensable)
    }

    /// Takes that the broker has confirmed a message.
    ///
    /// - Returns: whether it is an announcement or a state.
    mutating func confirm(_ number: Int32) -> Bool {
        guard let announcement = unconfirmed.removeValue(forKey: number) else { return false }
        if suspicion.topics.remove(announcement.topic) != nil, suspicion.topics.isEmpty { suspicion.count = 0 }
        return true
    }

    /// Whether an announcement is the reason for the end of the connection, if it ends now.
    ///
    /// - Parameter firstMessage: the place of the first message of another kind that was not confirmed; nil if there is none.
    func isReason(firstMessage: UInt64?, at now: Duration) -> Bool { suspect(firstMessage, now) != nil }

    private func suspect(_ firstMessage: UInt64?, _ now: Duration) -> Announcement? {
        guard let first = unconfirmed.values.min(by: { $0.place < $1.place }), first.isDispensable,
            first.place < firstMessage ?? .max, now - first.time < DeliveryProgress.refusalTime
        else { return nil }
        return first
    }

    /// Takes that the connection was lost. What was not confirmed is forgotten.
    ///
    /// - Parameter firstMessage: the place of the first message of another kind that was not confirmed; nil if there is none.
    /// - Returns: what the broker refuses, if that has become clear.
    mutating func connectionLost(firstMessage: UInt64?, at now: Duration) -> Refusal? {
        let suspect = suspect(firstMessage, now)
        unconfirmed = [:]
        guard let suspect else { return nil }
        suspicion.topics.insert(suspect.topic)
        suspicion.count += 1
        guard suspicion.count >= Self.refusalLimit else { return nil }
        let topics = suspicion.topics
        suspicion = ([], 0)
        refusals = refusals.filter { now - $0.value < Self.refusalTime }
        guard topics.count == 1, refusals.count < Self.topicLimit else {
            refusalOfAll = now
            return .all
        }
        refusals[suspect.topic] = now
        return .topic(suspect.topic)
    }
}
