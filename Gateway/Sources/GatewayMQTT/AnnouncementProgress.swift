/// The announcements and states that the broker has not confirmed, and those that it refuses.
///
/// They are worthless later, so they are not sent again by themselves. A broker that refuses a message ends the
/// connection, and has usually confirmed what it received before. If such messages were the first ones without a
/// confirmation in ``refusalLimit`` connections that ended soon after them, the broker refuses them. They are not sent
/// for some time then. A broker that has confirmed no announcement in these connections refuses all announcements.
struct AnnouncementProgress {
    /// What the broker refuses.
    enum Refusal: Equatable {
        case topics([String])
        /// All announcements.
        case announcements
    }

    /// The number of connections that such messages end before they count as refused.
    static let refusalLimit = 5
    /// How long connections that ended are held against a message.
    static let memoryTime = Duration.seconds(3600)
    /// How long announcements that the broker refuses are not sent. After this time, its settings may be others.
    static let announcementPause = Duration.seconds(86_400)
    /// The same for states of the gateway, which matter more, and which the publisher sends after this time. A broker
    /// that fails may end connections at them too. Each further refusal of a state doubles its time, up to
    /// ``announcementPause``.
    static let statePause = Duration.seconds(600)
    /// The greatest number of refused topics. With more, all announcements count as refused.
    static let topicLimit = 64

    private struct Sent {
        let topic: String
        let place: UInt64
        let time: Duration
        let isState: Bool
    }

    private struct Suspicion {
        let isState: Bool
        var count = 0
        var lastTime: Duration
    }

    private var unconfirmed: [Int32: Sent] = [:]
    private var suspicions: [String: Suspicion] = [:]
    /// Whether the broker has confirmed an announcement since the first suspicion.
    private var hasConfirmedAnnouncement = false
    /// When the messages of these topics are sent again.
    private var pauses: [String: Duration] = [:]
    /// The last pause of each refused state that the broker has not confirmed since.
    private var statePauses: [String: Duration] = [:]
    private var pauseOfAnnouncements: Duration?

    /// The number of messages that the broker has not confirmed.
    var count: Int { unconfirmed.count }
    var isConfirmed: Bool { unconfirmed.isEmpty }
    /// The time of the first message that the broker has not confirmed.
    var firstTime: Duration? { first?.time }
    private var first: Sent? { unconfirmed.values.min { $0.place < $1.place } }

    /// Whether a message for a topic is to be sent.
    func sends(to topic: String, isState: Bool, at now: Duration) -> Bool {
        if let end = pauses[topic], now < end { return false }
        return isState || pauseOfAnnouncements.map { now >= $0 } ?? true
    }

    /// Takes that a message was sent.
    ///
    /// - Parameters:
    ///   - place: the number of messages of all kinds that were sent before it.
    ///   - isState: whether it is a state of the gateway; false for an announcement.
    mutating func send(_ number: Int32, to topic: String, place: UInt64, isState: Bool, at now: Duration) {
        unconfirmed[number] = Sent(topic: topic, place: place, time: now, isState: isState)
    }

    /// Takes that the broker has confirmed a message.
    ///
    /// - Returns: whether it is an announcement or a state.
    mutating func confirm(_ number: Int32) -> Bool {
        guard let message = unconfirmed.removeValue(forKey: number) else { return false }
        suspicions[message.topic] = nil
        statePauses[message.topic] = nil
        if !message.isState { hasConfirmedAnnouncement = true }
        return true
    }

    /// Whether an announcement or a state is the reason for the end of the connection, if it ends now.
    ///
    /// - Parameter firstMessage: the place of the first message of another kind that was not confirmed; nil if there is
    ///   none.
    func isReason(firstMessage: UInt64?, at now: Duration) -> Bool { suspect(firstMessage, now) != nil }

    /// Returns the message that has ended the connection, if it was an announcement or a state.
    ///
    /// A state is sent together with the first messages. Its confirmation may be lost with the connection that one of
    /// them ends, so it is suspected only if there are none.
    private func suspect(_ firstMessage: UInt64?, _ now: Duration) -> Sent? {
        guard let first, first.place < firstMessage ?? .max, now - first.time < DeliveryProgress.refusalTime else {
            return nil
        }
        return first.isState && firstMessage != nil ? nil : first
    }

    /// Takes that the connection was lost. Announcements and states without a confirmation are forgotten.
    ///
    /// - Parameter firstMessage: the place of the first message of another kind that was not confirmed; nil if there is
    ///   none.
    /// - Returns: what the broker refuses, if that has become clear.
    mutating func connectionLost(firstMessage: UInt64?, at now: Duration) -> Refusal? {
        let suspect = suspect(firstMessage, now)
        unconfirmed = [:]
        guard let suspect else { return nil }
        suspicions = suspicions.filter { now - $0.value.lastTime < Self.memoryTime }
        if suspicions.isEmpty { hasConfirmedAnnouncement = false }
        suspicions[suspect.topic, default: Suspicion(isState: suspect.isState, lastTime: now)].count += 1
        suspicions[suspect.topic]?.lastTime = now
        guard suspicions.values.reduce(0, { $0 + $1.count }) >= Self.refusalLimit else { return nil }
        let refused = suspicions
        suspicions = [:]
        pauses = pauses.filter { now < $0.value }
        let isForAll = !hasConfirmedAnnouncement || pauses.count + refused.count > Self.topicLimit
        if !suspect.isState, isForAll {
            pauseOfAnnouncements = now + Self.announcementPause
            return .announcements
        }
        for (topic, suspicion) in refused {
            pauses[topic] = now + (suspicion.isState ? nextPause(ofState: topic) : Self.announcementPause)
        }
        return .topics(refused.keys.sorted())
    }

    private mutating func nextPause(ofState topic: String) -> Duration {
        let pause = min(statePauses[topic].map { $0 * 2 } ?? Self.statePause, Self.announcementPause)
        statePauses[topic] = pause
        return pause
    }
}
