/// Names an entry of a ``SlotTable``.
struct SlotToken: Hashable, Sendable {
    /// The place of the entry.
    let index: UInt32
    /// Tells the entry from earlier entries in its place.
    let generation: UInt32
}

/// Names a suspended call of an app; see ``CallTable``.
typealias CallToken = SlotToken

/// Names the closures of an app that observe a channel; see ``ChannelObserver``.
typealias ObserverToken = SlotToken
