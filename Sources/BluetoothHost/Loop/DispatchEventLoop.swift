import BLEHCITransport
import BluetoothTypes
import Dispatch

/// The event loop on a serial Dispatch queue.
package final class DispatchEventLoop: EventLoop {
    /// The queue, on which the transport runs as well.
    package let queue: LoopQueue
    private let tasks: QueueTaskExecutor
    private static let key = DispatchSpecificKey<ObjectIdentifier>()

    package init(label: String) {
        queue = LoopQueue(DispatchQueue(label: label, qos: .userInitiated))
        tasks = QueueTaskExecutor(queue: queue)
        queue.queue.setSpecific(key: DispatchEventLoop.key, value: ObjectIdentifier(self))
    }

    package var now: Instant {
        Instant(nanoseconds: DispatchTime.now().uptimeNanoseconds)
    }

    package func execute(_ action: @escaping @Sendable () -> Void) {
        queue.async(action)
    }

    package var taskExecutor: any TaskExecutor { tasks }

    package var appTaskExecutor: (any TaskExecutor)? { nil }

    package func makeAlarm(_ action: @escaping @Sendable () -> Void) -> any Alarm {
        DispatchAlarm(queue: queue.queue, action: action)
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        unsafe queue.async(UnownedJob(job), on: asUnownedSerialExecutor())
    }

    package func checkIsolated() {
        dispatchPrecondition(condition: .onQueue(queue.queue))
    }

    package func isIsolatingCurrentContext() -> Bool? {
        DispatchQueue.getSpecific(key: DispatchEventLoop.key) == ObjectIdentifier(self)
    }
}

private final class QueueTaskExecutor: TaskExecutor {
    private let queue: LoopQueue

    init(queue: LoopQueue) {
        self.queue = queue
    }

    func enqueue(_ job: consuming ExecutorJob) {
        unsafe queue.async(UnownedJob(job), on: asUnownedTaskExecutor())
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
