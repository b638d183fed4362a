import BluetoothTypes

/// Limits how often secrets can be guessed by pairing again and again (Vol 3, Part H, 2.3.6).
///
/// After each failure, the peer's address has to wait twice as long as before. A peer can change its address. So failures in
/// which a passkey or a number was at stake also count for all addresses together. The first ``PairingAttempts/tolerated`` of
/// them cost nothing. Each later one doubles the time in which no peer can begin a pairing. A pairing that the app begins
/// waits only for the peer's own failures.
struct PairingAttempts {
    private struct Record {
        var failures: Int
        /// When the next attempt is heard.
        var end: Instant
    }

    /// The wait after the first failure, and the longest one.
    static let shortest = Duration.seconds(1)
    static let longest = Duration.seconds(256)
    /// How many failures of all peers together cost no wait.
    static let tolerated = 4
    /// The longest wait for all peers together, and how long without a failure makes up for one of those tolerated.
    static let longestOfAll = Duration.seconds(64)

    private var records: GenerationalTable<DeviceAddress, Record>
    private var ofAll: Record?
    private var passkeys: GenerationalTable<UInt32, Bool>

    /// - Parameter limit: how many peers are remembered at the most.
    init(limit: Int = 256) {
        records = GenerationalTable(limit: limit)
        passkeys = GenerationalTable(limit: 4 * limit)
    }

    var count: Int { records.count }

    /// Takes note of a failure.
    ///
    /// - Parameter countsForAll: whether a peer has begun the pairing and might have learned about a passkey by it.
    mutating func failed(_ peer: DeviceAddress, countsForAll: Bool = false, at now: Instant) {
        let failures = 1 + (Self.forgiven(records[peer], at: now, Self.wait)?.failures ?? 0)
        records[peer] = Record(failures: min(failures, 9), end: now + Self.wait(after: failures))
        guard countsForAll else { return }
        let all = 1 + (Self.forgiven(ofAll, at: now, Self.allowanceOfAll)?.failures ?? 0)
        ofAll = Record(failures: min(all, Self.tolerated + 7), end: now + Self.waitOfAll(after: all))
    }

    mutating func succeeded(_ peer: DeviceAddress) {
        records[peer] = nil
    }

    /// How long a peer has to wait yet; nil where it need not.
    mutating func wait(for peer: DeviceAddress, at now: Instant) -> Duration? {
        records[peer] = Self.forgiven(records[peer], at: now, Self.wait)
        guard let record = records[peer], record.end > now else { return nil }
        return record.end - now
    }

    /// How long each peer has to wait yet that begins a pairing; nil where none need.
    mutating func waitOfAll(at now: Instant) -> Duration? {
        ofAll = Self.forgiven(ofAll, at: now, Self.allowanceOfAll)
        guard let ofAll, ofAll.end > now else { return nil }
        return ofAll.end - now
    }

    /// Takes note that a passkey was used, and returns whether it had been used before.
    ///
    /// Each attempt tells the peer, or an eavesdropper, bits of the passkey. So a passkey is good for one pairing
    /// (Vol 3, Part H, 2.3.5.6.3).
    mutating func use(passkey: UInt32) -> Bool {
        defer { passkeys[passkey] = true }
        return passkeys[passkey] != nil
    }

    // MARK: Waits

    private static func wait(after failures: Int) -> Duration {
        failures > 8 ? longest : shortest * (1 << (failures - 1))
    }

    private static func waitOfAll(after failures: Int) -> Duration {
        guard failures > tolerated else { return .zero }
        return min(shortest * (1 << min(failures - tolerated - 1, 6)), longestOfAll)
    }

    private static func allowanceOfAll(after failures: Int) -> Duration { longestOfAll }

    /// Returns a record with the failures that are not made up for yet. Each time that passes without an attempt, beyond the wait that was imposed, makes up
    /// for one failure.
    private static func forgiven(
        _ record: Record?,
        at now: Instant,
        _ allowance: (_ failures: Int) -> Duration
    ) -> Record? {
        guard var record else { return nil }
        while record.failures > 0, record.end + allowance(record.failures) <= now {
            record.end = record.end + allowance(record.failures)
            record.failures -= 1
        }
        return record.failures > 0 ? record : nil
    }
}
