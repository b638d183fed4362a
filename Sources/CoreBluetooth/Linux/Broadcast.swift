/// Hands what happens to all sequences that were asked for, each with a buffer of its own.
final class Broadcast<Element: Sendable>: Sendable {
    private struct Listener {
        let continuation: AsyncStream<Element>.Continuation
        let isWanted: @Sendable (Element) -> Bool
        let missed: @Sendable () -> Void
    }

    private struct State {
        var nextKey: UInt64 = 0
        var listeners: [(key: UInt64, listener: Listener)] = []
    }

    private let state = Guarded(State())

    deinit {
        finish()
    }

    /// Ends the sequences that there are.
    func finish() {
        for (_, listener) in state.withLock({ $0.listeners }) { listener.continuation.finish() }
    }

    /// How many sequences are being read.
    var count: Int { state.withLock { $0.listeners.count } }

    /// What happens from now on, as far as it is wanted. Where the reader is slow, `limit` elements wait; what comes then is
    /// left out, and `missed` is called for each.
    func sequence(
        limit: Int,
        where isWanted: @escaping @Sendable (Element) -> Bool = { _ in true },
        missed: @escaping @Sendable () -> Void = {}
    ) -> AsyncStream<Element> {
        let (stream, continuation) = AsyncStream<Element>.makeStream(bufferingPolicy: .bufferingOldest(limit))
        let key = state.withLock { state in
            state.nextKey += 1
            let listener = Listener(continuation: continuation, isWanted: isWanted, missed: missed)
            state.listeners.append((state.nextKey, listener))
            return state.nextKey
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { state in state.listeners.removeAll { $0.key == key } }
        }
        return stream
    }

    func send(_ element: Element) {
        for (_, listener) in state.withLock({ $0.listeners }) where listener.isWanted(element) {
            if case .dropped = listener.continuation.yield(element) { listener.missed() }
        }
    }
}
