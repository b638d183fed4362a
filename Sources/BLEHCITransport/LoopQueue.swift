import CBLEBluetooth
import Dispatch
import Glibc
import Synchronization

/// A serial Dispatch queue that works in turns, and keeps its thread while packets arrive close together.
///
/// A Dispatch source costs two thread switches for each event: one to the thread that watches descriptors, and one
/// back. Work submitted to a queue costs another. So, while the queue is busy, the handler of a transport's source
/// holds the queue. It polls the transports' descriptors itself, and runs submitted work between polls. At the end of
/// each turn, each transport writes the packets sent in that turn in one piece.
///
/// Between packets that arrive close together, the handler yields the processor before it sleeps in `poll`, while that
/// is profitable (`YieldBackoff`).
///
/// If all transports allow it, the handler waits before it reads again, so that several packets are read together
/// (`AdvertisingReportPacing`). During this wait it runs submitted work.
///
/// A hold ends when an alarm of the loop is due, so that alarms are on time. Other work of the queue itself, such as
/// the sources of listeners, waits for the end of the hold.
///
/// An idle queue is like any other: it does not poll, and does not wake up.
public final class LoopQueue: Sendable {
    /// Work to run on the queue. A job is added once and run once.
    @safe private enum Work: Sendable {
        case action(@Sendable () -> Void)
        case job(UnownedJob, UnownedSerialExecutor)
        case task(UnownedJob, UnownedTaskExecutor)
    }

    private enum Holder {
        case nobody
        case handler
        /// The handler that holds the queue sleeps in `poll`.
        case waitingHandler
    }

    /// The work that any thread submits.
    private struct Submissions {
        var work: [Work] = []
        var holder = Holder.nobody
        /// Whether the submitted work is already scheduled on the queue.
        var isScheduled = false
    }

    private struct Member {
        weak var transport: DescriptorTransport?
    }

    private struct AlarmEntry {
        weak var due: LoopAlarm.Due?
    }

    /// The state of the queue itself.
    private final class State {
        var members: [Member] = []
        /// The polled descriptors: the wake-up, then the members' descriptors in order.
        var entries: [pollfd]
        var round: [Work] = []
        /// Transports with bytes to write at the end of the turn.
        var unflushed: [DescriptorTransport] = []
        var alarms: [AlarmEntry] = []
        var lastPacket: UInt64 = 0
        /// Whether the last two packets, or turns of packets, were close together.
        var arePacketsBackToBack = false
        var yieldBackoff = YieldBackoff()
        var isInTurn = false

        init(wakeUp: OwnedDescriptor) {
            entries = [pollfd(fd: wakeUp.number, events: Int16(POLLIN), revents: 0)]
        }
    }

    /// The gap between packets below which the next one is worth a yield, in nanoseconds.
    private static let backToBackGap: UInt64 = 1_000_000
    /// The number of rounds of work in a turn. Work submitted by other work runs in the next round.
    private static let roundsPerTurn = 64
    /// The longest gap and hold. It keeps sums of times within their range.
    private static let longestDuration = Duration.seconds(3600)

    /// The queue itself. Work submitted to it directly runs after the current hold, which ends soon after its limit.
    public let queue: DispatchQueue

    /// The gap between packets below which the queue counts as busy, in nanoseconds. Also the time that a hold waits
    /// for the next packet.
    private let linger: UInt64?
    /// The time after which a hold ends, in nanoseconds.
    private let holdLimit: UInt64
    private let submissions = Mutex(Submissions())
    /// The thread that holds the queue; 0 if none does.
    private let holdingThread = Atomic<UInt>(0)
    let wakeUp: OwnedDescriptor
    private let confined: LoopConfined<State>
    private var state: State { confined.value }

    /// Creates a loop on a queue.
    ///
    /// - Parameters:
    ///   - queue: a serial queue that nothing else uses.
    ///   - linger: the gap between packets on a busy queue, rounded down to whole milliseconds, from 1 ms to an hour.
    ///     Receiving a packet through Dispatch costs several times as much as on the loop's own thread. Nil never holds
    ///     the queue. The queue is also never held if the process has no descriptor left for wake-ups.
    ///   - holdLimit: the time after which a hold ends, rounded down to whole milliseconds, at most an hour, so that
    ///     work submitted to the queue directly gets a turn.
    public init(
        _ queue: DispatchQueue,
        linger: Duration? = .milliseconds(20),
        holdLimit: Duration = .milliseconds(100)
    ) {
        self.queue = queue
        self.holdLimit = LoopQueue.nanoseconds(holdLimit, atLeast: .zero)
        wakeUp = OwnedDescriptor(linger == nil ? -1 : ble_eventfd())
        // Without a descriptor for wake-ups, submitted work would wait for the end of a hold.
        let holds = wakeUp.number >= 0
        self.linger = linger.flatMap { holds ? LoopQueue.nanoseconds($0, atLeast: .milliseconds(1)) : nil }
        confined = LoopConfined(State(wakeUp: wakeUp), to: queue)
    }

