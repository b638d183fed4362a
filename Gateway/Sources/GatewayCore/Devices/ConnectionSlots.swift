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

    /// The slots as one line of JSON, without its line break.
    public var json: String { "{\"free\": \(free), \"limit\": \(limit)}" }
}
