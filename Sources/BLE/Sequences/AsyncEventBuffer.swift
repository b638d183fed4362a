import BluetoothHost
import DequeModule
import Synchronization

/// A bounded queue of elements from the host's loop for the tasks that iterate a sequence.
///
/// ## Overview
/// The host appends elements without waiting. On the loop, each element wakes the task that has waited longest in
/// ``receive()``, which takes it from the buffer. Iterators hold no elements, so no element is lost when an iterator is
/// dropped.
///
/// Tasks on other threads are woken at the end of the loop's turn (`ReaderQueue`), or earlier if the buffer is half
/// full or has 256 elements.
///
/// ## Overflow
/// If the buffer is full, the oldest element is dropped and counted. The reader learns of it in the stream, at the
/// place where elements are missing: see ``OverflowReport``.
///
/// ## End and cancellation
/// After ``finish(_:)``, readers get the remaining elements and then the end, each time they ask. A cancelled task gets
/// ``Delivery/cancelled`` at once; elements stay in the buffer for other tasks.
package final class AsyncEventBuffer<Element: Sendable, Failure: Error>: WakingReaders {
    package enum Delivery: Sendable {
        case element(Element)
        case end(Failure?)
        case cancelled
    }

    /// How a reader learns that elements were dropped.
    package enum OverflowReport: Sendable {
        /// Only ``AsyncEventBuffer/droppedCount`` reports them.
        case none
        /// A separate element takes their place.
        case element(@Sendable (_ droppedCount: Int) -> Element)
        /// By the first element after them.
        case mark(@Sendable (inout Element, _ droppedCount: Int) -> Void)
    }

    private struct State {
        var elements = Deque<Element>()
        var end: Failure??
        var droppedCount = 0
        /// How many of the dropped elements the reader has not learned of.
        var unreportedCount = 0
        /// The tasks that wait and that no element has woken yet, oldest first.
        var waiters = Deque<Waiter>()
        /// Whether the waiters are woken at the end of the loop's turn.
        var areWaitersQueued = false
        var lastTicket: UInt64 = 0

        mutating func next(_ report: OverflowReport) -> Delivery? {
            guard !elements.isEmpty else { return end.map { .end($0) } }
            guard unreportedCount > 0 else { return .element(elements.removeFirst()) }
            let count = unreportedCount
            unreportedCount = 0
            switch report {
            case .none:
                return .element(elements.removeFirst())
            case .element(let make):
                return .element(make(count))
            case .mark(let mark):
                var element = elements.removeFirst()
                mark(&element, count)
                return .element(element)
            }
        }
    }

    private let state = Mutex(State())
    private let limit: Int
    private let report: OverflowReport
    private let readers: ReaderQueue?
    /// With this number of elements, a reader is woken at once, not at the end of the turn.
    private let urgentCount: Int

    /// - Parameters:
    ///   - limit: the greatest number of elements in the buffer, at least 1.
    ///   - report: how readers learn of dropped elements.
    ///   - readers: the queue of the host that appends elements on its loop; nil if something else does.
    package init(limit: Int, report: OverflowReport, wakingBy readers: ReaderQueue? = nil) {
        self.limit = limit
        self.report = report
        self.readers = readers
        urgentCount = max(1, min(limit / 2, 256))
    }

    /// The number of elements that were dropped because the buffer was full.
    package var droppedCount: Int { state.withLock { $0.droppedCount } }

    /// The number of tasks that wait for an element.
    package var waiterCount: Int { state.withLock { $0.waiters.count } }

    /// Adds an element; does nothing after ``finish(_:)``.
    package func append(_ element: Element) {
        // A dropped element is released after the lock: its deinitializer may call the host.
        var dropped: Element?
        var isQueued = false
        let waiter = state.withLock { state -> Waiter? in
            guard state.end == nil else { return nil }
            if state.elements.count >= limit {
                dropped = state.elements.popFirst()
                state.droppedCount += 1
                state.unreportedCount += 1
            }
            state.elements.append(element)
            guard let first = state.waiters.first else { return nil }
            guard readers != nil, !first.isOnLoop, state.elements.count < urgentCount else {
                return state.waiters.popFirst()
            }
            isQueued = !state.areWaitersQueued
            state.areWaitersQueued = true
            return nil
        }
        unsafe waiter?.continuation.resume()
        if isQueued { readers?.wakeLater(self) }
        _ = dropped
    }

    package func wake() {
        var woken = Deque<Waiter>()
        state.withLock { state in
            state.areWaitersQueued = false
            if state.waiters.count <= state.elements.count {
                swap(&woken, &state.waiters)
            } else {
                for _ in 0..<state.elements.count { woken.append(state.waiters.removeFirst()) }
            }
        }
        for waiter in woken { unsafe waiter.continuation.resume() }
    }

    /// Ends the sequence after the elements that are in the buffer. The first call decides how.
    package func finish(_ failure: Failure? = nil) {
        let waiters = state.withLock { state -> Deque<Waiter> in
            guard state.end == nil else { return [] }
            state.end = .some(failure)
            defer { state.waiters = [] }
            return state.waiters
        }
        if !waiters.isEmpty { readers?.wakeAll() }
        for waiter in waiters { unsafe waiter.continuation.resume() }
    }

    /// Takes the next element, if there is one and the task is not cancelled. Otherwise call ``receive()``.
    ///
    /// Calls of asynchronous functions cost more than the element itself. So iterators try this function first.
    package func takeReady() -> Element? {
        guard !Task.isCancelled, case .element(let element)? = state.withLock({ $0.next(report) }) else { return nil }
        return element
    }

    /// Returns the next element or the end, and waits if there is neither.
    package nonisolated(nonsending) func receive() async -> Delivery {
        while !Task.isCancelled {
            if let delivery = state.withLock({ $0.next(report) }) { return delivery }
            await wait()
        }
        // An element may have woken this task, which does not take it.
        wakeNext()
        return .cancelled
    }

    /// Waits until there may be an element or the end, or until the task is cancelled.
    private nonisolated(nonsending) func wait() async {
        let ticket = state.withLock { state in
            state.lastTicket += 1
            return state.lastTicket
        }
        let isOnLoop = readers?.isOnLoop ?? false
        await withTaskCancellationHandler {
            unsafe await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
                let isWaiting = state.withLock { state in
                    // The handler may have run before there was anything to remove.
                    guard state.elements.isEmpty, state.end == nil, !Task.isCancelled else { return false }
                    unsafe state.waiters.append(Waiter(ticket: ticket, isOnLoop: isOnLoop, continuation: continuation))
                    return true
                }
                if !isWaiting { unsafe continuation.resume() }
            }
        } onCancel: {
            let waiter = state.withLock { state -> Waiter? in
                guard let index = state.waiters.firstIndex(where: { $0.ticket == ticket }) else { return nil }
                return state.waiters.remove(at: index)
            }
            unsafe waiter?.continuation.resume()
        }
    }

    /// Wakes the task that has waited longest, if there is an element for it.
    private func wakeNext() {
        let waiter = state.withLock { $0.elements.isEmpty ? nil : $0.waiters.popFirst() }
        unsafe waiter?.continuation.resume()
    }
}

/// A task that waits. The type does not depend on the elements, so that the compiler knows its layout.
///
/// A waiter is removed from the list before it is resumed, so it is resumed once.
@safe private struct Waiter {
    let ticket: UInt64
    let isOnLoop: Bool
    let continuation: UnsafeContinuation<Void, Never>
}

extension AsyncEventBuffer where Failure == Never {
    /// Returns the next element; nil at the end, or if the task is cancelled.
    package nonisolated(nonsending) func next() async -> Element? {
        switch await receive() {
        case .element(let element): element
        case .end, .cancelled: nil
        }
    }
}

extension AsyncEventBuffer where Failure == BLEError {
    /// Returns the next element; nil at the end.
    ///
    /// - Throws: the error that the sequence ended with; ``BLEError/cancelled`` if the task is cancelled.
    nonisolated(nonsending) func next() async throws(BLEError) -> Element? {
        switch await receive() {
        case .element(let element): return element
        case .end(let failure):
            if let failure { throw failure }
            return nil
        case .cancelled: throw .cancelled
        }
    }
}
