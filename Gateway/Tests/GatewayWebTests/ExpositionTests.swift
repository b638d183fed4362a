import CoreMetrics
import Synchronization
import Testing

@testable import GatewayWeb

struct ExpositionTests {
    @Test func familyHasHelpTypeAndSamples() {
        let family = MetricFamily("frames_total", .counter, "All frames.", label: "kind", [("a", 1), ("b", 2.5)])
        #expect(
            Exposition.text([family]) == """
                # HELP frames_total All frames.
                # TYPE frames_total counter
                frames_total{kind="a"} 1
                frames_total{kind="b"} 2.5

                """
        )
    }

    @Test func textsAreEscaped() {
        let family = MetricFamily("a", .gauge, "Line\nand \\ and \"", label: "l", [("x\"} 1\ny\\", 1)])
        #expect(
            Exposition.text([family]) == """
                # HELP a Line\\nand \\\\ and "
                # TYPE a gauge
                a{l="x\\"} 1\\ny\\\\"} 1

                """
        )
    }

    @Test func longLabelValueIsCut() {
        let family = MetricFamily("a", .gauge, "h", label: "l", [(String(repeating: "x", count: 1000), 1)])
        #expect(Exposition.text([family]).contains("\"\(String(repeating: "x", count: 128))\""))
    }

    @Test func secondFamilyWithTheSameNameIsLeftOut() {
        let text = Exposition.text([MetricFamily("a", .gauge, "first", 1), MetricFamily("a", .counter, "second", 2)])
        #expect(text == "# HELP a first\n# TYPE a gauge\na 1\n")
    }

    @Test func familyWithoutSamplesIsLeftOut() {
        #expect(Exposition.text([MetricFamily("a", .gauge, "h", samples: [])]).isEmpty)
    }

    @Test(arguments: [
        (1.0, "1"), (-0.5, "-0.5"), (1e15, "1000000000000000"), (.infinity, "+Inf"), (-.infinity, "-Inf"),
        (.nan, "NaN"),
    ])
    func numberIsWritten(number: Double, text: String) {
        #expect(Exposition.number(number) == text)
    }

    @Test(arguments: [("a.b-c", "a_b_c"), ("1a", "_1a"), ("", "_"), ("naïve", "na_ve"), ("ok_9", "ok_9")])
    func nameHasAllowedCharactersOnly(text: String, name: String) {
        #expect(Exposition.name(text) == name)
    }
}

struct MetricsRegistryTests {
    private let registry = MetricsRegistry()

    private func lines(_ prefix: String) -> [String] {
        Exposition.text(registry.families).split(separator: "\n").filter { $0.hasPrefix(prefix) }.map(String.init)
    }

    private func counter(_ label: String, _ dimensions: [(String, String)] = []) -> Counter {
        Counter(label: label, dimensions: dimensions, factory: registry)
    }

    @Test func countersOfTheSameNameAndLabelsAreOne() {
        counter("frames_total", [("a", "1"), ("b", "2")]).increment(by: 2)
        counter("frames", [("b", "2"), ("a", "1")]).increment(by: 3)
        #expect(lines("frames") == ["frames_total{a=\"1\",b=\"2\"} 5"])
    }

    @Test func counterKeepsItsValueWhenItIsDestroyed() {
        let first = counter("frames")
        first.increment()
        first.destroy()
        counter("frames").increment()
        #expect(lines("frames") == ["frames_total 2"])
    }

    @Test func counterNeverDecreases() {
        let counter = counter("frames")
        counter.increment(by: 5)
        counter.increment(by: -3)
        #expect(lines("frames") == ["frames_total 5"])
    }

    @Test func floatingPointCounterAddsFractions() {
        let counter = FloatingPointCounter(label: "energy_joules", factory: registry)
        counter.increment(by: 0.25)
        counter.increment(by: 0.5)
        #expect(lines("energy") == ["energy_joules_total 0.75"])
    }

