/// How long operations took: up to 100 ms in classes of a tenth of a microsecond, above in classes of a millisecond, so that
/// millions of them need no more memory.
struct Latencies: Sendable {
    private static let classes = 1_000_000
    /// All that is longer counts as the longest: 100 s.
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

    /// What a part of the operations did not exceed, in microseconds; nil where there were none.
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
