/// A point on a clock that only moves forward, in nanoseconds since the clock's origin.
///
/// Protocol code receives the time as a parameter and never reads a clock. So a simulation or a recorded trace controls
/// it exactly.
public struct Instant: Hashable, Comparable, Sendable {
    /// The time since the clock's origin, in nanoseconds.
    public var nanoseconds: UInt64

    /// Creates the instant `nanoseconds` after the clock's origin.
    @inlinable
    public init(nanoseconds: UInt64) { self.nanoseconds = nanoseconds }

    @inlinable
    public static func < (left: Instant, right: Instant) -> Bool { left.nanoseconds < right.nanoseconds }

    /// Returns the instant `duration` later, clamped to the range of the clock.
    @inlinable
    public static func + (instant: Instant, duration: Duration) -> Instant {
        let nanoseconds = duration.wholeNanoseconds
        if nanoseconds >= 0 {
            return instant.advanced(byNanoseconds: UInt64(nanoseconds))
        }
        let (difference, overflow) = instant.nanoseconds.subtractingReportingOverflow(nanoseconds.magnitude)
        return Instant(nanoseconds: overflow ? 0 : difference)
    }

    /// Returns the instant `nanoseconds` later, clamped to the range of the clock. It avoids the division of a
    /// `Duration`.
    @inlinable
    public func advanced(byNanoseconds nanoseconds: UInt64) -> Instant {
        let (sum, overflow) = self.nanoseconds.addingReportingOverflow(nanoseconds)
        return Instant(nanoseconds: overflow ? .max : sum)
    }

    /// Returns the time from `earlier` to this instant, clamped to 64 bits; negative if `earlier` is later.
    @inlinable
    public static func - (instant: Instant, earlier: Instant) -> Duration {
        if instant.nanoseconds >= earlier.nanoseconds {
            return .nanoseconds(Int64(clamping: instant.nanoseconds &- earlier.nanoseconds))
        }
        return .nanoseconds(-Int64(clamping: earlier.nanoseconds &- instant.nanoseconds))
    }
}

extension Duration {
    /// The duration in whole nanoseconds, clamped to 64 bits (292 years in either direction).
    @inlinable
    public var wholeNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        guard !overflow else { return seconds < 0 ? .min : .max }
        let (sum, sumOverflow) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
        return sumOverflow ? (seconds < 0 ? .min : .max) : sum
    }
}
