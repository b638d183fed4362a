import BLE
import GRPCCore

/// Runs an operation of a call. If the client cancels the call, or its deadline passes, the operation's task is
/// cancelled.
func perform<Value: Sendable>(_ operation: @escaping @Sendable () async throws -> Value) async throws -> Value {
    let task = Task {
        do {
            return try await operation()
        } catch let error as BLEError {
            throw RPCError(error)
        }
    }
    return try await withRPCCancellationHandler {
        try await withTaskCancellationHandler {
            try await task.value
        } onCancel: {
            task.cancel()
        }
    } onCancelRPC: {
        task.cancel()
    }
}

extension RPCError {
    init(_ error: BLEError) {
        let code: Code =
            switch error {
            case .invalidArgument: .invalidArgument
            case .limitReached: .resourceExhausted
            case .notSupported: .unimplemented
            case .timedOut: .deadlineExceeded
            case .cancelled, .closed: .cancelled
            default: .aborted
            }
        self.init(code: code, message: "\(error)")
    }
}
