import CoreMetrics
import Synchronization

/// A metric that swift-metrics reports to.
protocol RegisteredMetric: AnyObject, Sendable {
    /// The values, with suffixes and without the labels of the metric.
    var samples: [MetricFamily.Sample] { get }
}

extension MetricFamily.Sample {
    fileprivate init(_ value: Double, suffix: String = "", bound: String? = nil) {
        self.init(suffix: suffix, labels: bound.map { [("le", $0)] } ?? [], value: value)
    }
}

/// A number that only increases. An increment costs one atomic addition.
final class CounterMetric: CounterHandler, RegisteredMetric {
    private let value = Atomic<Int64>(0)

    func increment(by amount: Int64) {
        if amount > 0 { value.wrappingAdd(amount, ordering: .relaxed) }
    }

    func reset() { value.store(0, ordering: .relaxed) }

    var samples: [MetricFamily.Sample] { [.init(Double(value.load(ordering: .relaxed)))] }
}

/// A number, not necessarily whole, that only increases.
final class FloatingPointCounterMetric: FloatingPointCounterHandler, RegisteredMetric {
    private let value = Mutex(0.0)

    func increment(by amount: Double) {
        if amount > 0, amount.isFinite { value.withLock { $0 += amount } }
    }

    func reset() { value.withLock { $0 = 0 } }

    var samples: [MetricFamily.Sample] { [.init(value.withLock { $0 })] }
}

/// A number that increases and decreases.
final class GaugeMetric: RecorderHandler, MeterHandler, RegisteredMetric {
    private let value = Mutex(0.0)

    func record(_ value: Int64) { set(Double(value)) }
    func record(_ value: Double) { set(value) }
    func set(_ value: Int64) { set(Double(value)) }
    func set(_ value: Double) { self.value.withLock { $0 = value } }
    func increment(by amount: Double) { value.withLock { $0 += amount } }
    func decrement(by amount: Double) { value.withLock { $0 -= amount } }

    var samples: [MetricFamily.Sample] { [.init(value.withLock { $0 })] }
}

/// The number and the sum of values. Their scale is not known, so there are no buckets.
final class SummaryMetric: RecorderHandler, RegisteredMetric {
    private let state = Mutex((count: UInt64(0), sum: 0.0))

    func record(_ value: Int64) { record(Double(value)) }

    func record(_ value: Double) {
        guard value.isFinite else { return }
        state.withLock { state in
            state.count += 1
            state.sum += value
        }
    }

    var samples: [MetricFamily.Sample] {
        let (count, sum) = state.withLock { $0 }
        return [.init(sum, suffix: "_sum"), .init(Double(count), suffix: "_count")]
    }
}

/// Durations in seconds, counted in buckets.
final class TimerMetric: TimerHandler, RegisteredMetric {
    /// The upper bounds of the buckets in seconds; the last bucket has none.
    static let bounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

    private struct State {
        var counts = [UInt64](repeating: 0, count: bounds.count + 1)
        var sum = 0.0
    }

    private let state = Mutex(State())

    func recordNanoseconds(_ duration: Int64) {
        let seconds = Double(duration) / 1e9
        let bucket = Self.bounds.firstIndex { seconds <= $0 } ?? Self.bounds.count
        state.withLock { state in
            state.counts[bucket] += 1
            state.sum += seconds
        }
    }

    var samples: [MetricFamily.Sample] {
        let (counts, sum) = state.withLock { ($0.counts, $0.sum) }
        var total: UInt64 = 0
        var samples: [MetricFamily.Sample] = []
        for (count, bound) in zip(counts, Self.bounds + [.infinity]) {
            total += count
            samples.append(.init(Double(total), suffix: "_bucket", bound: Exposition.number(bound)))
        }
        return samples + [.init(sum, suffix: "_sum"), .init(Double(total), suffix: "_count")]
    }
}
