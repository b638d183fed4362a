import BLE
import Synchronization

/// A source of events for any number of sequences. Each sequence has its own buffer.
final class Broadcast<Element: Sendable>: Sendable {
    private struct Listener {
        let key: UInt64
        let buffer: AsyncEventBuffer<Element, Never>
        /// The object that the events are about; nil for any.
        let subject: (any AnyObject & Sendable)?
        let isWanted: @Sendable (Element) -> Bool
    }

    private struct State {
        var lastKey: UInt64 = 0
        var listeners: [Listener] = []
    }

    private let state = Mutex(State())

    deinit {
        finish()
    }

    /// Ends all sequences.
    func finish() {
        for listener in state.withLock({ $0.listeners }) { listener.buffer.finish() }
    }

    /// Ends the sequences whose subject has no more events.
    func finish(where hasEnded: (AnyObject) -> Bool) {
        for listener in state.withLock({ $0.listeners }) {
            if let subject = listener.subject, hasEnded(subject) { listener.buffer.finish() }
        }
    }

    /// The number of sequences that exist.
    var count: Int { state.withLock { $0.listeners.count } }

    /// Creates a sequence of the events from now on.
    ///
    /// - Parameters:
    ///   - limit: maximum number of events that wait for a reader, at least 1. If more arrive, the oldest are dropped.
    ///   - report: how the reader learns of dropped events.
    ///   - first: an event that precedes all others; nil for none.
    ///   - subject: the object that the events are about, for ``finish(where:)``.
    ///   - isWanted: chooses the events.
    func sequence(
        limit: Int,
        report: AsyncEventBuffer<Element, Never>.OverflowReport = .none,
        first: Element? = nil,
        about subject: (any AnyObject & Sendable)? = nil,
        where isWanted: @escaping @Sendable (Element) -> Bool = { _ in true }
    ) -> Events<Element> {
        let buffer = AsyncEventBuffer<Element, Never>(limit: limit, report: report)
        if let first { buffer.append(first) }
        let key = state.withLock { state in
            state.lastKey += 1
            state.listeners.append(Listener(key: state.lastKey, buffer: buffer, subject: subject, isWanted: isWanted))
            return state.lastKey
        }
        let registration = Registration { [weak self] in
            self?.state.withLock { state in state.listeners.removeAll { $0.key == key } }
        }
        return Events(buffer: buffer, registration: registration)
    }

    func send(_ element: Element) {
        for listener in state.withLock({ $0.listeners }) where listener.isWanted(element) {
            listener.buffer.append(element)
        }
    }
}
