import Synchronization

/// Counts received values and writes.
public final class Counter: Sendable {
    @usableFromInline let value = Atomic(0)

    public init() {}

    @inlinable
    public func increment() { value.add(1, ordering: .relaxed) }

    /// Returns the count since the last call.
    public func take() -> Int { value.exchange(0, ordering: .relaxed) }
}
