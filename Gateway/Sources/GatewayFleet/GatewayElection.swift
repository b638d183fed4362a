import DequeModule

/// Chooses for each tag the gateway that should connect to it.
///
/// The gateway with the strongest smoothed signal is chosen. It stays chosen until another one is stronger by the
/// hysteresis. Another one is also chosen when this one is offline, has no free connection slot, or has not received
/// the tag for the timeout while another one has. A tag that no gateway receives for four times the timeout is
/// forgotten.
///
/// The gateways that receive a transmission report it one after the other. So nothing is decided at the first reception
/// of a tag, or at the first one after the timeout. ``advance(to:)`` decides when the collection time has passed since
/// then.
///
/// A gateway publishes its state when it changes, and a broker sends the retained one only once. So the state of a
/// silent gateway stays known. Beyond the greatest number of gateways, the gateway that has been silent longest is
/// forgotten, if that is an hour or more.
public struct GatewayElection: Sendable {
    /// Times and limits.
    public struct Configuration: Hashable, Sendable {
        /// How much stronger than the chosen gateway another one must be, in dB.
        public var hysteresis = 16.0
        /// After this time, a reception does not count any more.
        public var timeout = Duration.seconds(60)
        /// The time in which receptions are collected before a gateway is chosen for a tag that has none, or whose
        /// gateway has not heard it for the timeout. It is at most half of the timeout.
        public var collectionTime = Duration.seconds(2)
        /// The weight of a new signal strength in the smoothed one, from 0 to 1.
        public var smoothing = 0.25
        /// The greatest number of tags.
        public var tagLimit = 65_536
        /// The greatest number of gateways.
        public var gatewayLimit = 1024
        /// The greatest number of gateways that are compared for a tag.
        public var candidateLimit = 16

        /// Creates the default configuration.
        public init() {}
    }

    /// A tag has another gateway.
    public struct Change: Hashable, Sendable {
        /// The tag's address, of 48 bits.
        public var address: UInt64
        /// The gateway that should connect; nil for none.
        public var gateway: String?
        /// The gateway before; nil for none.
        public var previous: String?
        /// The smoothed signal strength in dBm; nil for no gateway.
        public var rssi: Double?

        /// The change as one line of JSON, without its line break.
        public var json: String {
            func name(_ name: String?) -> String { name.map { "\"\($0)\"" } ?? "null" }
            let strength = rssi.map { ", \"rssi\": \(($0 * 10).rounded() / 10)" } ?? ""
            return "{\"address\": \"\(FleetTopics.text(of: address))\", \"connect\": \(name(gateway)), "
                + "\"previous\": \(name(previous))\(strength)}"
        }
    }

    private struct GatewayState {
        var isOnline = true
        var freeSlots: Int?
        /// The tags for which the gateway is chosen.
        var tags: Set<UInt64> = []

        var isEligible: Bool { isOnline && freeSlots != 0 }
        /// Whether the gateway is not chosen for a tag.
        var isUnused: Bool { tags.isEmpty }
        /// Whether the state is that of a gateway of which nothing is known.
        var isInitial: Bool { isUnused && isOnline && freeSlots == nil }
    }

    private struct Candidate {
        let gateway: Int
        var rssi: Double
        var lastReception: Duration
    }

    private struct Tag {
        var candidates: [Candidate] = []
        var chosen: Int?
        /// Whether receptions are collected, and nothing is decided yet.
        var isCollecting = false

        mutating func add(_ rssi: Double, by gateway: Int, at now: Duration, _ configuration: Configuration) {
            if let index = candidates.firstIndex(where: { $0.gateway == gateway }) {
                let old = candidates[index]
                let isFresh = now - old.lastReception < configuration.timeout
                candidates[index].rssi = isFresh ? old.rssi + configuration.smoothing * (rssi - old.rssi) : rssi
                candidates[index].lastReception = max(old.lastReception, now)
                return
            }
            let forgotten = configuration.timeout * 4
            let chosen = chosen
            candidates.removeAll { $0.gateway != chosen && now - $0.lastReception >= forgotten }
            if candidates.count >= configuration.candidateLimit {
                let others = candidates.indices.filter { candidates[$0].gateway != chosen }
                let weakest = others.min { candidates[$0].rssi < candidates[$1].rssi }
                guard let weakest, candidates[weakest].rssi < rssi else { return }
                candidates.remove(at: weakest)
            }
            candidates.append(Candidate(gateway: gateway, rssi: rssi, lastReception: now))
        }
    }

