import BluetoothTypes
import Synchronization

/// The submitted values of each characteristic that clients have yet to take. One caller at a time waits for space.
final class PendingValues: Sendable {
    private struct State {
        var counts: [AttributeHandle: Int] = [:]
        var waiter: CheckedContinuation<Void, Never>?
    }

    /// Maximum number for one characteristic.
    static let limit = 256

    private let state = Mutex(State())

    /// Counts a value, which must be followed by ``end(_:)``. If ``limit`` values of the characteristic are pending,
    /// waits until one is taken.
    ///
    /// - Throws: `CancellationError`.
    func begin(_ handle: AttributeHandle) async throws {
        while !count(handle) {
            try Task.checkCancellation()
            await waitForRoom(handle)
        }
    }

    private func count(_ handle: AttributeHandle) -> Bool {
        state.withLock { state in
            guard state.counts[handle, default: 0] < PendingValues.limit else { return false }
            state.counts[handle, default: 0] += 1
            return true
        }
    }

    private func waitForRoom(_ handle: AttributeHandle) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let hasToWait = state.withLock { state in
                    guard !Task.isCancelled, state.counts[handle, default: 0] >= PendingValues.limit else {
                        return false
                    }
                    state.waiter = continuation
                    return true
                }
                if !hasToWait { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiter.take() }?.resume()
        }
    }

    /// A value was taken, or its clients have disconnected.
    func end(_ handle: AttributeHandle) {
        let waiter = state.withLock { state in
            state.counts[handle, default: 0] -= 1
            if state.counts[handle] == 0 { state.counts[handle] = nil }
            return state.waiter.take()
        }
        waiter?.resume()
    }
}
