import BluetoothHost
import DequeModule
import Synchronization

/// The host's events for a channel, and the tasks that wait for them.
final class ChannelSignals: Sendable {
    enum Wait: Sendable {
        case done
        case cancelled
    }

    private enum Condition {
        case data
        /// The host has reported available space more often than this.
        case room(UInt64)
        case end
    }

    private struct Waiter {
        let identifier: UInt64
        let condition: Condition
        let continuation: CheckedContinuation<Wait, Never>
    }

    private struct State {
        var isReadable = false
        /// Number of times that the host has reported available space. If this were a flag, one of two writers could
        /// clear it while the other waits for it.
        var roomCount: UInt64 = 0
        var end: ChannelEnd?
        /// SDUs received from the host that no reader has taken yet.
        var units = Deque<[UInt8]>()
        var waiters: [Waiter] = []
        var nextIdentifier: UInt64 = 0

        func isMet(_ condition: Condition) -> Bool {
            switch condition {
            case .data: isReadable || !units.isEmpty || end != nil
            case .room(let count): roomCount > count || end != nil
            case .end: end != nil
            }
        }
    }

    private let state = Mutex(State())

    var end: ChannelEnd? { state.withLock { $0.end } }

    /// Handles an event of the host.
    func take(_ event: HostChannelEvent) {
        update { state in
            switch event {
            case .readable: state.isReadable = true
            case .hasRoom: state.roomCount += 1
            case .peerReconfigured: break
            case .ended(let end, let unread):
                state.end = end
                state.units += unread
            }
        }
    }

    /// Clears the readable flag before a read from the host.
    func willRead() { state.withLock { $0.isReadable = false } }

    /// Number of times that the host has reported available space so far. A writer reads it before it sends.
    var roomCount: UInt64 { state.withLock { $0.roomCount } }

    /// Stores SDUs received from the host.
    func add(_ units: [[UInt8]]) {
        guard !units.isEmpty else { return }
        update { $0.units += units }
    }

    func takeUnit() -> [UInt8]? { state.withLock { $0.units.popFirst() } }

    /// Waits until data can be read, or the channel has ended.
    func waitForData() async -> Wait { await wait(for: .data) }

    /// Waits until the host reports available space again, or the channel has ended.
    ///
    /// - Parameter count: the value of ``roomCount`` before the writer sent.
    func waitForRoom(after count: UInt64) async -> Wait { await wait(for: .room(count)) }

    func waitForEnd() async -> Wait { await wait(for: .end) }

    private func update(_ change: (inout State) -> Void) {
        let resumed = state.withLock { state in
            change(&state)
            let waiters = state.waiters
            state.waiters = waiters.filter { !state.isMet($0.condition) }
            return waiters.filter { state.isMet($0.condition) }
        }
        for waiter in resumed { waiter.continuation.resume(returning: .done) }
    }

    private func wait(for condition: Condition) async -> Wait {
        let identifier = state.withLock { state in
            state.nextIdentifier += 1
            return state.nextIdentifier
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let outcome = state.withLock { state -> Wait? in
                    if state.isMet(condition) { return .done }
                    if Task.isCancelled { return .cancelled }
                    state.waiters.append(
                        Waiter(identifier: identifier, condition: condition, continuation: continuation)
                    )
                    return nil
                }
                if let outcome { continuation.resume(returning: outcome) }
            }
        } onCancel: {
            let waiter = state.withLock { state -> Waiter? in
                guard let index = state.waiters.firstIndex(where: { $0.identifier == identifier }) else { return nil }
                return state.waiters.remove(at: index)
            }
            waiter?.continuation.resume(returning: .cancelled)
        }
    }
}
