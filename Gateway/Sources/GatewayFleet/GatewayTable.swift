/// Small numbers for the names of gateways, with a state for each. The number of gateways is bounded.
struct GatewayTable<State: Sendable>: Sendable {
    private struct Entry: Sendable {
        var name: String
        var lastUse: Duration
        var state: State
    }

    /// A gateway that was not used for this time can be forgotten.
    static var idleTime: Duration { .seconds(3600) }
    private static var sweepInterval: Duration { .seconds(60) }

    let limit: Int
    private var numbers: [String: Int] = [:]
    private var entries: [Entry?] = []
    private var free: [Int] = []
    private var lastSweep = Duration.zero

    init(limit: Int) {
        self.limit = limit
    }

    var count: Int { numbers.count }

    /// The number of gateways that were not used for some time.
    func idleCount(for time: Duration, at now: Duration) -> Int {
        entries.count { $0.map { now - $0.lastUse >= time } ?? false }
    }

    /// The number of gateways whose state meets a condition.
    func count(where condition: (State) -> Bool) -> Int { entries.count { $0.map { condition($0.state) } ?? false } }

    /// Returns the number of a gateway, which it keeps while it is used.
    ///
    /// - Returns: nil if there are too many gateways.
    mutating func number(of name: String, at now: Duration, create: () -> State) -> Int? {
        if let number = numbers[name] {
            entries[number]?.lastUse = now
            return number
        }
        guard numbers.count < limit else { return nil }
        let entry = Entry(name: name, lastUse: now, state: create())
        let number: Int
        if let unused = free.popLast() {
            number = unused
            entries[number] = entry
        } else {
            number = entries.count
            entries.append(entry)
        }
        numbers[name] = number
        return number
    }

    /// The name of a gateway; nil if it was forgotten.
    func name(of number: Int) -> String? { entries[number]?.name }

    subscript(number: Int) -> State? { entries[number]?.state }

    /// Changes the state of a gateway.
    mutating func update<Result>(_ number: Int, _ body: (inout State) -> Result) -> Result? {
        guard entries[number] != nil else { return nil }
        return body(&entries[number]!.state)
    }

    /// Forgets the gateways that are silent, once a minute.
    ///
    /// - Parameter isReplaceable: whether a gateway with this state can be forgotten.
    mutating func sweep(at now: Duration, where isReplaceable: (State) -> Bool = { _ in true }) {
        guard now - lastSweep >= Self.sweepInterval else { return }
        lastSweep = now
        for number in numbers.values {
            guard let entry = entries[number], now - entry.lastUse >= Self.idleTime, isReplaceable(entry.state) else {
                continue
            }
            remove(number)
        }
    }

    /// Forgets the gateway that has been silent longest, if there is no room for another one. One that was used within
    /// ``idleTime`` stays.
    ///
    /// - Parameters:
    ///   - name: the name of the gateway that needs room, unless it is known.
    ///   - isReplaceable: whether a gateway with this state can be forgotten.
    mutating func makeRoom(for name: String, at now: Duration, where isReplaceable: (State) -> Bool) {
        guard numbers.count >= limit, numbers[name] == nil else { return }
        var oldest: (number: Int, lastUse: Duration)?
        for (number, entry) in entries.enumerated() {
            guard let entry, now - entry.lastUse >= Self.idleTime, isReplaceable(entry.state) else { continue }
            if let known = oldest, known.lastUse <= entry.lastUse { continue }
            oldest = (number, entry.lastUse)
        }
        if let oldest { remove(oldest.number) }
    }

    private mutating func remove(_ number: Int) {
        guard let entry = entries[number] else { return }
        numbers[entry.name] = nil
        entries[number] = nil
        free.append(number)
    }
}
