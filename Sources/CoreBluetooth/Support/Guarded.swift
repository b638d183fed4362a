import Synchronization

/// A value under a lock, in an object of its own.
///
/// Use `Mutex` itself if the value is `Sendable`. This type also holds values that are not.
final class Guarded<Value>: Sendable {
    private struct Unchecked<Content>: @unchecked Sendable {
        // @unchecked: the value is used under the lock only; a result belongs to the caller of `withLock(_:)`.
        var content: Content
    }

    private let value: Mutex<Unchecked<Value>>

    init(_ value: Value) {
        self.value = Mutex(Unchecked(content: value))
    }

    /// Runs `body` with the value. `body` must not use the same lock again, directly or indirectly.
    func withLock<Result, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try value.withLock { (value) throws(Failure) in
            Unchecked(content: try body(&value.content))
        }.content
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
