import Foundation

/// A value under a lock.
///
/// Core Bluetooth's objects change on their manager's queue, but apps look at them from everywhere: what they hold lies in
/// one of these, which is what makes them `Sendable`.
final class Guarded<Value>: @unchecked Sendable {
    private let lock = NSLock()
    private var value: Value

    init(_ value: Value) {
        self.value = value
    }

    /// Runs `body` with the value; nothing that `body` calls may come back here.
    func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        lock.lock()
        defer { lock.unlock() }
        return try body(&value)
    }
}

/// An object that is not kept alive.
struct Weak<Object: AnyObject> {
    weak var object: Object?

    init(_ object: Object) {
        self.object = object
    }
}
