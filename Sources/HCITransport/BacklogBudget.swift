/// A limit for the bytes that wait to be written on several transports together.
///
/// All of these transports, and the budget itself, are used on one queue only.
package final class BacklogBudget: @unchecked Sendable {
    // @unchecked: used on one queue only.

    /// The limit, in bytes.
    package let limit: Int
    /// The number of bytes that wait now.
    package private(set) var used = 0

    package init(limit: Int) {
        self.limit = limit
    }

    /// Reserves `count` bytes. Returns false, and reserves nothing, if fewer are left.
    func take(_ count: Int) -> Bool {
        guard used + count <= limit else { return false }
        used += count
        return true
    }

    func release(_ count: Int) {
        used -= count
    }
}
