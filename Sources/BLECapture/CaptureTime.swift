/// The time at which a record was taken, on the recorder's clock: the time since 1970-01-01 00:00 UTC.
public struct CaptureTime: Hashable, Sendable, Comparable {
    /// Whole seconds since 1970, rounded down. Negative for earlier times, for example if a recorder's clock was not
    /// set.
    public var seconds: Int64
    /// Nanoseconds since ``seconds``, less than 1,000,000,000.
    public var nanoseconds: UInt32

    /// Creates a time.
    ///
    /// - Parameters:
    ///   - seconds: whole seconds since 1970, rounded down.
    ///   - nanoseconds: nanoseconds since `seconds`. From 1,000,000,000, whole seconds are carried over.
    public init(seconds: Int64, nanoseconds: UInt32) {
        let (sum, isOver) = seconds.addingReportingOverflow(Int64(nanoseconds / 1_000_000_000))
        self.seconds = isOver ? .max : sum
        self.nanoseconds = nanoseconds % 1_000_000_000
    }

    public init(microsecondsSince1970 microseconds: Int64) {
        let (quotient, remainder) = microseconds.quotientAndRemainder(dividingBy: 1_000_000)
        let isBefore = remainder < 0
        seconds = isBefore ? quotient - 1 : quotient
        nanoseconds = UInt32(isBefore ? remainder + 1_000_000 : remainder) * 1000
    }

    /// Microseconds since 1970, rounded down and clamped to the range of `Int64`.
    public var microsecondsSince1970: Int64 {
        Int64(clamping: Int128(seconds) * 1_000_000 + Int128(nanoseconds / 1000))
    }

    /// Nanoseconds since 1970, clamped to the range of `Int64`, which ends in 2262.
    public var nanosecondsSince1970: Int64 {
        Int64(clamping: Int128(seconds) * 1_000_000_000 + Int128(nanoseconds))
    }

    /// The time from `earlier` to this time, in nanoseconds; negative if this time is before `earlier`.
    public func nanoseconds(since earlier: CaptureTime) -> Int64 {
        Int64(
            clamping: (Int128(seconds) - Int128(earlier.seconds)) * 1_000_000_000
                + Int128(nanoseconds) - Int128(earlier.nanoseconds)
        )
    }

    public static func < (left: CaptureTime, right: CaptureTime) -> Bool {
        (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
    }
}
