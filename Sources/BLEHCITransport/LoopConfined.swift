import Dispatch

/// A value that is used on one loop only: on one serial queue, or on the thread that runs a simulation.
///
/// A class whose state belongs to a loop keeps it in a confined object of its own. The class itself is then `Sendable`
/// without exception: the compiler checks all its other properties.
///
/// ```swift
/// final class Listener: Sendable {
///     private final class State {
///         var isClosed = false
///     }
///
///     private let state: LoopConfined<State>
///
///     init(queue: DispatchQueue) {
///         state = LoopConfined(State(), to: queue)
///     }
///
///     /// Called on the queue.
///     func close() {
///         state.value.isClosed = true
///     }
/// }
/// ```
///
/// # Rules
/// - After the creation, the value is used on its loop only. Debug builds check this at each access. Release builds do
///   not: an access then costs as much as that of a constant.
/// - The value is released on the thread that drops its last reference. Its `deinit` must be safe on each thread.
@usableFromInline
package struct LoopConfined<Value>: @unchecked Sendable {
    // @unchecked: accesses on one loop follow one another, and debug builds check that there is no other access.

    @usableFromInline let content: Value
    #if DEBUG
        @usableFromInline let check: @Sendable () -> Void
    #endif

    /// - Parameter check: stops the program if the caller may not use the loop's state. Debug builds only.
    package init(_ value: Value, check: @escaping @Sendable () -> Void) {
        content = value
        #if DEBUG
            self.check = check
        #endif
    }

    /// Confines a value to a serial queue.
    package init(_ value: Value, to queue: DispatchQueue) {
        self.init(value) { dispatchPrecondition(condition: .onQueue(queue)) }
    }

    /// The value. Called on its loop only.
    @inlinable package var value: Value {
        #if DEBUG
            check()
        #endif
        return content
    }
}
