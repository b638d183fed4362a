/// The number of operations in a given time.
struct Throughput {
    private let operations: Int
    private let start: ContinuousClock.Instant
    private let end: ContinuousClock.Instant

    /// Repeats an operation until the time is over. Looks at the clock after 64 operations, because it takes as long as
    /// a part of the operation.
    static func of(
        _ duration: Duration,
        _ operation: () async throws -> Void
    ) async rethrows -> Throughput {
        let start = ContinuousClock.now
        var operations = 0
        var now = start
        repeat {
            for _ in 0..<64 { try await operation() }
            operations += 64
            now = .now
        } while now < start + duration
        return Throughput(operations: operations, start: start, end: now)
    }

    var json: String {
        """
        {"operations": \(operations), "seconds": \((end - start) / .seconds(1))}
        """
    }
}

/// The number of operations in a given time, and the duration of each.
struct Measurement {
    private var counts = [Int](repeating: 0, count: 1 << 16)
    private var operations = 0
    private let start = ContinuousClock.now
    private let end: ContinuousClock.Instant
    private var last: ContinuousClock.Instant

    init(lasting duration: Duration) {
        end = start + duration
        last = start
    }

    /// Repeats an operation until the time is over.
    static func of(
        _ duration: Duration,
        _ operation: () async throws -> Void
    ) async rethrows -> Measurement {
        var measurement = Measurement(lasting: duration)
        repeat { try await operation() } while measurement.note()
        return measurement
    }

    /// Counts an operation that has just ended.
    ///
    /// - Returns: false if the time is over.
    private mutating func note() -> Bool {
        let now = ContinuousClock.now
        let tenths = (now - last).components.attoseconds / 100_000_000_000
        counts[min(Int(tenths), counts.count - 1)] += 1
        operations += 1
        last = now
        return now < end
    }

    /// A quantile of the durations, in microseconds.
    private func quantile(_ part: Double) -> Double {
        let wanted = Int(Double(operations) * part)
        var sum = 0
        for (tenths, count) in counts.enumerated() {
            sum += count
            if sum > wanted { return Double(tenths) / 10 }
        }
        return 0
    }

    var json: String {
        let time = (last - start) / .seconds(1)
        return """
            {"operations": \(operations), "seconds": \(time), "p50": \(quantile(0.5)), "p99": \(quantile(0.99))}
            """
    }
}
