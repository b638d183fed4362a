import DequeModule

/// Combines the messages of many gateways that received the same transmission of a tag.
///
/// ## Overview
/// Messages with the same tag, format, counter and readings are one transmission if they arrive within a window. The
/// window begins with the first of them, by the caller's clock; the gateways' clocks may differ. When it ends, the
/// transmission is one ``CombinedObservation``.
///
/// - A message with a number that its gateway has used before is a duplicate. MQTT delivers at least once.
/// - A second message of the same gateway with the same content is another transmission.
/// - A message for a transmission whose window has ended is late, and only counted. If the tag has reported something
///   else since, the tag may have returned to the earlier readings. The message is late then only if it was delayed.
///
/// Everything is bounded, and a message costs the same however many there are. If there are too many open windows, the
/// oldest ends early.
public struct FleetWindow: Sendable {
    /// Times and limits.
    public struct Configuration: Hashable, Sendable {
        /// The time in which the messages of one transmission are collected.
        public var window = Duration.seconds(2)
        /// The time in which late messages are recognized, from the end of the window.
        public var memory = Duration.seconds(30)
        /// The greatest number of open windows.
        public var openLimit = 16_384
        /// The greatest number of ended windows that are remembered.
        public var closedLimit = 65_536
        /// The greatest size of all readings in open windows, in bytes.
        public var byteLimit = 32 << 20
        /// The greatest number of gateways.
        public var gatewayLimit = 1024
        /// The greatest number of receivers of a transmission. If there are more, the strongest are kept.
        public var receiverLimit = 64

        /// Creates the default configuration.
        public init() {}
    }

    /// What became of messages.
    public struct Counters: Hashable, Sendable {
        /// Messages.
        public var received: UInt64 = 0
        /// Observations that were returned.
        public var observations: UInt64 = 0
        /// Messages that had come before.
        public var duplicates: UInt64 = 0
        /// Messages that came after the end of their window.
        public var late: UInt64 = 0
        /// Numbers that are missing in the sequences of gateways.
        public var missing: UInt64 = 0
        /// Messages that came after a later one of their gateway.
        public var reordered: UInt64 = 0
        /// Starts of gateways, after the first that was seen.
        public var restarts: UInt64 = 0
        /// Messages of gateways beyond the limit.
        public var refused: UInt64 = 0
        /// Windows that ended early, because there were too many.
        public var endedEarly: UInt64 = 0
        /// Receptions beyond the limit of a transmission.
        public var receiversDropped: UInt64 = 0

        /// Creates counters.
        public init() {}
    }

    /// What a message is.
    public enum Kind: Hashable, Sendable {
        /// The first of a transmission.
        case first
        /// Another one of a transmission.
        case another
        /// It came before.
        case duplicate
        /// The window of its transmission has ended.
        case late
        /// There are too many gateways.
        case refused
    }

    /// What became of a message, and the observations that are complete.
    public struct Outcome: Sendable {
        /// What the message is.
        public var kind: Kind
        /// How much later than usual the message came after the reception; zero for a message that came before, or that
        /// was refused.
        public var delay: Duration
        /// The observations whose windows have ended, in the order of their ends.
        public var observations: [CombinedObservation]
    }

    private let configuration: Configuration
    /// What became of messages until now.
    public private(set) var counters = Counters()
    private var gateways: GatewayTable<GatewayHistory>
    /// Ended windows, then open ones, each in the order of their begin. Open ones may have ended early among them.
    private var groups: Deque<Group> = []
    /// The number of the first group.
    private var firstNumber = 0
    /// The number of the first group whose window may be open.
    private var firstOpen = 0
    private var openCount = 0
    private var openBytes = 0
    /// The newest group of each content.
    private var newestOfContent: [ContentKey: Int] = [:]
    /// The newest group of each tag and format.
    private var newestOfTag: [TagKey: Int] = [:]

    /// Creates an engine.
    public init(_ configuration: Configuration = Configuration()) {
        self.configuration = configuration
        gateways = GatewayTable(limit: configuration.gatewayLimit)
    }

    /// The number of open windows.
    public var openWindowCount: Int { openCount }
    /// The number of gateways that are known.
    public var gatewayCount: Int { gateways.count }

    /// The number of gateways from which no message has come for some time. A silent gateway is forgotten after an
    /// hour.
    public func silentGatewayCount(for time: Duration, at now: Duration) -> Int {
        gateways.idleCount(for: time, at: now)
    }

    /// The number of windows that are in memory, with the ended ones.
    var groupCount: Int { groups.count }

    /// The time at which the next window ends; nil if none is open.
    public var nextEnd: Duration? {
        firstOpen - firstNumber < groups.count ? groups[firstOpen - firstNumber].start + configuration.window : nil
    }

