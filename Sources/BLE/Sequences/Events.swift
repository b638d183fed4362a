/// Events in the order in which they happened.
///
/// The sequence ends when the adapter is closed. Its lifetime, several readers, cancellation and overflow are described
/// in <doc:EventSequences>. If the events have a case `eventsDropped(count)`, it reports dropped events in their place.
public struct Events<Element: Sendable>: AsyncSequence, Sendable {
    // The closures are created where `Element` is a concrete type. So the buffer's code is specialized, also when an
    // app in another module iterates. Unspecialized code would look up type metadata on each call.

    /// Takes the next event from the buffer, if there is one.
    @usableFromInline
    let takeReady: @Sendable () -> Element?
    /// Takes the next event from the buffer, and waits for it if there is none.
    @usableFromInline
    let takeNext: nonisolated(nonsending) @Sendable () async -> Element?
    private let buffer: AsyncEventBuffer<Element, Never>
    private let registration: Registration

    @inline(__always)
    package init(buffer: AsyncEventBuffer<Element, Never>, registration: Registration) {
        self.buffer = buffer
        self.registration = registration
        takeReady = { buffer.takeReady() }
        takeNext = { await buffer.next() }
    }

    /// The number of events that were dropped because the reader was too slow.
    public var droppedCount: Int { buffer.droppedCount }

    @inlinable
    public func makeAsyncIterator() -> Iterator {
        Iterator(events: self)
    }

    /// An iteration of ``Events``.
    public struct Iterator: AsyncIteratorProtocol {
        /// Keeps the registration alive.
        @usableFromInline
        let events: Events

        @inlinable
        init(events: Events) {
            self.events = events
        }

        @inlinable
        public mutating func next() async -> Element? {
            await next(isolation: nil)
        }

        @inlinable
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Element? {
            if let event = events.takeReady() { return event }
            return await events.takeNext()
        }
    }
}

/// A registration with the host that ends when the last reference to it is released.
///
/// The host keeps the closures of the registration, but not the registration itself. So a sequence that is released,
/// iterated or not, leaves nothing behind.
package final class Registration: Sendable {
    private let cancel: @Sendable () -> Void

    /// - Parameter cancel: called once, on the thread that releases the last reference.
    package init(cancel: @escaping @Sendable () -> Void) {
        self.cancel = cancel
    }

    deinit {
        cancel()
    }
}
