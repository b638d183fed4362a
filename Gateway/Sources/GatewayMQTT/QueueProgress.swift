import Dispatch
import Synchronization

/// Finds out whether a queue performs its work.
///
/// The time that the queue, or a thread for which it waits, spends in a store does not count. A slow disk may hold the
/// queue for minutes, and a restart of the program would not make the disk faster. One thread at a time uses the store.
package final class QueueProgress: Sendable {
    private struct State {
        var usesStore = false
        /// The calls that wait for an answer. A stream that finishes ends the call.
        var calls: [AsyncStream<Void>.Continuation] = []

        mutating func endCalls() {
            for call in calls { call.finish() }
            calls = []
        }
    }

    private let state = Mutex(State())

    package init() {}

    /// Whether the store is used now.
    var usesStore: Bool { state.withLock(\.usesStore) }

    /// Returns once the queue has performed its earlier work, or the store is used, or the task is cancelled.
    package func answer(of queue: DispatchQueue) async {
        let (stream, call) = AsyncStream.makeStream(of: Void.self)
        add(call)
        queue.async { self.state.withLock { $0.endCalls() } }
        for await _ in stream {}
    }

    /// Adds a call, which ends at once if the store is used.
    func add(_ call: AsyncStream<Void>.Continuation) {
        state.withLock { state in
            state.calls.append(call)
            if state.usesStore { state.endCalls() }
        }
    }

    /// Records that the store is used, until ``endStoreUse()``. Ends the calls that wait.
    package func beginStoreUse() {
        state.withLock { state in
            state.usesStore = true
            state.endCalls()
        }
    }

    /// Records that the store is not used any more.
    package func endStoreUse() {
        state.withLock { $0.usesStore = false }
    }
}
