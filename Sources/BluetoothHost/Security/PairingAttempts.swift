import BluetoothTypes

/// Lets nobody guess by pairing again and again: after each failure a peer has to wait twice as long as before
/// (Vol 3, Part H, 2.3.6).
struct PairingAttempts {
    private struct Record {
        var failures: Int
        /// When the next attempt is heard.
        var end: Instant
    }

    /// The wait after the first failure, and the longest one.
    static let shortest = Duration.seconds(1)
    static let longest = Duration.seconds(256)

    private var records: GenerationalTable<DeviceAddress, Record>

    /// - Parameter limit: how many peers are remembered at the most.
    init(limit: Int = 256) {
        records = GenerationalTable(limit: limit)
    }

    var count: Int { records.count }

    private static func wait(after failures: Int) -> Duration {
        failures > 8 ? longest : shortest * (1 << (failures - 1))
    }

    mutating func failed(_ peer: DeviceAddress, at now: Instant) {
        let failures = 1 + (forgiven(peer, at: now)?.failures ?? 0)
        records[peer] = Record(failures: min(failures, 9), end: now + Self.wait(after: failures))
    }

    mutating func succeeded(_ peer: DeviceAddress) {
        records[peer] = nil
    }

    /// How long a peer has to wait yet; nil where it need not.
    mutating func wait(for peer: DeviceAddress, at now: Instant) -> Duration? {
        guard let record = forgiven(peer, at: now), record.end > now else { return nil }
        return record.end - now
    }

    /// What a peer is charged with: each wait that passes without an attempt, beyond the one that was imposed, makes up for
    /// one failure.
    private mutating func forgiven(_ peer: DeviceAddress, at now: Instant) -> Record? {
        guard var record = records[peer] else { return nil }
        while record.failures > 0, record.end + Self.wait(after: record.failures) <= now {
            record.end = record.end + Self.wait(after: record.failures)
            record.failures -= 1
        }
        records[peer] = record.failures > 0 ? record : nil
        return records[peer]
    }
}
