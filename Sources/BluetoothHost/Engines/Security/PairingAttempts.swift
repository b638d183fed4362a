import BluetoothTypes

/// Limits how often a peer can guess secrets by repeated pairing (Vol 3, Part H, 2.3.6).
///
/// After each failure, the peer's address has to wait twice as long as before. But a peer can change its address. So
/// failures that could reveal part of a passkey or a number also count for all addresses together. The first
/// ``PairingAttempts/tolerated`` of these cause no wait. Each later one doubles the time in which no peer can begin a
/// pairing. A pairing that this device begins for the app, as the central, waits only for the failures of its peer.
struct PairingAttempts {
    private struct Record {
        var failures: Int
        /// The time from which the next attempt is accepted.
        var end: Instant
    }

    /// The wait after the first failure, and the maximum wait.
    static let shortest = Duration.seconds(1)
    static let longest = Duration.seconds(256)
    /// The number of failures of all peers together that cause no wait.
    static let tolerated = 4
    /// The maximum wait for all peers together, and the time without a failure after which one of these failures is
    /// forgiven.
    static let longestOfAll = Duration.seconds(64)

    private var records: GenerationalTable<DeviceAddress, Record>
    private var ofAll: Record?
    private var passkeys: GenerationalTable<UInt32, Bool>

    /// - Parameter limit: maximum number of peers in the table.
    init(limit: Int = 256) {
        records = GenerationalTable(limit: limit)
        passkeys = GenerationalTable(limit: 4 * limit)
    }

    var count: Int { records.count }

    /// Records a failure.
    ///
    /// - Parameter countsForAll: whether the peer may have learned part of a passkey, and the app has not chosen the
    ///   peer.
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

    /// Returns the remaining wait of a peer; nil if there is none.
    mutating func wait(for peer: DeviceAddress, at now: Instant) -> Duration? {
        records[peer] = Self.forgiven(records[peer], at: now, Self.wait)
        guard let record = records[peer], record.end > now else { return nil }
        return record.end - now
    }

    /// Returns the remaining wait of all peers that begin a pairing; nil if there is none.
    mutating func waitOfAll(at now: Instant) -> Duration? {
        ofAll = Self.forgiven(ofAll, at: now, Self.allowanceOfAll)
        guard let ofAll, ofAll.end > now else { return nil }
        return ofAll.end - now
    }

    /// Records the use of a passkey, and returns whether it was used before.
    ///
    /// Each attempt reveals bits of the passkey to the peer or to an eavesdropper. So a passkey may be used for one
    /// pairing only (Vol 3, Part H, 2.3.5.6.3).
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

    /// Returns a record without the failures that are forgiven by now. After the wait, each further `allowance` without
    /// a failure forgives one.
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
