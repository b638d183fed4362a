/// The last attempt to connect to each device, if it has failed, until the next attempt.
struct FailedAttempts {
    private struct Attempt {
        /// The position of its adapter.
        let adapter: Int
        let time: ContinuousClock.Instant
    }

    /// Maximum number of devices. Beyond it, the oldest attempt is forgotten.
    static let limit = 1024
    /// How long a failed attempt counts.
    static let lifetime = Duration.seconds(300)

    private var attempts = RecencyTable<UInt64, Attempt>(limit: FailedAttempts.limit)

    /// Records that an attempt through an adapter has failed, in place of an earlier one.
    mutating func record(_ address: UInt64, through adapter: Int, at now: ContinuousClock.Instant) {
        _ = attempts.remove(address)
        attempts.insert(Attempt(adapter: adapter, time: now), for: address)
    }

    /// Removes the failed attempt to connect to a device.
    ///
    /// - Returns: the position of its adapter; nil if there is none, or if it no longer counts.
    mutating func take(_ address: UInt64, at now: ContinuousClock.Instant) -> Int? {
        guard let attempt = attempts.remove(address), now - attempt.time < FailedAttempts.lifetime else { return nil }
        return attempt.adapter
    }
}