    private var configuration: Configuration
    private var gateways: GatewayTable<GatewayState>
    private var tags: [UInt64: Tag] = [:]
    /// The tags to look at, by time. Each tag is there once.
    private var checks: [Int64: [UInt64]] = [:]
    private var lastCheck: Int64 = 0
    /// The tags whose receptions are collected, with the ends of the collections, in their order. Each tag is there
    /// once.
    private var collections: Deque<(address: UInt64, end: Duration)> = []
    /// The number of receptions of tags or gateways beyond the limits.
    public private(set) var refusedCount: UInt64 = 0

    /// Creates an election.
    public init(_ configuration: Configuration = Configuration()) {
        self.configuration = configuration
        self.configuration.collectionTime = min(configuration.collectionTime, configuration.timeout / 2)
        gateways = GatewayTable(limit: configuration.gatewayLimit)
    }

    /// The number of tags that are known.
    public var tagCount: Int { tags.count }

    /// The number of gateways that have said that they are offline.
    public var offlineGatewayCount: Int { gateways.count { !$0.isOnline } }

    /// The gateway that should connect to a tag; nil for none.
    public func gateway(for address: UInt64) -> String? {
        tags[address]?.chosen.flatMap { gateways.name(of: $0) }
    }

    // MARK: Events

    /// Takes the signal strength with which a gateway received a tag.
    ///
    /// - Parameters:
    ///   - address: the tag's address, of 48 bits.
    ///   - name: the name of the gateway.
    ///   - rssi: the signal strength in dBm.
    ///   - delay: the time since the reception. A reception before the timeout is ignored.
    ///   - now: the time, since any moment. It must not decrease.
    /// - Returns: the change, if there is one.
    public mutating func receive(
        _ address: UInt64,
        by name: String,
        rssi: Int,
        delay: Duration = .zero,
        at now: Duration
    ) -> Change? {
        guard delay < configuration.timeout else { return nil }
        let reception = now - max(.zero, delay)
        let isKnown = tags[address] != nil
        guard isKnown || tags.count < configuration.tagLimit,
            let gateway = number(of: name, at: now)
        else {
            refusedCount &+= 1
            return nil
        }
        if !isKnown { check(address, at: reception + configuration.timeout) }
        tags[address, default: Tag()].add(Double(rssi), by: gateway, at: reception, configuration)
        guard !isCurrent(address, at: now) else { return decide(address, at: now) }
        collect(address, at: now)
        return nil
    }

    /// Takes the state of a gateway. Gateways are online until then.
    public mutating func setOnline(_ isOnline: Bool, _ name: String, at now: Duration) -> [Change] {
        update(name, at: now) { $0.isOnline = isOnline }
    }

    /// Takes the number of connections that a gateway can still make; nil if it is not known.
    public mutating func setFreeSlots(_ count: Int?, _ name: String, at now: Duration) -> [Change] {
        update(name, at: now) { $0.freeSlots = count }
    }

    /// Decides about the tags whose receptions were collected, and about those whose gateway has not heard them for the
    /// timeout. To be called at least as often as gateways should be chosen.
    public mutating func advance(to now: Duration) -> [Change] {
        var changes = endCollections(at: now)
        let tick = tick(of: now)
        while lastCheck < tick {
            guard tick - lastCheck <= Int64(checks.count) + 16 else {
                // After a long pause: only the times that have tags.
                lastCheck = checks.keys.filter { $0 > lastCheck && $0 <= tick }.min().map { $0 - 1 } ?? tick
                if lastCheck < tick { lookAtNext(now, &changes) }
                continue
            }
            lookAtNext(now, &changes)
        }
        gateways.sweep(at: now, where: \.isInitial)
        return changes
    }

    /// Decides about all tags whose receptions are collected.
    public mutating func finish(at now: Duration) -> [Change] {
        var changes = advance(to: now)
        while let next = collections.first { changes += endCollections(at: next.end) }
        return changes
    }

    private mutating func lookAtNext(_ now: Duration, _ changes: inout [Change]) {
        lastCheck += 1
        for address in checks.removeValue(forKey: lastCheck) ?? [] { look(at: address, now, &changes) }
    }

