import CFaultInjection

/// A fault that lasts until it is ended, or until its last reference is gone.
public final class FaultInjection: Sendable {
    // The pointer is used by one thread at a time, and the object behind it is never freed.
    private nonisolated(unsafe) let fault: OpaquePointer?

    public init(_ fault: Fault, at scope: Fault.Scope) {
        let call = fault_call_number(fault.call.rawValue)
        precondition(call >= 0, "\(fault.call) is not interposed")
        let (outcome, value) = fault.outcome.numbers
        var (descriptor, text) = (Int32(-1), "")
        switch scope {
        case .thread: break
        case .path(let path): text = path
        case .descriptor(let number): descriptor = number
        }
        let isAnyThread: Int32 = if case .thread = scope { 0 } else { 1 }
        self.fault = fault_add(call, outcome, value, fault.skipped, fault.count, isAnyThread, descriptor, text)
    }

    deinit {
        end()
    }

    /// The number of calls that were changed.
    public var uses: Int { fault_uses(fault) }

    /// Ends the fault.
    public func end() {
        _ = fault_end(fault)
    }
}

extension Fault.Outcome {
    fileprivate var numbers: (fault_outcome, Int) {
        switch self {
        case .fails(let errno): (fault_fails, Int(errno))
        case .returns(let number): (fault_returns, number)
        case .transfers(let count): (fault_shortens, count)
        case .isAhead(let seconds): (fault_shifts, seconds)
        }
    }
}

/// The result of an action that ran with faults.
public struct FaultRun<Value> {
    public let result: Result<Value, any Error>
    /// Faults that changed no call.
    public let unused: [Fault]
    /// The number of descriptors that the action opened and did not close.
    public let leakedDescriptors: Int

    /// Runs an action, with faults on this thread.
    public init(_ faults: [Fault], of action: () throws -> Value) {
        let injections = faults.map { FaultInjection($0, at: .thread) }
        fault_begin_descriptors()
        result = Result { try action() }
        leakedDescriptors = Int(fault_end_descriptors())
        for injection in injections { injection.end() }
        unused = zip(faults, injections).filter { $1.uses == 0 }.map { $0.0 }
    }

    /// The text of the error; nil if the action succeeded.
    public var message: String? {
        if case .failure(let error) = result { "\(error)" } else { nil }
    }
}
