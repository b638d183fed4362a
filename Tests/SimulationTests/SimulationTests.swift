import Foundation
import Testing

@Suite("Random worlds from seeds")
struct SimulationTests {
    /// `SIMULATION_SEEDS` is the number of seeds to run, from `SIMULATION_FIRST_SEED` or 0.
    /// `SIMULATION_SEED` selects one seed, with its captures.
    private static let environment = ProcessInfo.processInfo.environment

    private static var seeds: Range<UInt64> {
        if let seed = environment["SIMULATION_SEED"].flatMap(UInt64.init) { return seed..<(seed + 1) }
        let first = environment["SIMULATION_FIRST_SEED"].flatMap(UInt64.init) ?? 0
        return first..<(first + (environment["SIMULATION_SEEDS"].flatMap(UInt64.init) ?? 200))
    }

    /// Events that happen in many worlds. Some worlds do not have them.
    private static let commonEvents = [
        "channels opened", "links secured", "reports of trains", "synchronizations", "trains transferred",
        "concurrent reads on enhanced bearers", "values of subscriptions",
    ]

    /// Kinds of operations that succeed in many worlds.
    private static let commonOperations = [
        "connects to", "discovers", "discover", "read", "write", "write without response", "update parameters",
        "link control", "subscribe", "sends a value", "pair", "open channels", "write to a channel",
        "receive from a channel", "changes its train", "transfer a train", "transfers its train",
    ]

    /// Requires that the worlds have exercised what they check. A few worlds may exercise little.
    private func expectActivity(in summary: SeedRunner.Summary) {
        guard summary.seedCount >= 100 else { return }
        #expect(summary.operationCount > summary.errorCount)
        #expect(summary.deliveredCount > 0)
        let events = Self.commonEvents + Self.commonOperations.map(Ledger.successes)
        for event in events { #expect(summary.counts[event, default: 0] > 0, "\(event)") }
    }

    @Test("No leaks, consistent state, every operation ends, and every value was sent")
    func randomWorldsLeakNothingAndEveryOperationEnds() async {
        let summary = await SeedRunner.run(seeds: Self.seeds)
        print(
            "simulated \(summary.seedCount) worlds, \(summary.duration) of their time: \(summary.operationCount) operations, "
                + "\(summary.errorCount) of them ended in an error; \(summary.deliveredCount) values came"
        )
        for (event, count) in summary.counts.sorted(by: { $0.key < $1.key }) { print("\(event): \(count)") }
        expectActivity(in: summary)
        for failure in summary.failures.prefix(10) {
            Issue.record(
                """
                seed \(failure.seed): \(failure.violations.prefix(5).joined(separator: "\n"))
                again, with captures: make simulate SEED=\(failure.seed)
                """
            )
        }
        if summary.failures.count > 10 { Issue.record("\(summary.failures.count) seeds failed") }
        if let seed = Self.environment["SIMULATION_SEED"].flatMap(UInt64.init) { writeCaptures(of: seed) }
    }

    private func writeCaptures(of seed: UInt64) {
        let directory = Self.environment["SIMULATION_CAPTURES"] ?? ".build/simulation"
        let outcome = Simulation.run(seed: seed, recordsCaptures: true, isVerbose: true)
        do {
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            for capture in outcome.captures {
                let path = "\(directory)/seed\(seed)-\(capture.name).btsnoop"
                try Data(capture.bytes).write(to: URL(fileURLWithPath: path))
                print("wrote \(path)")
            }
        } catch {
            Issue.record("the captures could not be written: \(error)")
        }
    }

    @Test("The same seed gives the same captures, byte by byte", arguments: [1, 2, 3, 4, 5, 6, 7, 8] as [UInt64])
    func sameSeedGivesTheSameCaptures(seed: UInt64) {
        let first = Simulation.run(seed: seed, recordsCaptures: true)
        let second = Simulation.run(seed: seed, recordsCaptures: true)
        #expect(first.captures.contains { $0.bytes.count > 1000 })
        #expect(first.captures.map(\.name) == second.captures.map(\.name))
        for (one, other) in zip(first.captures, second.captures) {
            #expect(one.bytes == other.bytes, "\(one.name): \(one.bytes.count) and \(other.bytes.count) bytes")
        }
    }
}
