/// A point on a clock that only moves forward, in nanoseconds from an origin of the clock's own.
///
/// Protocol code is told the time; it never asks for it, so that a simulation or a recorded trace drives it exactly.
public struct Instant: Hashable, Comparable, Sendable {
    public var nanoseconds: UInt64

    @inlinable
    public init(nanoseconds: UInt64) { self.nanoseconds = nanoseconds }

    @inlinable
    public static func < (left: Instant, right: Instant) -> Bool { left.nanoseconds < right.nanoseconds }

    /// The instant `duration` later; it saturates at both ends of the clock.
    @inlinable
    public static func + (instant: Instant, duration: Duration) -> Instant {
        let nanoseconds = duration.wholeNanoseconds
        if nanoseconds >= 0 {
            return instant.advanced(byNanoseconds: UInt64(nanoseconds))
        }
        let (difference, overflow) = instant.nanoseconds.subtractingReportingOverflow(nanoseconds.magnitude)
        return Instant(nanoseconds: overflow ? 0 : difference)
    }

    /// The instant so many nanoseconds later; it saturates. A `Duration` is taken apart at the cost of a division.
    @inlinable
    public func advanced(byNanoseconds nanoseconds: UInt64) -> Instant {
        let (sum, overflow) = self.nanoseconds.addingReportingOverflow(nanoseconds)
        return Instant(nanoseconds: overflow ? .max : sum)
    }

    /// How long `earlier` was before this; negative when it was after.
    @inlinable
    public static func - (instant: Instant, earlier: Instant) -> Duration {
        .nanoseconds(Int64(bitPattern: instant.nanoseconds &- earlier.nanoseconds))
    }
}

extension Duration {
    /// The duration in nanoseconds, cut to what 64 bits hold (292 years either way).
    @inlinable
    public var wholeNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        guard !overflow else { return seconds < 0 ? .min : .max }
        let (sum, sumOverflow) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
        return sumOverflow ? (seconds < 0 ? .min : .max) : sum
    }
}
