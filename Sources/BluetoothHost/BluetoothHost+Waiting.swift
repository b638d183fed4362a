extension BluetoothHost {
    /// Is told what has become of a call.
    typealias Completion<Value> = (Result<Value, HostError>) -> Void

    /// Suspends the call until the completion that `begin` is given has been called, which must be once.
    ///
    /// What the call relies on is looked up in `begin`, not before: a task that prefers an executor comes there by way of the
    /// loop's queue, behind whatever has happened meanwhile.
    func outcome<Value: Sendable>(
        _ begin: (_ completion: @escaping Completion<Value>) throws(HostError) -> Void
    ) async -> Result<Value, HostError> {
        await withCheckedContinuation { continuation in
            do throws(HostError) {
                try begin { continuation.resume(returning: $0) }
            } catch {
                continuation.resume(returning: .failure(error))
            }
        }
    }
}
