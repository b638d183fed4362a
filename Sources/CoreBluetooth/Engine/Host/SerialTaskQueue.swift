import BluetoothHost

/// A queue of asynchronous work, which runs one item after the other in the order of submission. Used on the loop only.
final class SerialTaskQueue: @unchecked Sendable {
    typealias Work = @Sendable (isolated BluetoothHost) async -> Void

    private var waiting: [Work] = []
    private var isRunning = false

    func add(on host: isolated BluetoothHost, _ work: @escaping Work) {
        waiting.append(work)
        guard !isRunning else { return }
        isRunning = true
        host.spawn { await self.run(on: $0) }
    }

    private func run(on host: isolated BluetoothHost) async {
        while !waiting.isEmpty {
            let batch = waiting
            waiting = []
            for work in batch { await work(host) }
        }
        isRunning = false
    }
}
