/// The bytes that may wait to be written on several transports together.
///
/// Belongs to the one queue on which all of these transports work.
package final class BacklogBudget: @unchecked Sendable {
    // @unchecked: used on one queue only.

    /// In bytes.
    package let limit: Int
    /// How many bytes wait now.
    package private(set) var used = 0

    package init(limit: Int) {
        self.limit = limit
    }

    /// Reserves `count` bytes; false where fewer are left, and then nothing is reserved.
    func take(_ count: Int) -> Bool {
        guard used + count <= limit else { return false }
        used += count
        return true
    }

    func release(_ count: Int) {
        used -= count
    }
}
