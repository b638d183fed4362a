import BLEHCITransport
import BluetoothTypes
import Dispatch
import Synchronization

/// The event loop on a serial Dispatch queue.
package final class DispatchEventLoop: EventLoop {
    /// The queue, on which the transport runs as well.
    package let queue: LoopQueue
    private let tasks: QueueTaskExecutor
    /// The number of the queue, which no other queue gets. The address of an object would not do: the queue may outlive
    /// the loop, and a later loop may get its address.
    private let number: UInt64
    private static let key = DispatchSpecificKey<UInt64>()
    private static let lastNumber = Atomic<UInt64>(0)

    package init(label: String) {
        // An adapter has one transport. A hold writes its bytes, and ends when it is closed or an alarm is due. So
        // hardly any work waits for the end of a hold.
        queue = LoopQueue(DispatchQueue(label: label, qos: .userInitiated), holdLimit: .seconds(1))
        tasks = QueueTaskExecutor(queue: queue)
        number = DispatchEventLoop.lastNumber.wrappingAdd(1, ordering: .relaxed).newValue
        queue.queue.setSpecific(key: DispatchEventLoop.key, value: number)
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
        LoopAlarm(on: queue, action)
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        unsafe queue.async(UnownedJob(job), on: asUnownedSerialExecutor())
    }

    // Most questions come from a thread that holds the queue. Then Dispatch, which answers more slowly, is not asked.

    package func checkIsolated() {
        if queue.isHeldByCurrentThread { return }
        dispatchPrecondition(condition: .onQueue(queue.queue))
    }

    package func isIsolatingCurrentContext() -> Bool? {
        queue.isHeldByCurrentThread || DispatchQueue.getSpecific(key: DispatchEventLoop.key) == number
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

extension LoopAlarm: Alarm {
    package func set(_ instant: Instant?) {
        set(instant?.nanoseconds)
    }
}
