import Benchmark
import Cases

/// The benchmark cases, timed by the public benchmark library. `swift package benchmark` prints percentiles.
let benchmarks: @Sendable () -> Void = {
    Benchmark.defaultConfiguration = .init(
        metrics: [.wallClock, .throughput],
        maxDuration: .seconds(1),
        maxIterations: 1000
    )
    for benchmarkCase in BenchmarkCase.all {
        let operations = benchmarkCase.countedOperations
        Benchmark(benchmarkCase.name) { benchmark in
            let meter = Meter(name: benchmarkCase.name)
            benchmark.startMeasurement()
            try benchmarkCase.body(operations, meter)
            benchmark.stopMeasurement()
        }
    }
}
