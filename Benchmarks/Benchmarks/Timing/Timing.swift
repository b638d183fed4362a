import Benchmark
import Cases

/// The benchmark cases, timed by the public benchmark library. `swift package benchmark` prints percentiles.
///
/// A result is that of all operations of a case; its name ends with their number.
let benchmarks: @Sendable () -> Void = {
    Benchmark.defaultConfiguration = .init(
        metrics: [.wallClock, .throughput],
        maxDuration: .seconds(1),
        maxIterations: 1000
    )
    for benchmarkCase in BenchmarkCase.all {
        let operations = benchmarkCase.countedOperations
        Benchmark("\(benchmarkCase.name) x\(operations)") { benchmark in
            // The case calls the meter while the library waits for the case.
            nonisolated(unsafe) let benchmark = benchmark
            let meter = Meter(
                name: benchmarkCase.name,
                onStart: { benchmark.startMeasurement() },
                onStop: { benchmark.stopMeasurement() }
            )
            try benchmarkCase.body(operations, meter)
        }
    }
}
