import BluetoothTypes

/// Where a host and its transport run: one thing at a time, with a clock and alarms of its own.
///
/// A host's executor is its loop, so that every bit of protocol state is touched from there alone. On hardware the loop is
/// a ``DispatchEventLoop``; a simulation gives one whose time is virtual.
package protocol EventLoop: SerialExecutor {
    /// The time, on a clock that only moves forward.
    var now: Instant { get }

    /// Runs `action` on the loop, after what is already waiting there.
    func execute(_ action: @escaping @Sendable () -> Void)

    /// Runs tasks on the loop. The host gives it to its own tasks: what of them is bound to no actor, such as the way back
    /// from a continuation, then needs no other thread.
    var taskExecutor: any TaskExecutor { get }

    /// Runs what apps give to be done, such as answers to clients; nil for the threads that all tasks share, where an app
    /// that takes its time holds no loop up.
    var appTaskExecutor: (any TaskExecutor)? { get }

    /// Makes an alarm that runs `action` on the loop. It is not set yet.
    func makeAlarm(_ action: @escaping @Sendable () -> Void) -> any Alarm
}

/// A one-shot timer that is set again and again. Used on its loop only.
package protocol Alarm: AnyObject {
    /// Goes off once at `instant`, or at once where that is past; nil turns the alarm off.
    func set(_ instant: Instant?)
}
