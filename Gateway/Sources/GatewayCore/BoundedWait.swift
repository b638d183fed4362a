/// Waits until `body` has returned, for a limited time, also in a cancelled task.
///
/// - Returns: whether `body` has returned. If not, it continues in a task of its own.
@discardableResult
func wait(atMost timeout: Duration, for body: @escaping @Sendable () async -> Void) async -> Bool {
    // A task group would wait for its children, so the wait is for one of two tasks outside.
    let (ends, continuation) = AsyncStream.makeStream(of: Bool.self)
    let tasks = [
        Task {
            await body()
            continuation.yield(true)
            continuation.finish()
        },
        Task {
            try? await Task.sleep(for: timeout)
            continuation.finish()
        },
    ]
    // The caller's task may be cancelled, which would end the iteration.
    let hasReturned = await Task { await ends.first { _ in true } ?? false }.value
    for task in tasks { task.cancel() }
    return hasReturned
}
