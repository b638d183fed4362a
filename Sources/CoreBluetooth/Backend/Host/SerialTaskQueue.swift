import BluetoothHost
import Synchronization

/// A queue of asynchronous work, which runs one item after the other in the order of submission.
final class SerialTaskQueue: Sendable {
    typealias Work = @Sendable (isolated BluetoothHost) async -> Void

    private struct State {
        var waiting: [Work] = []
        var isRunning = false

        /// Removes and returns the waiting work. If there is none, the queue stops running.
        mutating func takeWaiting() -> [Work] {
            defer { waiting = [] }
            isRunning = !waiting.isEmpty
            return waiting
        }
    }

    private let state = Mutex(State())

    func add(on host: isolated BluetoothHost, _ work: @escaping Work) {
        let mustStart = state.withLock { state in
            defer { state.isRunning = true }
            state.waiting.append(work)
            return !state.isRunning
        }
        if mustStart { host.spawn { await self.run(on: $0) } }
    }

    private func run(on host: isolated BluetoothHost) async {
        while case let batch = state.withLock({ $0.takeWaiting() }), !batch.isEmpty {
            for work in batch { await work(host) }
        }
    }
}
