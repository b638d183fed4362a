/// The calls on an actor that wait for a change of its state.
///
/// Each method is called on the actor that owns the value.
struct Changes {
    private var waiting: [UInt64: CheckedContinuation<Void, Never>] = [:]
    private var lastNumber: UInt64 = 0

    /// Makes the number of a call that will wait.
    mutating func makeNumber() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }

    mutating func add(_ number: UInt64, _ continuation: CheckedContinuation<Void, Never>) {
        waiting[number] = continuation
    }

    /// Resumes a call whose task was cancelled.
    mutating func remove(_ number: UInt64) {
        waiting.removeValue(forKey: number)?.resume()
    }

    /// Resumes all calls.
    mutating func signal() {
        let resumed = waiting.sorted { $0.key < $1.key }
        waiting = [:]
        for (_, continuation) in resumed { continuation.resume() }
    }
}