    /// The nanoseconds in the whole milliseconds of a duration within the limits.
    private static func nanoseconds(_ duration: Duration, atLeast minimum: Duration) -> UInt64 {
        UInt64(min(max(duration, minimum), longestDuration) / .milliseconds(1)) * 1_000_000
    }

    /// Whether the current thread holds the queue. If not, the queue may still run on it, as for a timer.
    package var isHeldByCurrentThread: Bool {
        holdingThread.load(ordering: .relaxed) == LoopQueue.currentThread
    }

    private static var currentThread: UInt { UInt(pthread_self()) }

    /// Whether packets sent now are written at the end of a turn.
    var isInTurn: Bool { state.isInTurn }

    // MARK: Work

    /// Runs an action on the queue, after earlier work. Thread-safe.
    public func async(_ action: @escaping @Sendable () -> Void) {
        add(.action(action))
    }

    /// Runs an actor's job on the queue.
    public func async(_ job: UnownedJob, on executor: UnownedSerialExecutor) {
        unsafe add(.job(job, executor))
    }

    /// Runs a task's job on the queue.
    public func async(_ job: UnownedJob, on executor: UnownedTaskExecutor) {
        unsafe add(.task(job, executor))
    }

    private func add(_ work: Work) {
        let holder = submissions.withLock { submissions -> Holder? in
            submissions.work.append(work)
            switch submissions.holder {
            case .nobody where submissions.isScheduled: return nil
            case .nobody: submissions.isScheduled = true
            case .handler: return nil
            // One wake-up is enough.
            case .waitingHandler:
                submissions.holder = .handler
                return .waitingHandler
            }
            return .nobody
        }
        switch holder {
        case .nobody: queue.async { self.doScheduledWork() }
        case .waitingHandler:
            var one: UInt64 = 1
            _ = unsafe Glibc.write(wakeUp.number, &one, MemoryLayout<UInt64>.size)
        case .handler, nil: break
        }
    }

    private func doScheduledWork() {
        hold()
        endTurn()
        letGo()
    }

    /// Runs the submitted work, and the work that it submits, then writes the packets sent in the turn.
    private func endTurn() {
        let state = state
        var rounds = LoopQueue.roundsPerTurn
        while rounds > 0, takeRound() {
            rounds -= 1
            for work in state.round {
                switch work {
                case .action(let action): action()
                case .job(let job, let executor): unsafe job.runSynchronously(on: executor)
                case .task(let job, let executor): unsafe job.runSynchronously(on: executor)
                }
            }
            state.round.removeAll(keepingCapacity: true)
        }
        while let transport = state.unflushed.popLast() { transport.flush() }
    }

    private func takeRound() -> Bool {
        let state = state
        return submissions.withLock { submissions in
            swap(&state.round, &submissions.work)
            return !state.round.isEmpty
        }
    }

    // MARK: Holding

    private func hold() {
        state.isInTurn = true
        holdingThread.store(LoopQueue.currentThread, ordering: .relaxed)
        submissions.withLock { submissions in
            submissions.holder = .handler
            submissions.isScheduled = false
        }
    }

    private func letGo() {
        state.isInTurn = false
        holdingThread.store(0, ordering: .relaxed)
        let isScheduled = submissions.withLock { submissions in
            submissions.holder = .nobody
            submissions.isScheduled = !submissions.work.isEmpty
            return submissions.isScheduled
        }
        if isScheduled { queue.async { self.doScheduledWork() } }
    }

    /// Reads from a transport whose source has fired. If the queue is busy, serves all transports until the queue is
    /// idle or the hold limit is reached.
    func becameReadable(_ transport: DescriptorTransport) {
        let state = state
        let start = monotonicNanoseconds()
        let isBusy = linger.map { start < state.lastPacket + $0 } ?? false
        state.arePacketsBackToBack = start < state.lastPacket + LoopQueue.backToBackGap
        hold()
        var isDrained = transport.drain(isPolled: false)
        endTurn()
        state.lastPacket = monotonicNanoseconds()
        while isBusy, !state.members.isEmpty, state.lastPacket < min(start + holdLimit, nextAlarm) {
            let waitStart = isDrained ? gatherPackets(until: start + holdLimit) : state.lastPacket
            guard !state.members.isEmpty, wait(atMost: isDrained ? linger ?? 0 : 0, from: waitStart) || !isDrained
            else { break }
            isDrained = drainMembers()
            endTurn()
            let now = monotonicNanoseconds()
            state.arePacketsBackToBack = now < state.lastPacket + LoopQueue.backToBackGap
            state.lastPacket = now
        }
        letGo()
        // Timers have a turn first. A source might not report the end of its stream again.
        if !isDrained, state.members.contains(where: { $0.transport === transport }) {
            queue.async { [weak transport] in
                if let transport { self.becameReadable(transport) }
            }
        }
    }

    /// Delivers the packets that wait in the descriptors of all transports, in one turn.
    func readAll() {
        hold()
        for member in state.members { _ = member.transport?.drain(isPolled: false) }
        endTurn()
        letGo()
    }

