import CoreMetrics
import Synchronization

/// A backend of swift-metrics that keeps all metrics for Prometheus.
///
/// Metrics with the same name and labels are one. Counters get the suffix `_total`, and timers `_seconds`, if they do
/// not have it. At most ``seriesLimit`` metrics are kept. Further ones have no effect and are counted, as are those
/// whose name has another type already.
package final class MetricsRegistry: MetricsFactory {
    private struct Family {
        let kind: MetricFamily.Kind
        /// The label of the first metric.
        let label: String
        var series: [(labels: [(name: String, value: String)], metric: any RegisteredMetric)] = []
        var indices: [[String]: Int] = [:]
    }

    private struct State {
        var families: [String: Family] = [:]
        var seriesCount = 0
        var rejectedCount: UInt64 = 0
    }

    /// The greatest number of metrics.
    package static let seriesLimit = 1000

    private let state = Mutex(State())

    /// Creates a registry without metrics.
    package init() {}

    package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        register(.counter, label, dimensions) { CounterMetric() }
    }

    package func makeFloatingPointCounter(
        label: String,
        dimensions: [(String, String)]
    ) -> any FloatingPointCounterHandler {
        register(.counter, label, dimensions) { FloatingPointCounterMetric() }
    }

    package func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        register(.gauge, label, dimensions) { GaugeMetric() }
    }

    package func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        if aggregate {
            register(.summary, label, dimensions) { SummaryMetric() }
        } else {
            register(.gauge, label, dimensions) { GaugeMetric() }
        }
    }

    package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        register(.histogram, label, dimensions) { TimerMetric() }
    }

    // Counters must not start again at zero when the object that counted is replaced, so nothing is removed.
    package func destroyCounter(_ handler: any CounterHandler) {}
    package func destroyFloatingPointCounter(_ handler: any FloatingPointCounterHandler) {}
    package func destroyMeter(_ handler: any MeterHandler) {}
    package func destroyRecorder(_ handler: any RecorderHandler) {}
    package func destroyTimer(_ handler: any TimerHandler) {}

    private func register<Metric: RegisteredMetric>(
        _ kind: MetricFamily.Kind,
        _ label: String,
        _ dimensions: [(String, String)],
        make: () -> Metric
    ) -> Metric {
        let name = Self.name(label, kind)
        var labels: [(name: String, value: String)] = []
        for (key, value) in dimensions {
            let key = Exposition.name(key)
            if key != "le", key != "quantile", !labels.contains(where: { $0.name == key }) {
                labels.append((key, value))
            }
        }
        labels.sort { $0.name < $1.name }
        let key = labels.flatMap { [$0.name, $0.value] }
        return state.withLock { state in
            var family = state.families[name] ?? Family(kind: kind, label: label)
            if family.kind == kind, let index = family.indices[key] {
                if let metric = family.series[index].metric as? Metric { return metric }
            } else if family.kind == kind, state.seriesCount < Self.seriesLimit {
                let metric = make()
                family.indices[key] = family.series.count
                family.series.append((labels, metric))
                state.families[name] = family
                state.seriesCount += 1
                return metric
            }
            state.rejectedCount += 1
            return make()
        }
    }

    private static func name(_ label: String, _ kind: MetricFamily.Kind) -> String {
        var name = Exposition.name(label)
        let total = "_total"
        let seconds = "_seconds"
        if name.hasSuffix(total) { name.removeLast(total.count) }
        if kind == .histogram, !name.hasSuffix(seconds) { name += seconds }
        return kind == .counter ? name + total : name
    }

    /// All metrics, by name.
    var families: [MetricFamily] {
        let (families, rejectedCount) = state.withLock { ($0.families, $0.rejectedCount) }
        var result = families.sorted { $0.key < $1.key }.map { name, family in
            MetricFamily(
                name,
                family.kind,
                MetricHelp.text(for: name, label: family.label),
                samples: family.series.flatMap { labels, metric in
                    metric.samples.map { sample in
                        MetricFamily.Sample(suffix: sample.suffix, labels: labels + sample.labels, value: sample.value)
                    }
                }
            )
        }
        result.append(
            MetricFamily(
                "ble_gateway_metrics_rejected_total",
                .counter,
                "Metrics without effect: there were too many, or their name had another type.",
                Double(rejectedCount)
            )
        )
        return result
    }
}
