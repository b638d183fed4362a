import Dispatch

/// Runs a blocking function on another thread.
func runBlocking<Value: Sendable, Failure: Error>(
    _ body: @escaping @Sendable () throws(Failure) -> Value
) async throws(Failure) -> Value {
    try await withCheckedContinuation { (continuation: CheckedContinuation<Result<Value, Failure>, Never>) in
        DispatchQueue.global().async {
            continuation.resume(returning: Result { () throws(Failure) in try body() })
        }
    }.get()
}