    /// Reads and writes on all ready descriptors. Returns false if there is more to read.
    private func drainMembers() -> Bool {
        let state = state
        var isDrained = true
        // Members may be removed during the loop. A member that is skipped because of this is readable again in the
        // next poll.
        var place = 0
        while place < state.members.count {
            if state.entries[place + 1].revents != 0 {
                guard let transport = state.members[place].transport else {
                    removeMembers { $0 == nil }
                    continue
                }
                if state.entries[place + 1].revents & Int16(POLLOUT) != 0 { transport.becameWritable() }
                if !transport.drain(isPolled: true) { isDrained = false }
            }
            place += 1
        }
        return isDrained
    }

    /// Waits for as long as all transports allow, so that packets arrive. Runs the work that is submitted in this time.
    ///
    /// - Returns: the time afterwards.
    private func gatherPackets(until limit: UInt64) -> UInt64 {
        let state = state
        let start = state.lastPacket
        var delay = UInt64.max
        for member in state.members { delay = min(delay, member.transport?.decideReadDelay(at: start) ?? 0) }
        guard delay > 0 else { return start }
        state.arePacketsBackToBack = false
        repeat {
            let end = min(start + delay, limit, nextAlarm)
            let now = monotonicNanoseconds()
            guard now < end, waitForWork(milliseconds: Int32(clamping: (end - now) / 1_000_000)) else { break }
            endTurn()
            // The work may have sent a packet, whose answer must not wait.
        } while !state.members.isEmpty && state.members.allSatisfy { $0.transport?.mayDelayRead ?? false }
        return monotonicNanoseconds()
    }

    /// Waits for submitted work. Returns false if there is none within the time.
    private func waitForWork(milliseconds: Int32) -> Bool {
        let hasWork = prepareToWait()
        let count = unsafe Glibc.poll(&state.entries, 1, hasWork ? 0 : milliseconds)
        resumeAfterWait()
        return count > 0 || hasWork
    }

    /// Records that a submission must wake the handler, unless there is work already.
    ///
    /// - Returns: whether there is work.
    private func prepareToWait() -> Bool {
        submissions.withLock { submissions in
            if submissions.work.isEmpty { submissions.holder = .waitingHandler }
            return !submissions.work.isEmpty
        }
    }

    private func resumeAfterWait() {
        submissions.withLock { $0.holder = .handler }
        guard state.entries[0].revents != 0 else { return }
        var count: UInt64 = 0
        _ = unsafe Glibc.read(wakeUp.number, &count, MemoryLayout<UInt64>.size)
    }

    /// Waits for a ready transport or for work, at most until the next alarm. Returns false if neither occurs.
    ///
    /// - Parameter start: the time when the wait begins.
    private func wait(atMost nanoseconds: UInt64, from start: UInt64) -> Bool {
        let state = state
        let hasWork = prepareToWait()
        for place in state.members.indices {
            let isBackedUp = state.members[place].transport?.isBackedUp ?? false
            state.entries[place + 1].events = Int16(isBackedUp ? POLLIN | POLLOUT : POLLIN)
        }
        let alarm = nextAlarm
        let limit = alarm > start ? min(nanoseconds, alarm - start) : 0
        // Rounded down: the timer of an alarm that is due in less than a millisecond is more precise.
        var milliseconds = hasWork ? 0 : Int32(clamping: limit / 1_000_000)
        if milliseconds > 0, state.arePacketsBackToBack, state.yieldBackoff.isWorthIt(at: start) {
            sched_yield()
            let now = monotonicNanoseconds()
            state.yieldBackoff.yielded(from: start, to: now)
            let yielded = now - start
            milliseconds = yielded < limit ? Int32(clamping: (limit - yielded) / 1_000_000) : 0
        }
        let count = unsafe Glibc.poll(&state.entries, nfds_t(state.entries.count), milliseconds)
        resumeAfterWait()
        return count > 0 || hasWork
    }

    // MARK: Alarms

    /// The earliest time of an alarm, in nanoseconds of the monotonic clock.
    private var nextAlarm: UInt64 {
        var earliest = UInt64.max
        for entry in state.alarms { earliest = min(earliest, entry.due?.nanoseconds ?? .max) }
        return earliest
    }

    func add(_ due: LoopAlarm.Due) {
        state.alarms.removeAll { $0.due == nil }
        state.alarms.append(AlarmEntry(due: due))
    }

    // MARK: Members

    /// Adds a transport, whose descriptor is polled too while the queue is held.
    func add(_ transport: DescriptorTransport, descriptor: Int32) {
        removeMembers { $0 == nil }
        state.members.append(Member(transport: transport))
        state.entries.append(pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0))
    }

    func remove(_ transport: DescriptorTransport) {
        removeMembers { $0 === transport }
        state.unflushed.removeAll { $0 === transport }
    }

    private func removeMembers(where isLeaving: (DescriptorTransport?) -> Bool) {
        let state = state
        for place in state.members.indices.reversed() where isLeaving(state.members[place].transport) {
            state.members.remove(at: place)
            state.entries.remove(at: place + 1)
        }
    }

    /// Makes a transport write at the end of the turn.
    func flushLater(_ transport: DescriptorTransport) {
        state.unflushed.append(transport)
    }
}
