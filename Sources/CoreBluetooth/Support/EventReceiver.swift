import DequeModule
import Dispatch

/// An event of a backend, on its way to the delegate of a manager.
protocol BackendEvent: Sendable {
    associatedtype Source: Hashable & Sendable

    /// The amount by which the event counts while it waits; nil if it has no limit of its own.
    var load: DeliveryLoad<Source>? { get }

    /// Returns the index of the waiting event whose place this one takes, because the manager would ignore the waiting
    /// one; nil if there is none. Both have the same load.
    func indexOfReplaced(in waiting: Deque<Self>) -> Int?

    static func stateChanged(_ state: CBManagerState) -> Self
}

extension BackendEvent {
    func indexOfReplaced(in waiting: Deque<Self>) -> Int? { nil }
}

extension CentralEvent: BackendEvent {}
extension PeripheralEvent: BackendEvent {}

/// A manager that handles the events of its backend on the queue on which its delegate is called.
protocol EventReceiver: CBManager {
    associatedtype Event: BackendEvent

    /// The events that wait for the queue.
    var backlog: DeliveryBacklog<Event> { get }

    /// Changes the objects of the app and calls the delegate. Called on the delivery queue.
    func handle(_ event: Event)

    /// Discards what a manager keeps only while it is powered on, without a call of the delegate. Called on the
    /// delivery queue.
    ///
    /// - Parameter state: the new state. Below `poweredOff`, the objects that the app received or published are
    ///   discarded too.
    func discardConnections(for state: CBManagerState)

    /// Calls the delegate's method for a new state. Called on the delivery queue.
    func reportState()

    /// Called on the delivery queue before an event, if similar events were refused and there is room for them again.
    func hasRoom(before event: Event)
}

extension EventReceiver {
    func hasRoom(before event: Event) {}

    /// Starts the backend.
    ///
    /// - Parameter start: starts the backend with the closure that receives its events; nil if the process has no
    ///   backend.
    func begin(_ start: ((@escaping @Sendable (Event) -> Bool) -> Void)?) {
        guard let start else {
            ProgrammerError.note("this process has no Bluetooth host: \(self) stays unsupported")
            return onQueue { $0.handle(.stateChanged(.unsupported)) }
        }
        // A block, which the queue only retains. A work item must not be enqueued again while it runs: it keeps its
        // queue only once, and releases it at its end.
        let deliver: @Sendable @convention(block) () -> Void = { [weak self] in self?.deliverNext() }
        start { [weak self] event in self?.receive(event, deliver) ?? true }
    }

    /// Receives an event. Thread-safe.
    ///
    /// Each event has its own job on the queue, in the order of the other jobs. The event waits in the backlog, so that
    /// all jobs are the same block, and none is allocated for one.
    ///
    /// - Parameter deliver: calls ``deliverNext()``.
    /// - Returns: false if too many events of the same kind and peer wait.
    private func receive(_ event: Event, _ deliver: @escaping @Sendable @convention(block) () -> Void) -> Bool {
        switch backlog.add(event) {
        case .appended:
            deliveryQueue.async(execute: deliver)
            return true
        // The job of the earlier event delivers this one.
        case .replacedEarlier: return true
        case .refused: return false
        }
    }

    /// Delivers the event that waits for longest. Called on the delivery queue.
    private func deliverNext() {
        guard let (event, hasRoom) = backlog.removeFirst() else { return }
        if hasRoom { self.hasRoom(before: event) }
        handle(event)
    }

    /// Sets a new state and reports it. Called on the delivery queue.
    func stateChanged(to state: CBManagerState) {
        let before = setState(state)
        guard before != state else { return }
        if before == .poweredOn { discardConnections(for: state) }
        states.send(state)
        reportState()
    }

    /// Runs `body` on the queue on which the delegate is called.
    func onQueue(_ body: @escaping @Sendable (Self) -> Void) {
        deliveryQueue.async { [weak self] in
            if let self { body(self) }
        }
    }
}
