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

    /// Runs the seeds on that many threads.
    ///
    /// Prints each failure at once, and a line after each `progressInterval` worlds, so that a long run that is stopped
    /// has a result.
    static func run(seeds: Range<UInt64>, threads: Int = 2, progressInterval: Int = 1000) async -> Summary {
        let next = Mutex(seeds.lowerBound)
        let progress = Mutex((worldCount: 0, failureCount: 0))
        let report: @Sendable (Simulation.Outcome) -> Void = { outcome in
            progress.withLock { progress in
                progress.worldCount += 1
                if let violation = outcome.violations.first {
                    progress.failureCount += 1
                    print("seed \(outcome.seed): \(violation)")
                }
                guard progress.worldCount.isMultiple(of: progressInterval) else { return }
                print("simulated \(progress.worldCount) of \(seeds.count) worlds, \(progress.failureCount) failed")
                fflush(nil)
            }
        }
        let takeNext: @Sendable () -> UInt64? = {
            next.withLock { next in
                guard next < seeds.upperBound else { return nil }
                defer { next += 1 }
                return next
            }
        }
        return await withTaskGroup(of: Summary.self) { group in
            for _ in 0..<threads { group.addTask { await runOnThread(takeNext, report: report) } }
            var all = Summary()
            for await summary in group { all.add(summary) }
            all.failures.sort { $0.seed < $1.seed }
            return all
        }
    }

    private static func runOnThread(
        _ takeNext: @escaping @Sendable () -> UInt64?,
        report: @escaping @Sendable (Simulation.Outcome) -> Void
    ) async -> Summary {
        await withCheckedContinuation { continuation in
            let thread = Thread {
                var summary = Summary()
                while let seed = takeNext() {
                    let outcome = Simulation.run(seed: seed)
                    report(outcome)
                    summary.add(outcome)
                }
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
