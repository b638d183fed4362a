import Dispatch

/// Runs a blocking function on another thread.
func runBlocking<Value: Sendable, Failure: Error>(
    _ body: @escaping @Sendable () throws(Failure) -> Value
) async throws(Failure) -> Value {
    try await withCheckedContinuation { (continuation: CheckedContinuation<Result<Value, Failure>, Never>) in
        startBlocking {
            continuation.resume(returning: Result { () throws(Failure) in try body() })
        }
    }.get()
}

/// Starts a blocking function on another thread.
///
/// Tasks run on the threads of Dispatch's global queues, of which there is one for each processor. If functions block
/// all of them, a task waits for about a second until Dispatch adds a thread. A serial queue gets a thread beyond them.
func startBlocking(_ body: @escaping @Sendable () -> Void) {
    DispatchQueue(label: "swift-ble.blocking").async { body() }
}
