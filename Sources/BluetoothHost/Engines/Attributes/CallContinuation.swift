/// The continuation of a task that waits for the outcome of a call.
///
/// Use it once: ``CallTable`` and the lanes of links remove a continuation before they resume it. The runtime does not
/// check that, because the check allocates memory for each call.
@safe struct CallContinuation: Sendable {
    private let continuation: UnsafeContinuation<CallOutcome, Never>

    /// Suspends the current task until the continuation that `body` receives is resumed.
    @inline(__always)
    static func wait(
        isolation: isolated (any Actor)? = #isolation,
        _ body: (CallContinuation) -> Void
    ) async -> CallOutcome {
        unsafe await withUnsafeContinuation { body(unsafe CallContinuation(continuation: $0)) }
    }

    func resume(returning outcome: CallOutcome) {
        unsafe continuation.resume(returning: outcome)
    }
}