    /// Takes a message.
    ///
    /// - Parameters:
    ///   - message: the decoded message.
    ///   - token: comes back in the observation.
    ///   - now: the time of the arrival, since any moment. It must not decrease.
    ///   - systemTime: the system's time of the arrival, since 1970; nil if it is not known. It may be set at any time.
    ///     With it, the delay of a gateway's first message is measured too: the gateway's clock is taken to have the
    ///     system's time. This is corrected after some minutes of messages.
    public mutating func receive(
        _ message: FleetMessage,
        token: UInt64 = 0,
        at now: Duration,
        systemTime: Duration? = nil
    ) -> Outcome {
        var observations = advance(to: now)
        let (kind, delay) = take(message, token, now, systemTime, &observations)
        return Outcome(kind: kind, delay: delay, observations: observations)
    }

    /// Returns the observations whose windows have ended.
    public mutating func advance(to now: Duration) -> [CombinedObservation] {
        var observations: [CombinedObservation] = []
        while let end = nextEnd, end <= now { endOldest(at: end, &observations) }
        while firstNumber < firstOpen, let group = groups.first,
            now - group.end >= configuration.memory || firstOpen - firstNumber > configuration.closedLimit
        {
            forgetOldest()
        }
        gateways.sweep(at: now)
        return observations
    }

    /// Returns the observations of all open windows, which end.
    public mutating func finish(at now: Duration) -> [CombinedObservation] {
        var observations = advance(to: now)
        while firstOpen - firstNumber < groups.count { endOldest(at: now, &observations) }
        return observations
    }

    // MARK: Messages

    private mutating func take(
        _ message: FleetMessage,
        _ token: UInt64,
        _ now: Duration,
        _ systemTime: Duration?,
        _ observations: inout [CombinedObservation]
    ) -> (kind: Kind, delay: Duration) {
        counters.received &+= 1
        guard let gateway = gateways.number(of: message.gateway, at: now, create: { GatewayHistory() }) else {
            counters.refused &+= 1
            return (.refused, .zero)
        }
        guard isNew(message, gateway) else {
            counters.duplicates &+= 1
            return (.duplicate, .zero)
        }
        let delay = delay(of: message, by: gateway, at: now, expected: systemTime.map { now - $0 })
        return (join(message, gateway, token, delay, now, &observations), delay)
    }

    /// Measures the delay of a message that has not come before.
    ///
    /// - Parameter expected: the caller's time minus the system's time; nil if it is not known.
    private mutating func delay(
        of message: FleetMessage,
        by gateway: Int,
        at arrival: Duration,
        expected: Duration?
    ) -> Duration {
        guard let time = ClockOffset.parse(message.time) else { return .zero }
        return gateways.update(gateway) { $0.offset.delay(of: time, at: arrival, expected: expected) } ?? .zero
    }

    /// Adds a message that has not come before to the group of its transmission.
    private mutating func join(
        _ message: FleetMessage,
        _ gateway: Int,
        _ token: UInt64,
        _ delay: Duration,
        _ now: Duration,
        _ observations: inout [CombinedObservation]
    ) -> Kind {
        let content = ContentKey(message)
        let receiver = Group.Receiver(
            gateway: gateway,
            rssi: message.rssi,
            time: message.time,
            number: message.number
        )
        if let number = newestOfContent[content], isRemembered(number, at: now) {
            let index = number - firstNumber
            let known = groups[index].gateways.contains(gateway)
            if groups[index].isOpen {
                if !known {
                    if !groups[index].join(receiver, token, limit: configuration.receiverLimit) {
                        counters.receiversDropped &+= 1
                    }
                    return .another
                }
                if message.number == nil, groups[index].receivers.contains(receiver) {
                    counters.duplicates &+= 1
                    return .duplicate
                }
                end(index, at: now, &observations)
            } else if !known, newestOfTag[TagKey(message)] == number || delay > configuration.window {
                groups[index].gateways.append(gateway)
                counters.late &+= 1
                return .late
            }
        }
        open(message, content, receiver, token, now, &observations)
        return .first
    }

    /// Whether the window of a group is open, or has ended within the memory.
    private func isRemembered(_ number: Int, at now: Duration) -> Bool {
        let group = groups[number - firstNumber]
        return group.isOpen || now - group.end < configuration.memory
    }

    private mutating func isNew(_ message: FleetMessage, _ gateway: Int) -> Bool {
        guard let number = message.number else { return true }
        guard let (insertion, isRestart) = gateways.update(gateway, { $0.insert(number) }) else { return false }
        if isRestart { counters.restarts &+= 1 }
        switch insertion {
        case .new(let gap):
            let (sum, overflow) = counters.missing.addingReportingOverflow(gap)
            counters.missing = overflow ? .max : sum
        case .filled:
            counters.missing -= min(1, counters.missing)
            counters.reordered &+= 1
        case .earlier: counters.reordered &+= 1
        case .duplicate, .tooOld: return false
        }
        return true
    }

