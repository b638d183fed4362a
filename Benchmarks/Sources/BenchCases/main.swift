import CCounters
import Cases
import Foundation

// bench-cases [list | measure | count] [--rounds N] [PART ...]: those cases whose names begin with one of PART, or all.
//
// `measure` prints a line of JSON for each case: the best and the median time of several rounds, and allocations.
// `count` runs each case once, for callgrind, which writes a file for each.

var arguments = Array(CommandLine.arguments.dropFirst())
let command = arguments.isEmpty ? "measure" : arguments.removeFirst()
var rounds = 5
if let index = arguments.firstIndex(of: "--rounds"), index + 1 < arguments.count {
    rounds = max(Int(arguments[index + 1]) ?? rounds, 1)
    arguments.removeSubrange(index...index + 1)
}
let cases = BenchmarkCase.all.filter { benchmark in
    arguments.isEmpty || arguments.contains { benchmark.name.hasPrefix($0) }
}

func run(_ body: BenchmarkCase.Body, _ name: String, _ operations: Int) throws -> Reading {
    let meter = Meter(name: name)
    try body(operations, meter)
    return meter.reading
}

func measure(_ body: BenchmarkCase.Body, _ name: String, _ operations: Int) throws -> [String: Any] {
    let readings = try (0..<rounds).map { _ in try run(body, name, operations) }
    let times = readings.map { Double($0.nanoseconds) / Double(operations) }.sorted()
    // Growing tables and lazily made globals cost the first round more: what stays is what counts.
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

func printLine(_ object: [String: Any]) throws {
    let data = try JSONSerialization.data(withJSONObject: object, options: [.sortedKeys, .withoutEscapingSlashes])
    print(String(decoding: data, as: UTF8.self))
    fflush(stdout)
}

switch command {
case "list":
    for benchmark in cases { print(benchmark.name) }
case "measure":
    for benchmark in cases {
        var line = try measure(benchmark.body, benchmark.name, benchmark.operations)
        line["name"] = benchmark.name
        if let baseline = benchmark.baseline {
            line["baseline"] = try measure(baseline, benchmark.name, benchmark.operations)
        }
        var budget: [String: Double] = [:]
        budget["allocations"] = benchmark.budget.allocations
        budget["ratio"] = benchmark.budget.ratio
        budget["rate"] = benchmark.budget.rate
        line["budget"] = budget
        try printLine(line)
    }
case "count":
    for benchmark in cases {
        let operations = benchmark.countedOperations
        let reading = try run(benchmark.body, benchmark.name, operations)
        if let baseline = benchmark.baseline { _ = try run(baseline, "C " + benchmark.name, operations) }
        try printLine([
            "name": benchmark.name, "operations": operations,
            "allocations": Double(reading.allocations) / Double(operations),
        ])
    }
default:
    print("unknown command \(command): list, measure or count")
    exit(64)
}
