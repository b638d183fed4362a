/// An executor with one thread, for tasks that wait.
private final class WaitQueue: TaskExecutor, @unchecked Sendable {
    // @unchecked: only the thread that calls `run` uses the queue. Its tasks run on it.

    private var jobs: [UnownedJob] = []
    private var continuation: UnsafeContinuation<Void, Never>?

    func enqueue(_ job: consuming ExecutorJob) {
        jobs.append(UnownedJob(job))
    }

    /// Suspends the current task until the queue has no other job.
    @inline(never)
    nonisolated(nonsending) func wait() async {
        await withUnsafeContinuation { continuation = $0 }
    }

    /// Does the same as ``wait()``, with a handler of the task's cancellation.
    @inline(never)
    nonisolated(nonsending) func waitUnlessCancelled() async {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation = $0 }
        } onCancel: {
            resume()
        }
    }

    private func resume() {
        guard let waiting = continuation else { return }
        continuation = nil
        waiting.resume()
    }

    /// Runs all jobs, and resumes the task that waits, until neither is left.
    func run() {
        repeat {
            while let job = jobs.popLast() { job.runSynchronously(on: asUnownedTaskExecutor()) }
            resume()
        } while !jobs.isEmpty
    }
}

extension BenchmarkCase {
    /// The minimum cost of a call with a result: its task is suspended once and resumed.
    static var runtime: [BenchmarkCase] {
        [
            wait("runtime/wait") { await $0.wait() },
            wait("runtime/cancellable-wait") { await $0.waitUnlessCancelled() },
        ]
    }

    private static func wait(
        _ name: String,
        _ wait: @escaping @Sendable (WaitQueue) async -> Void
    ) -> BenchmarkCase {
        BenchmarkCase(name, operations: 50_000) { operations, meter in
            let queue = WaitQueue()
            Task(executorPreference: queue) {
                for _ in 0..<16 { await wait(queue) }
                meter.start()
                for _ in 0..<operations { await wait(queue) }
                meter.stop()
            }
            queue.run()
        }
    }
}
