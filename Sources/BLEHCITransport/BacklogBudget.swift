import Synchronization

/// A limit for the bytes that wait to be written on several transports together. Thread-safe.
package final class BacklogBudget: Sendable {
    /// The limit, in bytes.
    package let limit: Int
    private let reserved = Atomic(0)

    package init(limit: Int) {
        self.limit = limit
    }

    /// Reserves `count` bytes. Returns false, and reserves nothing, if fewer are left.
    func take(_ count: Int) -> Bool {
        if reserved.add(count, ordering: .relaxed).newValue <= limit { return true }
        release(count)
        return false
    }

    func release(_ count: Int) {
        reserved.subtract(count, ordering: .relaxed)
    }
}