    // MARK: Collections

    /// Whether the gateway that is chosen for a tag has heard it within the timeout.
    private func isCurrent(_ address: UInt64, at now: Duration) -> Bool {
        guard let tag = tags[address], !tag.isCollecting, let chosen = tag.chosen else { return false }
        return tag.candidates.contains { $0.gateway == chosen && now - $0.lastReception < configuration.timeout }
    }

    private mutating func collect(_ address: UInt64, at now: Duration) {
        guard tags[address]?.isCollecting == false else { return }
        tags[address]?.isCollecting = true
        collections.append((address, now + configuration.collectionTime))
    }

    /// Decides about the tags whose collections have ended, but looks at no others.
    mutating func endCollections(at now: Duration) -> [Change] {
        var changes: [Change] = []
        while let next = collections.first, next.end <= now {
            collections.removeFirst()
            tags[next.address]?.isCollecting = false
            // As of the end: nothing has come since.
            if let change = decide(next.address, at: next.end) { changes.append(change) }
        }
        return changes
    }

    // MARK: Decisions

    /// Returns the number of a gateway; nil if there are too many gateways.
    private mutating func number(of name: String, at now: Duration) -> Int? {
        gateways.makeRoom(for: name, at: now, where: \.isUnused)
        return gateways.number(of: name, at: now) { GatewayState() }
    }

    private mutating func update(
        _ name: String,
        at now: Duration,
        _ body: (inout GatewayState) -> Void
    ) -> [Change] {
        guard let gateway = number(of: name, at: now) else {
            refusedCount &+= 1
            return []
        }
        let affected = gateways.update(gateway) { state -> Set<UInt64> in
            body(&state)
            return state.isEligible ? [] : state.tags
        }
        return (affected ?? []).sorted().compactMap { decide($0, at: now) }
    }

    private mutating func decide(_ address: UInt64, at now: Duration) -> Change? {
        guard let tag = tags[address] else { return nil }
        var best: Candidate?
        var chosen: Candidate?
        for candidate in tag.candidates where gateways[candidate.gateway]?.isEligible == true {
            if candidate.gateway == tag.chosen { chosen = candidate }
            guard now - candidate.lastReception < configuration.timeout else { continue }
            if best.map({ candidate.rssi > $0.rssi }) ?? true { best = candidate }
        }
        guard let chosen else { return choose(best, for: address) }
        guard let best, best.gateway != chosen.gateway else { return nil }
        let isStale = now - chosen.lastReception >= configuration.timeout
        return isStale || best.rssi >= chosen.rssi + configuration.hysteresis ? choose(best, for: address) : nil
    }

    private mutating func choose(_ candidate: Candidate?, for address: UInt64) -> Change? {
        let previous = tags[address]?.chosen
        guard candidate?.gateway != previous else { return nil }
        tags[address]?.chosen = candidate?.gateway
        if let previous { _ = gateways.update(previous) { $0.tags.remove(address) } }
        if let candidate { _ = gateways.update(candidate.gateway) { $0.tags.insert(address) } }
        return Change(
            address: address,
            gateway: candidate.flatMap { gateways.name(of: $0.gateway) },
            previous: previous.flatMap { gateways.name(of: $0) },
            rssi: candidate?.rssi
        )
    }

    // MARK: Time

    private func tick(of time: Duration) -> Int64 {
        let length = max(configuration.timeout / 8, .milliseconds(1))
        return Int64(time / length)
    }

    private mutating func check(_ address: UInt64, at time: Duration) {
        checks[max(tick(of: time), lastCheck) + 1, default: []].append(address)
    }

    private mutating func look(at address: UInt64, _ now: Duration, _ changes: inout [Change]) {
        guard let tag = tags[address] else { return }
        let newest = tag.candidates.map(\.lastReception).max() ?? .zero
        if now - newest >= configuration.timeout * 4 {
            if let change = choose(nil, for: address) { changes.append(change) }
            tags[address] = nil
            return
        }
        if !tag.isCollecting, let change = decide(address, at: now) { changes.append(change) }
        let chosen = tags[address]?.chosen
        let last = tags[address]?.candidates.first { $0.gateway == chosen }?.lastReception ?? newest
        check(address, at: max(last + configuration.timeout, now))
    }
}
