/// Performs `body`, for at most `duration`; nil if the time is over. Without a duration there is no limit.
func within<Value: Sendable>(
    _ duration: Duration?,
    _ body: @escaping @Sendable () async throws -> Value
) async throws -> Value? {
    guard let duration else { return try await body() }
    return try await withThrowingTaskGroup(of: Value?.self) { group in
        group.addTask { try await body() }
        group.addTask {
            try await Task.sleep(for: duration)
            return nil
        }
        defer { group.cancelAll() }
        return try await group.next() ?? nil
    }
}

/// Performs `body`, for at most `duration` after it has called its argument; nil if the time is over. Without a
/// duration there is no limit.
func limited<Value: Sendable>(
    to duration: Duration?,
    afterStart body: @escaping @Sendable (_ start: @escaping @Sendable () -> Void) async throws -> Value
) async throws -> Value? {
    let (starts, start) = AsyncStream<Void>.makeStream()
    return try await withThrowingTaskGroup(of: Value?.self) { group in
        group.addTask { try await body { start.finish() } }
        if let duration {
            group.addTask {
                for await _ in starts {}
                try await Task.sleep(for: duration)
                return nil
            }
        }
        defer { group.cancelAll() }
        return try await group.next() ?? nil
    }
}

/// Performs `body` even if the surrounding task is cancelled.
func uncancelled(_ body: @escaping @Sendable () async -> Void) async {
    await Task { await body() }.value
}
