import BLE

extension RemotePeripheral {
    /// Performs `body`, and cancels it when the link ends.
    ///
    /// - Throws: the error of `body`, or ``BLEError/disconnected(_:)``.
    func whileConnected<Value: Sendable>(
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        try await withThrowingTaskGroup(of: Value.self) { group in
            group.addTask { try await body() }
            group.addTask { () async throws -> Value in
                throw BLEError.disconnected(try await self.disconnection())
            }
            defer { group.cancelAll() }
            guard let value = try await group.next() else { throw CancellationError() }
            return value
        }
    }
}
