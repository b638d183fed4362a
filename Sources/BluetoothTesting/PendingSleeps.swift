import BLEHCITransport
import BluetoothHost
import BluetoothTypes
import Synchronization

/// Tasks that wait for a time of a world.
final class PendingSleeps: Sendable {
    private struct PendingSleep {
        let deadline: Instant
        let caller: String
        let continuation: CheckedContinuation<Void, any Error>
        /// Tasks of the world are cancelled on the loop too.
        let alarm: LoopConfined<any Alarm>
    }

    private struct State {
        var sleeps: [UInt64: PendingSleep] = [:]
        var lastIdentifier: UInt64 = 0
    }

    private let loop: SimulatedEventLoop
    private let state = Mutex(State())

    init(loop: SimulatedEventLoop) {
        self.loop = loop
    }

    /// The waiting tasks with their deadlines, the earliest deadline first.
    var all: [(deadline: Instant, caller: String)] {
        state.withLock { state in
            state.sleeps.sorted { ($0.value.deadline, $0.key) < ($1.value.deadline, $1.key) }
                .map { ($0.value.deadline, $0.value.caller) }
        }
    }

    func sleep(until deadline: Instant, caller: String) async throws {
        let identifier = state.withLock { state in
            state.lastIdentifier += 1
            return state.lastIdentifier
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let alarm = loop.makeAlarm { [weak self] in self?.wake(identifier, .success(())) }
                let pending = PendingSleep(
                    deadline: deadline,
                    caller: caller,
                    continuation: continuation,
                    alarm: LoopConfined(alarm, to: loop)
                )
                state.withLock { $0.sleeps[identifier] = pending }
                alarm.set(deadline)
                // If the task was cancelled before, its handler has already run.
                if Task.isCancelled { wake(identifier, .failure(CancellationError())) }
            }
        } onCancel: {
            wake(identifier, .failure(CancellationError()))
        }
    }

    /// Ends all waits, in the order in which they began. Their tasks get a `CancellationError`.
    func cancelAll() {
        for identifier in state.withLock({ $0.sleeps.keys.sorted() }) {
            wake(identifier, .failure(CancellationError()))
        }
    }

    private func wake(_ identifier: UInt64, _ result: Result<Void, any Error>) {
        guard let pending = state.withLock({ $0.sleeps.removeValue(forKey: identifier) }) else { return }
        pending.alarm.value.set(nil)
        pending.continuation.resume(with: result)
    }
}
