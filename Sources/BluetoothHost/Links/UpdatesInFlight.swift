import BluetoothTypes
import DequeModule

/// The values to several clients for which callers wait, the oldest first.
///
/// A caller waits for each client, so that a slow one delays the values for the others and misses none. It waits for a
/// limited time, so that a client that takes nothing does not stop the others.
struct UpdatesInFlight {
    struct Update {
        let broadcast: Broadcast
        /// The links whose clients the caller waits for.
        let links: [LinkIdentifier]
        /// When the caller no longer waits.
        let deadline: Instant
    }

    /// How long a caller waits for a client. With 16 values in flight, a client that takes two each second is in time:
    /// for example, one that confirms indications on a link with an interval of 240 ms.
    static let timeout = Duration.seconds(10)

    private var updates = Deque<Update>()
    /// Whether the timer for ``deadline`` is set. A timer that is due earlier stays.
    var hasTimer = false

    /// The number of values for which callers wait.
    var count: Int { updates.count { !$0.broadcast.hasEnded } }

    /// When a caller no longer waits; nil if none does. Values that all clients have taken since may count.
    var deadline: Instant? { updates.first?.deadline }

    /// Adds a value, whose deadline is not before those of the values that are already in flight.
    mutating func append(_ update: Update) {
        while let first = updates.first, first.broadcast.hasEnded { updates.removeFirst() }
        updates.append(update)
    }

    /// The values for which callers have waited long enough.
    func due(at now: Instant) -> some Sequence<Update> {
        updates.prefix { $0.deadline <= now }
    }

    /// Removes the values that meet a condition.
    mutating func remove(where isRemoved: (Update) -> Bool) -> [Update] {
        let removed = updates.filter(isRemoved)
        updates.removeAll(where: isRemoved)
        return Array(removed)
    }

    /// Removes all values. The caller releases the closures of apps.
    mutating func removeAll() -> [Update] {
        defer { updates.removeAll() }
        return Array(updates)
    }
}
