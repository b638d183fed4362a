import Synchronization

/// A value under a lock, in an object of its own, which closures can capture. The value need not be `Sendable`.
final class Guarded<Value>: Sendable {
    private let value: Mutex<Value>

    init(_ value: sending Value) {
        self.value = Mutex(value)
    }

    /// Runs `body` with the value. `body` must not use the same lock again, directly or indirectly.
    func withLock<Result, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try value.withLock(body)
    }
}

/// An object that is not kept alive.
struct Weak<Object: AnyObject> {
    weak var object: Object?

    init(_ object: Object) {
        self.object = object
    }
}

extension Weak: Sendable where Object: Sendable {}
