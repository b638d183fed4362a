import DequeModule

/// The elections that an earlier consumer has published, and that the broker has kept, until they are renewed or
/// removed.
struct RetainedElections: Sendable {
    /// The greatest number of elections that are taken at a time.
    static let turnLimit = 256

    private let limit: Int
    private let time: Duration
    private var gateways: [UInt64: String?] = [:]
    /// The addresses in the order of their ends. Each is there once, also if its election was removed.
    private var ends: Deque<(address: UInt64, end: Duration)> = []
    private var queued: Set<UInt64> = []

    /// - Parameters:
    ///   - limit: the greatest number of elections.
    ///   - time: how long an election can be renewed.
    init(limit: Int, time: Duration) {
        self.limit = limit
        self.time = time
    }

    /// Adds an election, with the name of its gateway, if there is room.
    mutating func insert(_ address: UInt64, gateway: String?, at now: Duration) {
        guard queued.count < limit || queued.contains(address) else { return }
        gateways[address] = .some(gateway)
        if queued.insert(address).inserted { ends.append((address, now + time)) }
    }

    /// Removes an election that was renewed.
    mutating func remove(_ address: UInt64) { gateways[address] = nil }

    /// Removes and returns elections that were not renewed in time: a limited number of them.
    mutating func takeEnded(at now: Duration) -> [(address: UInt64, gateway: String?)] {
        var ended: [(address: UInt64, gateway: String?)] = []
        while ended.count < Self.turnLimit, let next = ends.first, next.end <= now {
            ends.removeFirst()
            queued.remove(next.address)
            if let gateway = gateways.removeValue(forKey: next.address) { ended.append((next.address, gateway)) }
        }
        return ended
    }

    /// The gateway in an election that was published; nil if there is none, or if the payload is malformed.
    static func gateway(in payload: String) -> String? {
        guard payload.utf8.count <= FleetMessage.sizeLimit else { return nil }
        var scanner = JSONScanner(Array(payload.utf8))
        var name: String?
        let count = scanner.object { scanner, key in
            let isGateway = scanner.matches(key, "connect")
            guard let (kind, place) = scanner.value(depth: 1) else { return false }
            if isGateway, kind == .string { name = String(scanner.text(place).dropFirst().dropLast()) }
            return true
        }
        guard count != nil, let name, FleetMessage.isName(name) else { return nil }
        return name
    }
}
