import Synchronization

/// Carries elements from the host's loop to one task, in batches: posting never waits, and the oldest are dropped where the
/// task does not keep up.
final class Mailbox<Element: Sendable, Failure: Error>: Sendable {
    /// What was in the mailbox.
    enum Delivery: Sendable {
        case batch
        case end(Failure?)
    }

    private struct State {
        var elements: [Element] = []
        var dropped = 0
        var end: Failure??
        var waiter: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())
    private let limit: Int

    /// - Parameter limit: how many elements wait at the most.
    init(limit: Int) {
        self.limit = limit
    }

    /// How many elements were dropped because nobody took them in time.
    var droppedCount: Int { state.withLock { $0.dropped } }

    func post(_ element: Element) {
        let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard state.end == nil else { return nil }
            if state.elements.count >= limit {
                // Half at once: dropping one at a time would move all the others each time.
                state.dropped += limit / 2
                state.elements.removeFirst(limit / 2)
            }
            state.elements.append(element)
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    /// Ends the mailbox once what is in it has been taken.
    func finish(_ failure: Failure? = nil) {
        let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
            if state.end == nil { state.end = .some(failure) }
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    /// Takes all that is there, or the oldest of it, waiting for something where nothing is. A cancelled task gets the end.
    ///
    /// - Parameter batch: is emptied, filled with what was taken, and its memory used again.
    nonisolated(nonsending) func take(
        atMost count: Int = .max,
        into batch: inout [Element]
    ) async -> Delivery {
        batch.removeAll(keepingCapacity: true)
        while !Task.isCancelled {
            if let delivery = takeNow(atMost: count, into: &batch) { return delivery }
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    let isReady = state.withLock { state -> Bool in
                        if !state.elements.isEmpty || state.end != nil || Task.isCancelled { return true }
                        state.waiter = continuation
                        return false
                    }
                    if isReady { continuation.resume() }
                }
            } onCancel: {
                let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
                    defer { state.waiter = nil }
                    return state.waiter
                }
                waiter?.resume()
            }
        }
        return .end(nil)
    }

    private func takeNow(atMost count: Int, into batch: inout [Element]) -> Delivery? {
        state.withLock { state in
            if !state.elements.isEmpty {
                if state.elements.count <= count {
                    swap(&batch, &state.elements)
                } else {
                    batch += state.elements.prefix(count)
                    state.elements.removeFirst(count)
                }
                return .batch
            }
            return state.end.map { .end($0) }
        }
    }
}

/// Walks a mailbox, a batch at a time; when it is let go, what fed the mailbox is stopped.
final class MailboxIterator<Element: Sendable, Failure: Error> {
    private let mailbox: Mailbox<Element, Failure>
    private let onTermination: @Sendable () -> Void
    private var batch: [Element] = []
    private var position = 0
    private var isFinished = false

    init(_ mailbox: Mailbox<Element, Failure>, onTermination: @escaping @Sendable () -> Void) {
        self.mailbox = mailbox
        self.onTermination = onTermination
    }

    deinit {
        if !isFinished { onTermination() }
    }

    func next(isolation: isolated (any Actor)?) async throws(Failure) -> Element? {
        while position == batch.count {
            guard !isFinished else { return nil }
            var taken: [Element] = []
            swap(&taken, &batch)
            position = 0
            let delivery = await mailbox.take(into: &taken)
            batch = taken
            switch delivery {
            case .batch: break
            case .end(let failure):
                isFinished = true
                onTermination()
                if let failure { throw failure }
                return nil
            }
        }
        defer { position += 1 }
        return batch[position]
    }
}

/// Events in the order in which they happened, for one task. The oldest are dropped where the task does not keep up.
public struct Events<Element: Sendable>: AsyncSequence, Sendable {
    let mailbox: Mailbox<Element, Never>
    let onTermination: @Sendable () -> Void

    /// How many events were dropped because they were not taken in time.
    public var droppedCount: Int { mailbox.droppedCount }

    public func makeAsyncIterator() -> Iterator {
        Iterator(base: MailboxIterator(mailbox, onTermination: onTermination))
    }

    public struct Iterator: AsyncIteratorProtocol {
        let base: MailboxIterator<Element, Never>

        public mutating func next() async -> Element? {
            await base.next(isolation: nil)
        }

        public mutating func next(isolation actor: isolated (any Actor)?) async -> Element? {
            await base.next(isolation: actor)
        }
    }
}
