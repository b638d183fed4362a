import BLE
import BluetoothHost
import BluetoothTypes
import Synchronization

extension SimulatedEventLoop {
    /// Runs `body` and all work on the loop in this thread until `body` returns.
    ///
    /// - Parameters:
    ///   - limit: maximum time of the loop.
    ///   - isAbandoned: whether to stop waiting for `body`; its task is then cancelled.
    ///   - whatIsAwaited: the pending operations, one line each, if `body` has not returned.
    /// - Throws: any error of `body`; ``UnfinishedRun`` if it has not returned. Its task is then cancelled. A task that
    ///   ignores the cancellation stays unfinished.
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
        let end = run(until: now + limit) {
            let isAbandoned = isAbandoned()
            return outcome.isSet || isAbandoned
        }
        if let result = outcome.value { return try result.get() }
        let error = UnfinishedRun(
            limit: limit,
            turnsAtOneInstant: end == .turnLimit ? turnLimit : nil,
            awaited: whatIsAwaited()
        )
        task.cancel()
        run(limit: .seconds(60)) { outcome.isSet }
        throw error
    }

    /// The pending operations of adapters on the loop, one line each, after the adapter's name. Called while no thread
    /// runs the loop.
    func whatIsAwaited(by adapters: [(name: String, adapter: Adapter)]) -> [String] {
        var lines: [String] = []
        // A host is used on its loop only.
        run(limit: .zero) {
            for (name, adapter) in adapters {
                lines += adapter.host.assumeIsolated { $0.whatIsAwaited() }.map { "\(name): \($0)" }
            }
            return true
        }
        return lines
    }
}

/// The outcome of a body. Written once, in the loop's thread.
private final class Outcome<Value: Sendable>: Sendable {
    private let state = Mutex<Result<Value, any Error>?>(nil)
    /// Whether there is a value. The loop reads it before each turn.
    private let hasValue = Atomic(false)

    var value: Result<Value, any Error>? { state.withLock { $0 } }

    var isSet: Bool { hasValue.load(ordering: .acquiring) }

    func set(_ result: Result<Value, any Error>) {
        state.withLock { $0 = result }
        hasValue.store(true, ordering: .releasing)
    }
}
