import BluetoothHost
import BluetoothTypes
import DequeModule
import Glibc
import HeapModule
import Synchronization

/// An event loop with virtual time: the clock stands still while jobs are ready, and then jumps to the next alarm.
///
/// A whole host runs in the one thread that calls ``run(for:)``, always in the same order. The app's tasks run on the
/// loop as well if they use ``taskExecutor``, so that nothing happens on any other thread.
package final class SimulatedEventLoop: EventLoop {
    private struct Due: Comparable {
        let instant: Instant
        let sequence: UInt64
        let alarm: SimulatedAlarm

        static func < (left: Due, right: Due) -> Bool {
            (left.instant.nanoseconds, left.sequence) < (right.instant.nanoseconds, right.sequence)
        }

        static func == (left: Due, right: Due) -> Bool { left.sequence == right.sequence }
    }

    private struct State {
        var now = Instant(nanoseconds: 1_000_000_000)
        var alarms = Heap<Due>()
        var sequence: UInt64 = 0
    }

    private let state: Mutex<State>
    private let ready = ReadyWork()
    private let executor: SimulatedTaskExecutor
    /// The thread that runs the loop, at most one; 0 for none.
    private let runner = Atomic<UInt>(0)

    package init() {
        state = Mutex(State())
        executor = SimulatedTaskExecutor(ready)
    }

    package var now: Instant { state.withLock { $0.now } }

    package func execute(_ action: @escaping @Sendable () -> Void) {
        ready.add(.action(action))
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        ready.add(.job(UnownedJob(job)))
    }

    /// Runs tasks on the loop: `Task(executorPreference: loop.taskExecutor) { … }`.
    package var taskExecutor: any TaskExecutor { executor }

    package var appTaskExecutor: (any TaskExecutor)? { executor }

    package func checkIsolated() {
        precondition(isIsolatingCurrentContext() == true, "outside of the simulated loop")
    }

    package func isIsolatingCurrentContext() -> Bool? {
        runner.load(ordering: .relaxed) == SimulatedEventLoop.thisThread
    }

    /// Whether the caller may use the loop's state: this thread runs the loop, or no thread does.
    package var isUsableOnThisThread: Bool {
        let thread = runner.load(ordering: .relaxed)
        return thread == 0 || thread == SimulatedEventLoop.thisThread
    }

    private static var thisThread: UInt { pthread_self() }

    package func makeAlarm(_ action: @escaping @Sendable () -> Void) -> any Alarm {
        SimulatedAlarm(loop: self, action: action)
    }

    fileprivate func schedule(_ alarm: SimulatedAlarm, at instant: Instant) -> UInt64 {
        state.withLock { state in
            state.sequence += 1
            state.alarms.insert(Due(instant: max(instant, state.now), sequence: state.sequence, alarm: alarm))
            return state.sequence
        }
    }

    /// The number of alarms that are set. Used on the loop, or while no thread runs it.
    package var alarmCount: Int {
        state.withLock { state in state.alarms.unordered.count { $0.alarm.scheduled == $0.sequence } }
    }

    /// Runs all jobs that become ready within `duration` of virtual time, and advances the clock by that time.
    package func run(for duration: Duration) {
        let end = now + duration
        _ = run(until: end) { false }
    }

    /// Runs until `isDone` returns true, or until `limit` of virtual time has passed.
    ///
    /// - Returns: whether `isDone` returned true.
    ///
    /// - Parameter isDone: called on the loop each time that no job is ready.
    @discardableResult
    package func run(limit: Duration = .seconds(600), until isDone: () -> Bool) -> Bool {
        run(until: now + limit, isDone)
    }

    private func run(until end: Instant, _ isDone: () -> Bool) -> Bool {
        let (isFree, _) = runner.compareExchange(
            expected: 0,
            desired: SimulatedEventLoop.thisThread,
            ordering: .sequentiallyConsistent
        )
        precondition(isFree, "the loop is run already")
        defer { runner.store(0, ordering: .sequentiallyConsistent) }
        var round = Deque<ReadyWork.Item>()
        while !isDone() {
            ready.take(into: &round)
            let isIdle = round.isEmpty
            while let item = round.popFirst() {
                switch item {
                case .action(let action): action()
                case .job(let job): unsafe job.runSynchronously(on: asUnownedSerialExecutor())
                case .taskJob(let job): unsafe job.runSynchronously(on: executor.asUnownedTaskExecutor())
                }
            }
            if isIdle, !passTime(until: end) { return isDone() }
        }
        return true
    }

    /// Moves the clock to the next alarm and fires it.
    ///
    /// - Returns: false if no alarm is due by `end`.
    private func passTime(until end: Instant) -> Bool {
        let due = state.withLock { state -> Due? in
            guard let next = state.alarms.min, next.instant <= end else {
                state.now = max(state.now, end)
                return nil
            }
            state.now = max(state.now, next.instant)
            return state.alarms.popMin()
        }
        due?.alarm.goOff(due?.sequence)
        return due != nil
    }
}

/// The queue of a loop's ready jobs, in order.
private final class ReadyWork: Sendable {
    enum Item {
        case job(UnownedJob)
        case taskJob(UnownedJob)
        case action(@Sendable () -> Void)
    }

    private let items = Mutex<Deque<Item>>([])

    func add(_ item: Item) {
        items.withLock { $0.append(item) }
    }

    /// Moves all jobs into an empty queue, whose storage is reused for the next ones.
    func take(into taken: inout Deque<Item>) {
        items.withLock { swap(&taken, &$0) }
    }
}

private final class SimulatedTaskExecutor: TaskExecutor {
    private let ready: ReadyWork

    init(_ ready: ReadyWork) {
        self.ready = ready
    }

    func enqueue(_ job: consuming ExecutorJob) {
        ready.add(.taskJob(UnownedJob(job)))
    }
}

/// Used only on the thread that runs its loop.
private final class SimulatedAlarm: Alarm, @unchecked Sendable {
    // @unchecked: used only on the thread that runs its loop.

    /// The loop, which owns the alarms that are due.
    private weak var loop: SimulatedEventLoop?
    private let action: @Sendable () -> Void
    fileprivate private(set) var scheduled: UInt64?

    init(loop: SimulatedEventLoop, action: @escaping @Sendable () -> Void) {
        self.loop = loop
        self.action = action
    }

    func set(_ instant: Instant?) {
        scheduled = instant.flatMap { loop?.schedule(self, at: $0) }
    }

    func goOff(_ sequence: UInt64?) {
        guard scheduled == sequence else { return }
        scheduled = nil
        action()
    }
}
