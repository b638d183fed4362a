/// How long operations took, each in a class of a tenth of a microsecond, so that millions of them need no more memory.
struct Latencies: Sendable {
    /// All that is longer counts as the longest: 100 ms.
    private static let classes = 1_000_000

    private var counts = [UInt32](repeating: 0, count: classes)
    private(set) var count = 0

    mutating func add(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        let tenths = seconds > 0 ? Latencies.classes : Int(attoseconds / 100_000_000_000)
        counts[min(max(tenths, 0), Latencies.classes - 1)] &+= 1
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
        return nil
    }
}
