/// A histogram of the durations of operations. It has classes of 0.1 µs up to 100 ms, and classes of 1 ms above. So its
/// memory does not grow with the number of operations.
struct Latencies: Sendable {
    private static let classes = 1_000_000
    /// Durations of more than 100 s count as the longest.
    private static let slowClasses = 100_000

    private var counts = [UInt32](repeating: 0, count: classes)
    private var slowCounts = [UInt32](repeating: 0, count: slowClasses)
    private(set) var count = 0

    mutating func add(_ duration: Duration) {
        let microseconds = max(0, duration / .microseconds(1))
        if microseconds * 10 < Double(Latencies.classes) {
            counts[Int(microseconds * 10)] &+= 1
        } else {
            slowCounts[Int(min(microseconds / 1000, Double(Latencies.slowClasses - 1)))] &+= 1
        }
        count += 1
    }

    /// The duration that the given fraction of the operations did not exceed, in microseconds; nil if there were none.
    ///
    /// - Parameter part: 0 to 1.
    func quantile(_ part: Double) -> Double? {
        guard count > 0 else { return nil }
        let wanted = max(1, Int((Double(count) * part).rounded(.up)))
        var sum = 0
        for (tenths, count) in counts.enumerated() {
            sum += Int(count)
            if sum >= wanted { return Double(tenths) / 10 }
        }
        for (milliseconds, count) in slowCounts.enumerated() {
            sum += Int(count)
            if sum >= wanted { return Double(milliseconds) * 1000 }
        }
        return nil
    }
}
