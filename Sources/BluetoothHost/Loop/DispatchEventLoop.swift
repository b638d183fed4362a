import BluetoothTypes
import Dispatch

/// The event loop on a serial Dispatch queue.
package final class DispatchEventLoop: EventLoop {
    /// The queue: sources of the transport are made on it.
    package let queue: DispatchQueue
    private let tasks: QueueTaskExecutor
    private static let key = DispatchSpecificKey<ObjectIdentifier>()

    /// Called after work was handed to the queue, so that a transport that waits on the queue lets it run.
    private let didEnqueue: @Sendable () -> Void

    package init(label: String, didEnqueue: @escaping @Sendable () -> Void = {}) {
        self.didEnqueue = didEnqueue
        queue = DispatchQueue(label: label, qos: .userInitiated)
        tasks = QueueTaskExecutor(queue: queue, didEnqueue: didEnqueue)
        queue.setSpecific(key: DispatchEventLoop.key, value: ObjectIdentifier(self))
    }

    package var now: Instant {
        Instant(nanoseconds: DispatchTime.now().uptimeNanoseconds)
    }

    package func execute(_ action: @escaping @Sendable () -> Void) {
        queue.async(execute: action)
        didEnqueue()
    }

    package var taskExecutor: any TaskExecutor { tasks }

    package var appTaskExecutor: (any TaskExecutor)? { nil }

    package func makeAlarm(_ action: @escaping @Sendable () -> Void) -> any Alarm {
        DispatchAlarm(queue: queue, action: action)
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        // The job may end, and with it the last that held this executor, before `async` returns.
        let didEnqueue = didEnqueue
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
        didEnqueue()
    }

    package func checkIsolated() {
        dispatchPrecondition(condition: .onQueue(queue))
    }

    package func isIsolatingCurrentContext() -> Bool? {
        DispatchQueue.getSpecific(key: DispatchEventLoop.key) == ObjectIdentifier(self)
    }
}

private final class QueueTaskExecutor: TaskExecutor {
    private let queue: DispatchQueue
    private let didEnqueue: @Sendable () -> Void

    init(queue: DispatchQueue, didEnqueue: @escaping @Sendable () -> Void) {
        self.queue = queue
        self.didEnqueue = didEnqueue
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let didEnqueue = didEnqueue
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
        didEnqueue()
    }
}

private final class DispatchAlarm: Alarm {
    private let timer: any DispatchSourceTimer

    init(queue: DispatchQueue, action: @escaping @Sendable () -> Void) {
        timer = DispatchSource.makeTimerSource(queue: queue)
        timer.setEventHandler(handler: action)
        timer.schedule(deadline: .distantFuture)
        timer.activate()
    }

    deinit {
        timer.cancel()
    }

    func set(_ instant: Instant?) {
        guard let instant else {
            timer.schedule(deadline: .distantFuture)
            return
        }
        timer.schedule(deadline: DispatchTime(uptimeNanoseconds: max(instant.nanoseconds, 1)), leeway: .milliseconds(1))
    }
}
