import BluetoothTypes

/// The executor of a host and its transport: it runs one job at a time and has its own clock and alarms.
///
/// A host's executor is its loop, so protocol state is accessed on the loop only. On hardware the loop is a
/// ``DispatchEventLoop``; in a simulation it is the `SimulatedEventLoop` of BluetoothTesting, with virtual time.
package protocol EventLoop: SerialExecutor {
    /// The current time of a monotonic clock.
    var now: Instant { get }

    /// Runs `action` on the loop, after the jobs that wait there already.
    func execute(_ action: @escaping @Sendable () -> Void)

    /// An executor that runs tasks on the loop. The host uses it for its own tasks. So code of theirs that is isolated
    /// to no actor, such as the resumption after a continuation, needs no other thread.
    var taskExecutor: any TaskExecutor { get }

    /// The executor of apps' closures, such as answers to clients. Nil selects the shared thread pool, where a slow
    /// closure does not block the loop.
    var appTaskExecutor: (any TaskExecutor)? { get }

    /// Makes an alarm that runs `action` on the loop. The alarm is not set yet.
    func makeAlarm(_ action: @escaping @Sendable () -> Void) -> any Alarm
}

/// A one-shot timer that can be set repeatedly. Used on its loop only.
package protocol Alarm: AnyObject {
    /// Fires once at `instant`, or immediately if that is in the past; nil turns the alarm off.
    func set(_ instant: Instant?)
}
