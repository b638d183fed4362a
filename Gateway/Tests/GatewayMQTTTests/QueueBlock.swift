import Dispatch
import Synchronization

/// Blocks the queue of a publisher, like a slow disk. The queue asks it for the time.
final class QueueBlock: Sendable {
    private let isRequested = Atomic(false)
    private let hasBegun = Atomic(false)
    private let release = DispatchSemaphore(value: 0)

    /// Whether the queue was blocked.
    var isBlocked: Bool { hasBegun.load(ordering: .acquiring) }

    /// Returns the time, which is always the same. Blocks if this is requested, until ``end()``, or for five minutes.
    func time() -> Duration {
        if isRequested.exchange(false, ordering: .acquiringAndReleasing) {
            hasBegun.store(true, ordering: .releasing)
            _ = release.wait(timeout: .now() + .seconds(300))
        }
        return .zero
    }

    /// Blocks the queue when it asks for the time the next time.
    func request() { isRequested.store(true, ordering: .releasing) }

    func end() { release.signal() }
}
