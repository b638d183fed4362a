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
///
/// The loop works in turns: each turn runs all jobs that are ready. Work that never waits for time would keep the loop
/// at one instant indefinitely, so the number of turns at one instant is limited.
package final class SimulatedEventLoop: EventLoop {
    /// The reason why a run of the loop has ended.
    enum RunEnd {
        /// The caller's condition is true.
        case done
        /// The time of the run has passed.
        case timeLimit
        /// Work repeats although no time passes; see ``turnLimit``.
        case turnLimit
    }

    /// Maximum number of turns at one instant, unless a loop has its own limit.
    package static let defaultTurnLimit = 1_000_000

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

    /// Maximum number of turns at one instant in one run of the loop.
    package let turnLimit: Int
    private let state: Mutex<State>
    private let ready = ReadyWork()
    private let executor: SimulatedTaskExecutor
    /// The thread that runs the loop, at most one; 0 for none.
    private let runner = Atomic<UInt>(0)

    /// - Parameter turnLimit: maximum number of turns at one instant in one run of the loop.
    package init(turnLimit: Int = SimulatedEventLoop.defaultTurnLimit) {
        self.turnLimit = turnLimit
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
    ///
    /// Returns early, without advancing the clock further, if work repeats at one instant; see ``turnLimit``.
    package func run(for duration: Duration) {
        let end = now + duration
        _ = run(until: end) { false }
    }

    /// Runs until `isDone` returns true, until `limit` of virtual time has passed, or until ``turnLimit`` is reached.
    ///
    /// - Parameter isDone: called on the loop before each turn.
    /// - Returns: whether `isDone` returned true.
    @discardableResult
    package func run(limit: Duration = .seconds(600), until isDone: () -> Bool) -> Bool {
        run(until: now + limit, isDone) == .done
    }

    func run(until end: Instant, _ isDone: () -> Bool) -> RunEnd {
        let (isFree, _) = runner.compareExchange(
            expected: 0,
            desired: SimulatedEventLoop.thisThread,
            ordering: .sequentiallyConsistent
        )
        precondition(isFree, "the loop runs already: use `run`, `advance` and `close` only between two runs")
        defer { runner.store(0, ordering: .sequentiallyConsistent) }
        var round = Deque<ReadyWork.Item>()
        // The number of turns since the clock has last moved.
        var turns = 0
        while !isDone() {
            guard turns < turnLimit else { return .turnLimit }
            turns += 1
            ready.take(into: &round)
            let isIdle = round.isEmpty
            while let item = round.popFirst() {
                switch item {
                case .action(let action): action()
                case .job(let job): unsafe job.runSynchronously(on: asUnownedSerialExecutor())
                case .taskJob(let job): unsafe job.runSynchronously(on: executor.asUnownedTaskExecutor())
                }
            }
            guard isIdle else { continue }
            switch passTime(until: end) {
            case .moved: turns = 0
            case .stayed: break
            case .ended: return isDone() ? .done : .timeLimit
            }
        }
        return .done
    }

    private enum ClockStep {
        /// The clock has moved to the next alarm.
        case moved
        /// The next alarm was due at the present instant.
        case stayed
        /// No alarm is due by the end of the run.
        case ended
    }

    /// Moves the clock to the next alarm and fires it.
    private func passTime(until end: Instant) -> ClockStep {
        let (fired, isLater) = state.withLock { state -> (Due?, Bool) in
            guard let next = state.alarms.min, next.instant <= end else {
                state.now = max(state.now, end)
                return (nil, false)
            }
            let isLater = next.instant > state.now
            state.now = max(state.now, next.instant)
            return (state.alarms.popMin(), isLater)
        }
        guard let due = fired else { return .ended }
        due.alarm.goOff(due.sequence)
        return isLater ? .moved : .stayed
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
