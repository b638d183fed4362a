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

    /// Takes the end of a client.
    ///
    /// - Parameters:
    ///   - address: the network address of the client.
    ///   - reason: the name of the reason; see ``SessionEnd/label``.
    ///   - now: the time of the end.
    /// - Returns: if the end is to be logged, the number of earlier ones of the kind that were not; nil if it is not.
    mutating func record(_ address: String, _ reason: String, at now: ContinuousClock.Instant) -> Int? {
        let key = Key(address: address, reason: reason)
        if let entry = entries[key] {
            guard now - entry.time >= Self.interval else {
                entries[key]?.suppressedCount += 1
                return nil
            }
            entries[key] = Entry(time: now)
            return entry.suppressedCount
        }
        if entries.count >= Self.limit { entries = entries.filter { now - $0.value.time < Self.interval } }
        guard entries.count < Self.limit else { return nil }
        entries[key] = Entry(time: now)
        return 0
    }
}
