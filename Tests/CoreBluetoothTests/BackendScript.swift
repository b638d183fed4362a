import Dispatch

@testable import CoreBluetooth

/// The calls that a backend has received, and the events that it delivers.
final class BackendScript<Call: Equatable & Sendable, Event: Sendable>: Sendable {
    private struct State {
        var deliver: (@Sendable (Event) -> Bool)?
        var calls: [Call] = []
        /// The pending completions that the test answers, by their calls, oldest first.
        var answers: [(Call, any Sendable)] = []
    }

    private let state = Guarded(State())

    fileprivate func start(_ deliver: @escaping @Sendable (Event) -> Bool) { state.withLock { $0.deliver = deliver } }

    fileprivate func deliver(_ event: Event) -> Bool { state.withLock { $0.deliver }?(event) ?? true }

    fileprivate func takeCalls() -> [Call] {
        state.withLock { state in
            defer { state.calls = [] }
            return state.calls
        }
    }

    fileprivate func note(_ call: Call) { state.withLock { $0.calls.append(call) } }

    fileprivate func note<Value>(_ call: Call, _ completion: @escaping Completion<Value>) {
        state.withLock {
            $0.calls.append(call)
            $0.answers.append((call, completion))
        }
    }

    fileprivate func takeCompletion(of call: Call) -> (any Sendable)? {
        state.withLock { state in
            guard let index = state.answers.firstIndex(where: { $0.0 == call }) else { return nil }
            return state.answers.remove(at: index).1
        }
    }
}

/// A backend that records the calls it receives, and delivers the events of the test.
protocol ScriptedBackend: Sendable {
    associatedtype Call: Equatable & Sendable
    associatedtype Event: Sendable

    var script: BackendScript<Call, Event> { get }
}

extension ScriptedBackend {
    func start(_ deliver: @escaping @Sendable (Event) -> Bool) { script.start(deliver) }

    /// Returns the calls since the previous one of this method.
    func takeCalls() -> [Call] { script.takeCalls() }

    /// - Returns: whether the manager accepts the event.
    @discardableResult
    func deliver(_ event: Event) -> Bool { script.deliver(event) }

    /// Answers the oldest unanswered call that is `call`.
    func answer<Value>(_ call: Call, _ result: Result<Value, BackendError>) {
        (script.takeCompletion(of: call) as! Completion<Value>)(result)
    }

    func note(_ call: Call) { script.note(call) }

    func note<Value>(_ call: Call, _ completion: @escaping Completion<Value>) { script.note(call, completion) }
}

/// A delegate that records its calls.
protocol DelegateRecorder: AnyObject {
    var told: [String] { get set }
}

/// A manager with a scripted backend and a delegate that records its calls.
protocol ManagerFixture {
    associatedtype Backend: ScriptedBackend
    associatedtype Manager: CBManager
    associatedtype Recorder: DelegateRecorder

    var backend: Backend { get }
    var manager: Manager { get }
    var recorder: Recorder { get }
}

extension ManagerFixture {
    /// Waits until all work in the delegate's queue is done.
    func settle() {
        for _ in 0..<3 { manager.deliveryQueue.sync {} }
    }

    func deliver(_ event: Backend.Event) {
        backend.deliver(event)
        settle()
    }

    func answer<Value>(_ call: Backend.Call, _ result: Result<Value, BackendError>) {
        backend.answer(call, result)
        settle()
    }

    /// Returns the calls to delegates since the previous use of this method.
    func takeTold() -> [String] {
        settle()
        defer { recorder.told = [] }
        return recorder.told
    }

    /// Returns the calls to the host since the previous use of this method.
    func takeCalls() -> [Backend.Call] {
        settle()
        return backend.takeCalls()
    }
}
