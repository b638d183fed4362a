import Dispatch

/// The kernel's adapters, now and after each change: when an adapter appears or disappears, changes its number, or is
/// brought up or down.
///
/// ```swift
/// for await inventory in AdapterMonitor() {
///     print(inventory.adapters.map(\.name))
/// }
/// ```
///
/// ## Overview
///
/// Each iteration is independent, and begins with the current inventory. A reader that is slow gets the newest
/// inventory and none of those between, so at most one waits. The iteration ends when its task is cancelled.
///
/// The kernel's management socket reports changes, for which no capability is needed. The inventory is also read every
/// 5 s: in some containers there is no such socket, and not every adapter that is brought up or down is reported.
public struct AdapterMonitor: AsyncSequence, Sendable {
    public typealias Element = AdapterInventory
    public typealias Failure = Never

    /// Where an iteration gets its inventories from.
    private let makeWatcher: @Sendable (_ report: @escaping @Sendable (AdapterInventory) -> Void) -> AdapterWatcher

    /// Creates a monitor of this machine's adapters.
    public init() {
        self.init { AdapterWatcher(report: $0) }
    }

    init(
        makeWatcher: @escaping @Sendable (_ report: @escaping @Sendable (AdapterInventory) -> Void) -> AdapterWatcher
    ) {
        self.makeWatcher = makeWatcher
    }

    public func makeAsyncIterator() -> Iterator {
        let (stream, continuation) = AsyncStream.makeStream(
            of: AdapterInventory.self,
            bufferingPolicy: .bufferingNewest(1)
        )
        let watcher = makeWatcher { continuation.yield($0) }
        continuation.onTermination = { _ in watcher.stop() }
        watcher.start()
        return Iterator(base: stream.makeAsyncIterator())
    }

    /// An iteration of an ``AdapterMonitor``.
    public struct Iterator: AsyncIteratorProtocol {
        var base: AsyncStream<AdapterInventory>.Iterator

        public mutating func next() async -> AdapterInventory? {
            await base.next()
        }

        public mutating func next(isolation actor: isolated (any Actor)?) async -> AdapterInventory? {
            await base.next(isolation: actor)
        }
    }
}
