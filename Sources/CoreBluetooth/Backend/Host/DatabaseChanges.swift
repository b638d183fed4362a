import BLEATT
import DequeModule

/// The changes of a peripheral's attributes on one link that its manager may not have handled yet.
///
/// Changes have rising numbers. A call of the app has the number of the last change that the manager has handled. If an
/// attribute of the call has changed since, the call is refused. The app does not know of the change, and another
/// attribute may have the handle now (Vol 3, Part G, 2.5.2).
struct DatabaseChanges {
    private struct Change {
        let number: UInt64
        let range: HandleRange
    }

    /// Maximum number of changes in ``changes``: as many as may wait for the manager.
    static let limit = CentralEvent.changeLimit

    /// The last changes, the oldest first.
    private var changes = Deque<Change>()
    /// The number of the last change before ``changes``; 0 if there was none.
    private var lastRemoved: UInt64 = 0

    /// Adds a change.
    ///
    /// - Parameter number: higher than those of the changes before.
    mutating func add(_ range: HandleRange, number: UInt64) {
        if changes.count == DatabaseChanges.limit, let oldest = changes.popFirst() { lastRemoved = oldest.number }
        changes.append(Change(number: number, range: range))
    }

    /// Returns whether an attribute in a range has changed after the change with a number. If too many changes followed
    /// that one, the attribute counts as changed.
    func affect(_ range: HandleRange, after number: UInt64) -> Bool {
        guard let last = changes.last, last.number > number else { return false }
        return number < lastRemoved || changes.contains { $0.number > number && $0.range.overlaps(range) }
    }
}
