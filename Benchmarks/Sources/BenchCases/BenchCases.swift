import Cases
import Foundation

/// `bench-cases [list | measure | count] [--rounds N] [PART ...]`: the cases whose names begin with one of PART, or
/// all.
///
/// `measure` prints a line of JSON for each case: the best and the median time of several rounds, and allocations.
/// `count` runs each case once for callgrind, which writes a file for each.
@main
struct BenchCases {
    private var rounds = 5
    private var cases: [BenchmarkCase]

    static func main() throws {
        var arguments = Array(CommandLine.arguments.dropFirst())
        let command = arguments.isEmpty ? "measure" : arguments.removeFirst()
        let bench = BenchCases(arguments)
        switch command {
        case "list": for benchmark in bench.cases { print(benchmark.name) }
        case "measure": for benchmark in bench.cases { try bench.measure(benchmark) }
        case "count": for benchmark in bench.cases { try bench.count(benchmark) }
        default:
            print("unknown command \(command): list, measure or count")
            exit(64)
        }
    }

    private init(_ arguments: [String]) {
        var parts = arguments
        if let index = parts.firstIndex(of: "--rounds"), index + 1 < parts.count {
            rounds = max(Int(parts[index + 1]) ?? rounds, 1)
            parts.removeSubrange(index...index + 1)
        }
        cases = BenchmarkCase.all.filter { benchmark in
            parts.isEmpty || parts.contains { benchmark.name.hasPrefix($0) }
        }
    }

    private func run(_ body: BenchmarkCase.Body, _ name: String, _ operations: Int) throws -> Reading {
        let meter = Meter(name: name)
        try body(operations, meter)
        return meter.reading
    }

    // MARK: Time and allocations

    private func measure(_ benchmark: BenchmarkCase) throws {
        var line = try figures(benchmark.body, benchmark)
        line["name"] = benchmark.name
        if let baseline = benchmark.baseline { line["baseline"] = try figures(baseline, benchmark) }
        var budget: [String: Double] = [:]
        budget["allocations"] = benchmark.budget.allocations
        budget["ratio"] = benchmark.budget.ratio
        budget["rate"] = benchmark.budget.rate
        line["budget"] = budget
        try printLine(line)
    }

    private func figures(_ body: BenchmarkCase.Body, _ benchmark: BenchmarkCase) throws -> [String: Any] {
        let operations = benchmark.operations
        let readings = try (0..<rounds).map { _ in try run(body, benchmark.name, operations) }
        let times = readings.map { Double($0.nanoseconds) / Double(operations) }.sorted()
        // Growing tables and lazily initialized globals make the first round more expensive; only recurring costs
        // count.
        let allocations = readings.map { Double($0.allocations) / Double(operations) }.min() ?? 0
        let bytes = readings.map { Double($0.bytes) / Double(operations) }.min() ?? 0
        var result: [String: Any] = [
            "best": times[0], "median": times[times.count / 2], "allocations": allocations, "bytes": bytes,
        ]
        let figures = readings.last?.figures ?? []
        if !figures.isEmpty {
            result["figures"] = Dictionary(figures.map { ($0.name, $0.value) }, uniquingKeysWith: { $1 })
        }
        return result
    }

    // MARK: Instructions

    private func count(_ benchmark: BenchmarkCase) throws {
        let operations = benchmark.countedOperations
        let reading = try run(benchmark.body, benchmark.name, operations)
        if let baseline = benchmark.baseline { _ = try run(baseline, "C " + benchmark.name, operations) }
        try printLine([
            "name": benchmark.name, "operations": operations,
            "allocations": Double(reading.allocations) / Double(operations),
        ])
    }

    private func printLine(_ object: [String: Any]) throws {
        let data = try JSONSerialization.data(withJSONObject: object, options: [.sortedKeys, .withoutEscapingSlashes])
        try FileHandle.standardOutput.write(contentsOf: data + Data("\n".utf8))
    }
}