    @Test func gaugeAndMeterHaveTheLastValue() {
        let gauge = Gauge(label: "links", factory: registry)
        gauge.record(7)
        gauge.record(3)
        let meter = Meter(label: "level", factory: registry)
        meter.set(4)
        meter.decrement(by: 1.5)
        #expect(lines("l") == ["level 2.5", "links 3"])
    }

    @Test func recorderIsASummaryWithoutQuantiles() {
        let recorder = Recorder(label: "size_bytes", factory: registry)
        recorder.record(10)
        recorder.record(2.5)
        #expect(lines("size") == ["size_bytes_sum 12.5", "size_bytes_count 2"])
        #expect(lines("# TYPE size") == ["# TYPE size_bytes summary"])
    }

    @Test func timerIsAHistogramInSeconds() {
        let timer = CoreMetrics.Timer(label: "pause", factory: registry)
        timer.recordNanoseconds(2_000_000)
        timer.recordNanoseconds(500_000)
        timer.recordNanoseconds(20_000_000_000)
        let lines = lines("pause")
        #expect(lines.count == TimerMetric.bounds.count + 3)
        #expect(lines[0] == "pause_seconds_bucket{le=\"0.0005\"} 1")
        #expect(lines[1] == "pause_seconds_bucket{le=\"0.001\"} 1")
        #expect(lines[2] == "pause_seconds_bucket{le=\"0.0025\"} 2")
        #expect(
            lines.suffix(3) == [
                "pause_seconds_bucket{le=\"+Inf\"} 3", "pause_seconds_sum 20.0025", "pause_seconds_count 3",
            ]
        )
    }

    @Test func numberOfSeriesIsLimited() {
        for number in 0..<(MetricsRegistry.seriesLimit + 10) { counter("frames", [("peer", "\(number)")]).increment() }
        #expect(lines("frames_total").count == MetricsRegistry.seriesLimit)
        #expect(lines("ble_gateway_metrics_rejected_total") == ["ble_gateway_metrics_rejected_total 10"])
        // A metric that exists still counts.
        counter("frames", [("peer", "0")]).increment()
        #expect(lines("frames_total{peer=\"0\"}") == ["frames_total{peer=\"0\"} 2"])
    }

    @Test func nameWithAnotherTypeIsRejected() {
        Gauge(label: "links", factory: registry).record(1)
        Recorder(label: "links", factory: registry).record(9)
        #expect(lines("links") == ["links 1"])
        #expect(lines("ble_gateway_metrics_rejected_total") == ["ble_gateway_metrics_rejected_total 1"])
    }

    @Test func reservedAndRepeatedLabelsAreLeftOut() {
        counter("frames", [("le", "1"), ("a", "x"), ("a", "y"), ("quantile", "2")]).increment()
        #expect(lines("frames") == ["frames_total{a=\"x\"} 1"])
    }

    @Test func processMetricsAreTheSystems() throws {
        let families = Dictionary(
            uniqueKeysWithValues: ProcessMetrics().families.map { ($0.name, $0.samples[0].value) }
        )
        #expect(try #require(families["process_cpu_seconds_total"]) > 0)
        #expect(try #require(families["process_resident_memory_bytes"]) > 1_000_000)
        #expect(try #require(families["process_open_fds"]) >= 3)
        #expect(try #require(families["process_max_fds"]) >= 64)
        #expect(try #require(families["process_start_time_seconds"]) > 1_600_000_000)
    }

    @Test func startTimeFollowsTheClockWhenThatIsSet() throws {
        let clock = Mutex(10_000.0)
        let metrics = ProcessMetrics(systemTime: { clock.withLock { $0 } }, timeSinceBoot: { 1000 })
        func startTime() throws -> Double {
            try #require(metrics.families.first { $0.name == "process_start_time_seconds" }).samples[0].value
        }
        let first = try startTime()
        clock.withLock { $0 += 0.5 }
        #expect(try startTime() == first)
        clock.withLock { $0 += 1_700_000_000 }
        let second = try startTime()
        #expect(abs(second - first - 1_700_000_000.5) < 0.001)
        clock.withLock { $0 -= 0.5 }
        #expect(try startTime() == second)
    }
}
