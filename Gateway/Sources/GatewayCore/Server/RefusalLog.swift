/// Decides which ends of clients without a place are logged, so that such clients cannot fill the log.
///
/// In a minute, one end is logged for each address and reason. A machine can use any number of addresses, so the total
/// is limited too.
struct RefusalLog {
    private struct Key: Hashable {
        let address: String
        let reason: String
    }

    private struct Entry {
        /// The time of the last end that was logged.
        let time: ContinuousClock.Instant
        /// The number of ends since then, which were not logged.
        var suppressedCount = 0
    }

    /// The time in which an end is logged once.
    static let interval = Duration.seconds(60)
    /// Maximum number of ends that are logged within ``interval``.
    static let limit = 256

    private var entries: [Key: Entry] = [:]
    /// The number of ends that were not logged and belong to no entry.
    private var unreportedCount = 0

    /// Takes the end of a client.
    ///
    /// - Parameters:
    ///   - address: the network address of the client.
    ///   - reason: the name of the reason; see ``SessionEnd/label``.
    ///   - now: the time of the end.
    /// - Returns: nil if the end is not to be logged. Otherwise, the number of earlier ends that were neither logged
    ///   nor reported: those with the same address and reason, and those that belong to no entry.
    mutating func record(_ address: String, _ reason: String, at now: ContinuousClock.Instant) -> Int? {
        let key = Key(address: address, reason: reason)
        if let entry = entries[key] {
            guard now - entry.time >= Self.interval else {
                entries[key]?.suppressedCount += 1
                return nil
            }
            return log(key, suppressing: entry.suppressedCount, at: now)
        }
        if entries.count >= Self.limit { removeOldEntries(at: now) }
        guard entries.count < Self.limit else {
            unreportedCount += 1
            return nil
        }
        return log(key, suppressing: 0, at: now)
    }

    private mutating func log(_ key: Key, suppressing count: Int, at now: ContinuousClock.Instant) -> Int {
        defer { unreportedCount = 0 }
        entries[key] = Entry(time: now)
        return count + unreportedCount
    }

    private mutating func removeOldEntries(at now: ContinuousClock.Instant) {
        for (key, entry) in entries where now - entry.time >= Self.interval {
            unreportedCount += entry.suppressedCount
            entries[key] = nil
        }
    }
}
