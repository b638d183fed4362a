/// An estimate of how much later than usual the messages of a gateway arrive.
///
/// The clocks of gateways differ, and so do the ways to the broker. The smallest difference between the arrival and the
/// gateway's time has both. What a message has beyond it is its delay.
///
/// The smallest difference stays known while no message comes. A gateway whose broker was away sends old messages
/// first. They arrive faster than they were made, so each is less late than those before. If the messages of two
/// periods are equally late, a clock was set, or is slower than the other one. Then the smallest difference is that of
/// these periods.
struct ClockOffset {
    private static let period = Duration.seconds(60)
    /// The messages of a period are equally late if they are less late than those of the last period by at most this
    /// time.
    private static let tolerance = Duration.seconds(1)
    /// A gateway's first message is on time if it is late by at most this time under the expected difference.
    private static let expectationTolerance = Duration.seconds(60)

    private var smallest: Duration?
    /// The arrival of the first message of the period.
    private var start: Duration?
    /// The smallest difference of the period.
    private var current: Duration?
    /// The smallest difference of the last period with messages.
    private var last: Duration?

    /// Returns the delay of a message.
    ///
    /// - Parameters:
    ///   - time: the gateway's time of the message.
    ///   - now: the time of its arrival, by another clock.
    ///   - expected: the difference between the clocks until it is measured; nil if it is not known.
    mutating func delay(of time: Duration, at now: Duration, expected: Duration? = nil) -> Duration {
        let difference = now - time
        if let start, now - start >= Self.period { endPeriod() }
        if current == nil { start = now }
        current = min(current ?? difference, difference)
        var smallest = smallest ?? difference
        if self.smallest == nil, let expected, difference - expected > Self.expectationTolerance { smallest = expected }
        smallest = min(smallest, difference)
        self.smallest = smallest
        return difference - smallest
    }

    private mutating func endPeriod() {
        if let current, let last, current >= last - Self.tolerance { smallest = min(current, last) }
        last = current
        current = nil
    }

    /// Parses the time of a message, such as `2026-11-24T16:48:19.375Z`. Returns nil for another notation.
    static func parse(_ text: String) -> Duration? {
        let bytes = Array(text.utf8)
        guard (20...30).contains(bytes.count), bytes.last == UInt8(ascii: "Z") else { return nil }
        func number(_ range: Range<Int>) -> Int64? {
            var number: Int64 = 0
            for byte in bytes[range] {
                guard (0x30...0x39).contains(byte) else { return nil }
                number = number * 10 + Int64(byte - 0x30)
            }
            return number
        }
        guard let year = number(0..<4), let month = number(5..<7), let day = number(8..<10), let hour = number(11..<13),
            let minute = number(14..<16), let second = number(17..<19), (1...12).contains(month),
            bytes[4] == UInt8(ascii: "-"), bytes[7] == UInt8(ascii: "-"), bytes[10] == UInt8(ascii: "T"),
            bytes[13] == UInt8(ascii: ":"), bytes[16] == UInt8(ascii: ":")
        else { return nil }
        var milliseconds: Int64 = 0
        if bytes.count > 20 {
            guard bytes[19] == UInt8(ascii: "."), let fraction = number(20..<min(23, bytes.count - 1)) else {
                return nil
            }
            milliseconds = fraction * [1, 100, 10, 1][min(3, bytes.count - 21)]
        }
        // Days since 1970-01-01 in the Gregorian calendar, with years that begin in March.
        let shifted = month > 2 ? year : year - 1
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let days = shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + dayOfYear - 719_468
        return .milliseconds(((days * 24 + hour) * 60 + minute) * 60_000 + second * 1000 + milliseconds)
    }
}
