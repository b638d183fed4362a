import Dispatch
import Synchronization

/// Finds out whether a publisher's queue performs its work.
///
/// The time that the queue spends in the store does not count. A slow disk may hold the queue for minutes, and a
/// restart of the gateway would not make the disk faster.
final class QueueProgress: Sendable {
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

    /// Whether the queue uses the store now.
    var usesStore: Bool { state.withLock(\.usesStore) }

    /// Returns once the queue has performed its earlier work, or uses the store, or the task is cancelled.
    func answer(of queue: DispatchQueue) async {
        let (stream, call) = AsyncStream.makeStream(of: Void.self)
        add(call)
        queue.async { self.state.withLock { $0.endCalls() } }
        for await _ in stream {}
    }

    /// Adds a call, which ends at once if the queue uses the store.
    func add(_ call: AsyncStream<Void>.Continuation) {
        state.withLock { state in
            state.calls.append(call)
            if state.usesStore { state.endCalls() }
        }
    }

    /// Records that the queue uses the store, until ``endStoreUse()``. Ends the calls that wait.
    func beginStoreUse() {
        state.withLock { state in
            state.usesStore = true
            state.endCalls()
        }
    }

    func endStoreUse() {
        state.withLock { $0.usesStore = false }
    }
}
