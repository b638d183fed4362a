/// The delays before a lost connection is established again.
///
/// The first attempt after a stable connection starts immediately. Each failure in a row makes the next delay longer,
/// by ``multiplier``, up to ``maximumDelay``. A part of each delay is random, so that a gateway's peripherals, or the
/// gateways of a site, do not try again at the same time.
public struct ReconnectionBackoff: Hashable, Sendable {
    /// The delay after the first failure, without its random part: at least 0.
    public var initialDelay: Duration
    /// The longest delay: at least ``initialDelay``, at most a year.
    public var maximumDelay: Duration
    /// The factor from one delay to the next: 1 or more.
    public var multiplier: Double
    /// The part of each delay that is random, from 0 to 1: a delay of 10 s with a fraction of 0.5 lasts 5 s to 10 s.
    public var jitterFraction: Double
    /// The time for which a connection must have lasted to be stable. The end of a shorter one counts as a failure.
    public var stableDuration: Duration

    /// - Parameters:
    ///   - initialDelay: the delay after the first failure.
    ///   - maximumDelay: the longest delay.
    ///   - multiplier: the factor from one delay to the next.
    ///   - jitterFraction: the part of each delay that is random, from 0 to 1.
    ///   - stableDuration: the time for which a connection must have lasted to be stable.
    public init(
        initialDelay: Duration = .milliseconds(500),
        maximumDelay: Duration = .seconds(60),
        multiplier: Double = 2,
        jitterFraction: Double = 0.5,
        stableDuration: Duration = .seconds(30)
    ) {
        self.initialDelay = initialDelay
        self.maximumDelay = maximumDelay
        self.multiplier = multiplier
        self.jitterFraction = jitterFraction
        self.stableDuration = stableDuration
    }

    /// Returns the delay after a number of failures in a row. Values out of range are taken as the nearest in range.
    ///
    /// - Parameters:
    ///   - failures: the number of failures in a row; 0 gives no delay.
    ///   - random: 0 for the longest delay, to 1 for the shortest.
    package func delay(afterFailures failures: Int, random: Double) -> Duration {
        guard failures > 0 else { return .zero }
        let maximum = min(max(maximumDelay, .zero), .seconds(365 * 86_400))
        var delay = min(max(initialDelay, .zero), maximum)
        // A loop cannot overflow: it ends at the maximum.
        var count = 1
        let factor = multiplier.isFinite ? min(max(multiplier, 1), 1000) : 1
        while count < failures && factor > 1 && delay > .zero && delay < maximum {
            delay = delay * factor < maximum ? delay * factor : maximum
            count += 1
        }
        let randomPart = jitterFraction.isFinite ? min(max(jitterFraction, 0), 1) : 0
        return delay * (1 - randomPart * (random.isFinite ? min(max(random, 0), 1) : 0))
    }
}