    // MARK: Restoring

    /// Takes the messages of an earlier engine, in their order. To be called before the first message.
    ///
    /// Messages that are finished are duplicates from now on. Their transmissions are remembered until their age is
    /// that of the memory. The others are collected again.
    ///
    /// - Parameters:
    ///   - messages: the messages, oldest first.
    ///   - now: the time, by the clock of ``receive(_:token:at:systemTime:)``.
    ///   - systemTime: the system's time now, since 1970; nil if it is not known.
    /// - Returns: the observations that are complete, and the tokens of the messages that will not be in any.
    public mutating func restore(
        _ messages: [Restored],
        at now: Duration,
        systemTime: Duration? = nil
    ) -> (observations: [CombinedObservation], discarded: [UInt64]) {
        var observations: [CombinedObservation] = []
        var discarded: [UInt64] = []
        var waiting: [(Restored, gateway: Int, delay: Duration)] = []
        let expected = systemTime.map { now - $0 }
        for restored in messages {
            let gateway = gateways.number(of: restored.message.gateway, at: now) { GatewayHistory() }
            guard let gateway, isNewAfterRestart(restored.message, gateway) else {
                if !restored.isFinished { discarded.append(restored.token) }
                continue
            }
            let arrival = now - max(.zero, restored.age)
            let delay = delay(of: restored.message, by: gateway, at: arrival, expected: expected)
            if restored.isFinished {
                rememberTransmission(of: restored, by: gateway, at: now)
            } else {
                waiting.append((restored, gateway, delay))
            }
        }
        for (restored, gateway, delay) in waiting {
            let kind = join(restored.message, gateway, restored.token, delay, now, &observations)
            if kind != .first && kind != .another { discarded.append(restored.token) }
        }
        return (observations, discarded)
    }

    /// Remembers the number of a message. Gaps are not counted again.
    private mutating func isNewAfterRestart(_ message: FleetMessage, _ gateway: Int) -> Bool {
        guard let number = message.number else { return true }
        switch gateways.update(gateway, { $0.insert(number).0 }) {
        case .new, .filled, .earlier: return true
        case .duplicate, .tooOld, nil: return false
        }
    }

    private mutating func rememberTransmission(of restored: Restored, by gateway: Int, at now: Duration) {
        guard restored.age >= .zero, restored.age < configuration.memory else { return }
        let content = ContentKey(restored.message)
        // A second message of the gateway is another transmission.
        if let number = newestOfContent[content], !groups[number - firstNumber].gateways.contains(gateway) {
            groups[number - firstNumber].gateways.append(gateway)
            return
        }
        let number = firstNumber + groups.count
        groups.append(.ended(restored.message, content, gateway: gateway, at: now - restored.age))
        newestOfContent[content] = number
        newestOfTag[TagKey(restored.message)] = number
        firstOpen = number + 1
    }

    // MARK: Windows

    private mutating func open(
        _ message: FleetMessage,
        _ content: ContentKey,
        _ receiver: Group.Receiver,
        _ token: UInt64,
        _ now: Duration,
        _ observations: inout [CombinedObservation]
    ) {
        let size = message.readings.utf8.count
        while openCount > 0, openCount >= configuration.openLimit || openBytes + size > configuration.byteLimit {
            if groups[firstOpen - firstNumber].isOpen { counters.endedEarly &+= 1 }
            endOldest(at: now, &observations)
        }
        let number = firstNumber + groups.count
        groups.append(Group(message, content, receiver, token, now))
        newestOfContent[content] = number
        newestOfTag[TagKey(message)] = number
        openCount += 1
        openBytes += size
    }

    /// Ends the window of the oldest group that may be open.
    private mutating func endOldest(at time: Duration, _ observations: inout [CombinedObservation]) {
        end(firstOpen - firstNumber, at: time, &observations)
        firstOpen += 1
    }

    private mutating func end(_ index: Int, at time: Duration, _ observations: inout [CombinedObservation]) {
        guard groups[index].isOpen else { return }
        openCount -= 1
        openBytes -= groups[index].readings.utf8.count
        counters.observations &+= 1
        let gateways = gateways
        observations.append(groups[index].end(at: time) { gateways.name(of: $0) ?? "" })
    }

    private mutating func forgetOldest() {
        guard let group = groups.popFirst() else { return }
        if newestOfContent[group.content] == firstNumber { newestOfContent[group.content] = nil }
        if newestOfTag[group.tag] == firstNumber { newestOfTag[group.tag] = nil }
        firstNumber += 1
    }
}
