import Foundation

/// The clock of the times in a ``MessageStore``. It may be set while the gateway runs; see ``Outbox``.
struct StoreClock {
    /// Times before this one, in seconds since 1970, are those of a clock that is not set: 2025.
    static let earliestTime: Int64 = 1_735_689_600
    /// A clock that moves by more than so many seconds has been set.
    static let tolerance: Int64 = 60

    private let now: @Sendable () -> Int64
    private let uptime: @Sendable () -> Int64
    /// The time in seconds since 1970 at which ``uptime`` was 0, as far as the times in the store follow it.
    private var offset: Int64

    /// - Parameters:
    ///   - now: returns the time in seconds since 1970.
    ///   - uptime: returns the time in seconds since any moment, of a clock that is never set.
    init(now: @escaping @Sendable () -> Int64, uptime: @escaping @Sendable () -> Int64) {
        self.now = now
        self.uptime = uptime
        offset = now() - uptime()
    }

    static func secondsSince1970() -> Int64 { Int64(Date().timeIntervalSince1970) }

    static func secondsSinceNow() -> @Sendable () -> Int64 {
        let start = ContinuousClock.now
        return { (ContinuousClock.now - start).components.seconds }
    }

    /// The time in seconds since 1970; nil if the clock is not set.
    var time: Int64? {
        let now = now()
        return now >= Self.earliestTime ? now : nil
    }

    /// By how many seconds the clock is ahead of the times in the store. A great number means that it was set.
    var jump: Int64 { now() - uptime() - offset }

    /// Notes that the times in the store follow a jump, if it is one.
    mutating func follow(_ jump: Int64) {
        if abs(jump) > Self.tolerance { offset += jump }
    }
}
