import Foundation
import Synchronization

/// Runs many seeds on separate threads, so that the shared ones are not blocked.
enum SeedRunner {
    /// The combined results of many runs.
    struct Summary: Sendable {
        var seedCount = 0
        var failures: [Simulation.Outcome] = []
        var operationCount = 0
        var errorCount = 0
        var deliveredCount = 0
        var duration = Duration.zero
        var counts: [String: Int] = [:]
    }

    static func run(seeds: Range<UInt64>, threads: Int = 2) async -> Summary {
        let next = Mutex(seeds.lowerBound)
        let takeNext: @Sendable () -> UInt64? = {
            next.withLock { next in
                guard next < seeds.upperBound else { return nil }
                defer { next += 1 }
                return next
            }
        }
        return await withTaskGroup(of: Summary.self) { group in
            for _ in 0..<threads { group.addTask { await runOnThread(takeNext) } }
            var all = Summary()
            for await summary in group { all.add(summary) }
            all.failures.sort { $0.seed < $1.seed }
            return all
        }
    }

    private static func runOnThread(_ takeNext: @escaping @Sendable () -> UInt64?) async -> Summary {
        await withCheckedContinuation { continuation in
            let thread = Thread {
                var summary = Summary()
                while let seed = takeNext() { summary.add(Simulation.run(seed: seed)) }
                continuation.resume(returning: summary)
            }
            thread.stackSize = 8 << 20
            thread.start()
        }
    }
}

extension SeedRunner.Summary {
    mutating func add(_ outcome: Simulation.Outcome) {
        seedCount += 1
        if !outcome.violations.isEmpty { failures.append(outcome) }
        operationCount += outcome.operationCount
        errorCount += outcome.errorCount
        deliveredCount += outcome.deliveredCount
        duration += outcome.duration
        counts.merge(outcome.counts, uniquingKeysWith: +)
    }

    mutating func add(_ other: SeedRunner.Summary) {
        seedCount += other.seedCount
        failures += other.failures
        operationCount += other.operationCount
        errorCount += other.errorCount
        deliveredCount += other.deliveredCount
        duration += other.duration
        counts.merge(other.counts, uniquingKeysWith: +)
    }
}
