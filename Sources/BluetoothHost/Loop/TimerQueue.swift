import BluetoothTypes
import HeapModule

/// The timers of one host: a heap that the host walks when its one alarm goes off.
///
/// Scheduling and firing cost O(log n). A cancelled timer stays in the heap, without its action, until its time comes.
struct TimerQueue {
    struct Token: Hashable {
        fileprivate let sequence: UInt64
    }

    private struct Entry: Comparable {
        let due: Instant
        let sequence: UInt64

        static func < (left: Entry, right: Entry) -> Bool {
            (left.due.nanoseconds, left.sequence) < (right.due.nanoseconds, right.sequence)
        }
    }

    private var entries = Heap<Entry>()
    private var actions: [UInt64: () -> Void] = [:]
    private var nextSequence: UInt64 = 0

    /// How many timers are set and not cancelled.
    var count: Int { actions.count }

    /// When the next timer is due.
    var nextDue: Instant? {
        mutating get {
            while let entry = entries.min, actions[entry.sequence] == nil { entries.removeMin() }
            return entries.min?.due
        }
    }

    mutating func schedule(at due: Instant, _ action: @escaping () -> Void) -> Token {
        nextSequence += 1
        entries.insert(Entry(due: due, sequence: nextSequence))
        actions[nextSequence] = action
        return Token(sequence: nextSequence)
    }

    mutating func cancel(_ token: Token?) {
        guard let token else { return }
        actions[token.sequence] = nil
    }

    mutating func cancelAll() {
        actions.removeAll()
        entries = Heap()
    }

    /// Takes the action of the next timer that is due at `now`, earliest first.
    mutating func takeDue(at now: Instant) -> (() -> Void)? {
        while let entry = entries.min, entry.due <= now {
            entries.removeMin()
            if let action = actions.removeValue(forKey: entry.sequence) { return action }
        }
        return nil
    }
}
