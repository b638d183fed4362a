import BluetoothHost
import Synchronization

extension SimulatedEventLoop {
    /// Runs `body` in this thread, with all that happens on the loop meanwhile, until it returns.
    ///
    /// - Parameters:
    ///   - limit: how much of the loop's time it may take.
    ///   - isAbandoned: whether there is no use in waiting for it any more; its task is cancelled then.
    ///   - whatIsAwaited: what it waits for where it has not returned, a line each.
    /// - Throws: what `body` throws; ``UnfinishedRun`` where it has not returned.
    func run<Value: Sendable>(
        limit: Duration,
        isAbandoned: () -> Bool = { false },
        whatIsAwaited: () -> [String],
        body: @escaping @Sendable () async throws -> Value
    ) throws -> Value {
        let outcome = Outcome<Value>()
        let task = Task(executorPreference: taskExecutor) {
            do {
                outcome.set(.success(try await body()))
            } catch {
                outcome.set(.failure(error))
            }
        }
        _ = run(limit: limit) {
            let isAbandoned = isAbandoned()
            return outcome.isSet || isAbandoned
        }
        if let result = outcome.value { return try result.get() }
        let error = UnfinishedRun(limit: limit, awaited: whatIsAwaited())
        task.cancel()
        run(limit: .seconds(60)) { outcome.isSet }
        throw error
    }
}

/// What a body has come to. Written once, in the loop's thread.
private final class Outcome<Value: Sendable>: Sendable {
    private let state = Mutex<Result<Value, any Error>?>(nil)
    /// For who asks after each turn of the loop.
    private let hasValue = Atomic(false)

    var value: Result<Value, any Error>? { state.withLock { $0 } }

    var isSet: Bool { hasValue.load(ordering: .acquiring) }

    func set(_ result: Result<Value, any Error>) {
        state.withLock { $0 = result }
        hasValue.store(true, ordering: .releasing)
    }
}
