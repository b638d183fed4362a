/// The connections that a gateway can make.
public struct ConnectionSlots: Hashable, Sendable {
    /// The number of further connections. It is 0 while no adapter can be used.
    public var free: Int
    /// The greatest number of connections at one time.
    public var limit: Int

    /// Creates slots.
    public init(free: Int, limit: Int) {
        self.free = free
        self.limit = limit
    }

    /// An adapter that can be used.
    struct Adapter {
        /// The number of connections that it can hold at one time; nil if it is not known.
        var capacity: Int?
        /// The number of connections through it.
        var usedCount: Int

        /// The number of further connections that it can hold; nil if it is not known.
        var freeCount: Int? { capacity.map { max(0, $0 - usedCount) } }
    }

    /// Counts slots.
    ///
    /// - Parameters:
    ///   - configuredLimit: the limit over all adapters.
    ///   - usedCount: the number of connections, also of those through other adapters.
    ///   - adapters: the adapters that can be used.
    init(configuredLimit: Int, usedCount: Int, adapters: [Adapter]) {
        // While no adapter can be used, the limit is the configured one: what the next adapter holds is not known.
        let capacity = adapters.isEmpty ? nil : adapters.reduce(0) { $0 + ($1.capacity ?? configuredLimit) }
        let room = adapters.reduce(0) { $0 + ($1.freeCount ?? configuredLimit) }
        limit = min(configuredLimit, capacity ?? configuredLimit)
        free = max(0, min(configuredLimit - usedCount, room))
    }

    /// The slots as one line of JSON, without its line break.
    public var json: String { "{\"free\": \(free), \"limit\": \(limit)}" }
}
