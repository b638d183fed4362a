import CBluetooth
import Dispatch
import Glibc
import Synchronization

/// A serial Dispatch queue that does its work in turns, and does not let go of its thread while packets come close together.
///
/// A Dispatch source costs a switch to the thread that watches descriptors and one back for each event, and work that is
/// handed to a queue another. So, while it is busy, the handler of a transport's source holds the queue: it polls the
/// transports' descriptors itself, and does what is handed to the queue in between. At the end of each turn, transports
/// write in one piece what they were given to send in it.
///
/// Before it sleeps in `poll`, it lets others have the processor, as long as that pays (``Yielding``).
///
/// A quiet queue is like any other: nothing polls, and nothing wakes up.
public final class LoopQueue: @unchecked Sendable {
    // @unchecked: its other state is constant or used on the queue only.

    /// Something to be done on the queue.
    private enum Work: Sendable {
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

    private struct State {
        var work: [Work] = []
        var holder = Holder.nobody
        /// Whether the queue has been asked to do the work.
        var isScheduled = false
    }

    private struct Member {
        weak var transport: DescriptorTransport?
    }

    /// How long the queue is held before timers and others on it have a turn.
    private static let holdLimit: UInt64 = 10_000_000
    /// How often work that more work comes of is done before packets have a turn.
    private static let roundsPerTurn = 64

    /// The queue itself. What is handed to it directly is done when the queue is not held, after 10 ms at the most.
    public let queue: DispatchQueue

    /// How close together packets are on a busy queue, in nanoseconds, which is also how long it waits for the next one.
    private let linger: UInt64?
    private let state = Mutex(State())
    private let wakeUp: OwnedDescriptor

    // Used on the queue only.
    private var members: [Member] = []
    /// What is polled: the wake-up, and the members' descriptors in their order.
    private var entries: [pollfd]
    private var round: [Work] = []
    /// Transports that have something to write at the end of the turn.
    private var unflushed: [DescriptorTransport] = []
    private var lastPacket: UInt64 = 0
    private var yielding = Yielding()
    /// Whether what is sent now is written at the end of a turn.
    private(set) var isInTurn = false

    /// - Parameters:
    ///   - queue: serial, and of nobody else.
    ///   - linger: how close together packets are on a busy queue, in whole milliseconds; nil never holds the queue.
    public init(_ queue: DispatchQueue, linger: Duration? = .milliseconds(1)) {
        self.queue = queue
        self.linger = linger.map { max(1, UInt64($0 / .milliseconds(1))) * 1_000_000 }
        wakeUp = OwnedDescriptor(linger == nil ? -1 : ble_eventfd())
        entries = [pollfd(fd: wakeUp.number, events: Int16(POLLIN), revents: 0)]
    }

    // MARK: Work

    /// Does something on the queue, after what it was given before. From any thread.
    public func async(_ action: @escaping @Sendable () -> Void) {
        add(.action(action))
    }

    /// Runs an actor's job on the queue.
    public func async(_ job: UnownedJob, on executor: UnownedSerialExecutor) {
        add(.job(job, executor))
    }

    /// Runs a task's job on the queue.
    public func async(_ job: UnownedJob, on executor: UnownedTaskExecutor) {
        add(.task(job, executor))
    }

    private func add(_ work: Work) {
        let holder = state.withLock { state -> Holder? in
            state.work.append(work)
            switch state.holder {
            case .nobody where state.isScheduled: return nil
            case .nobody: state.isScheduled = true
            case .handler: return nil
            // One wake-up is enough.
            case .waitingHandler:
                state.holder = .handler
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

    /// Does the work that is there, and what comes of it, and writes what is to be sent.
    private func endTurn() {
        var rounds = LoopQueue.roundsPerTurn
        while rounds > 0, takeRound() {
            rounds -= 1
            for work in round {
                switch work {
                case .action(let action): action()
                case .job(let job, let executor): job.runSynchronously(on: executor)
                case .task(let job, let executor): job.runSynchronously(on: executor)
                }
            }
            round.removeAll(keepingCapacity: true)
        }
        while let transport = unflushed.popLast() { transport.flush() }
    }

    private func takeRound() -> Bool {
        state.withLock { state in
            swap(&round, &state.work)
            return !round.isEmpty
        }
    }

    // MARK: Holding

    private func hold() {
        isInTurn = true
        state.withLock { state in
            state.holder = .handler
            state.isScheduled = false
        }
    }

    private func letGo() {
        isInTurn = false
        let isScheduled = state.withLock { state in
            state.holder = .nobody
            state.isScheduled = !state.work.isEmpty
            return state.isScheduled
        }
        if isScheduled { queue.async { self.doScheduledWork() } }
    }

    /// Reads what a transport's source has told of and, where the queue is busy, goes on with all transports until it is
    /// quiet or others are to have a turn.
    func becameReadable(_ transport: DescriptorTransport) {
        let start = monotonicNanoseconds()
        let isBusy = linger.map { start < lastPacket + $0 } ?? false
        hold()
        var isDrained = transport.drain(isPolled: false)
        endTurn()
        lastPacket = monotonicNanoseconds()
        while isBusy, lastPacket < start + LoopQueue.holdLimit {
            guard wait(atMost: isDrained ? linger ?? 0 : 0) || !isDrained else { break }
            isDrained = drainMembers()
            endTurn()
            lastPacket = monotonicNanoseconds()
        }
        letGo()
    }

    /// Reads and writes what has been found to be ready; false where there is more to read.
    private func drainMembers() -> Bool {
        var isDrained = true
        // Members may leave in the middle of it; one that is passed over so is found to be readable again.
        var place = 0
        while place < members.count {
            if entries[place + 1].revents != 0 {
                guard let transport = members[place].transport else {
                    removeMembers { $0 == nil }
                    continue
                }
                if entries[place + 1].revents & Int16(POLLOUT) != 0 { transport.becameWritable() }
                if !transport.drain(isPolled: true) { isDrained = false }
            }
            place += 1
        }
        return isDrained
    }

    /// Waits for a transport to become ready, or for work; false where neither happens.
    private func wait(atMost nanoseconds: UInt64) -> Bool {
        let hasWork = state.withLock { state in
            if state.work.isEmpty { state.holder = .waitingHandler }
            return !state.work.isEmpty
        }
        for place in members.indices {
            let isBackedUp = members[place].transport?.isBackedUp ?? false
            entries[place + 1].events = Int16(isBackedUp ? POLLIN | POLLOUT : POLLIN)
        }
        let milliseconds = hasWork ? 0 : Int32(clamping: nanoseconds / 1_000_000)
        if milliseconds > 0, yielding.isWorthIt(at: lastPacket) {
            sched_yield()
            yielding.yielded(from: lastPacket, to: monotonicNanoseconds())
        }
        let count = unsafe Glibc.poll(&entries, nfds_t(entries.count), milliseconds)
        state.withLock { $0.holder = .handler }
        if entries[0].revents != 0 {
            var count: UInt64 = 0
            _ = unsafe Glibc.read(wakeUp.number, &count, MemoryLayout<UInt64>.size)
        }
        return count > 0 || hasWork
    }

    // MARK: Members

    /// Polls a transport too while the queue is held.
    func add(_ transport: DescriptorTransport, descriptor: Int32) {
        removeMembers { $0 == nil }
        members.append(Member(transport: transport))
        entries.append(pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0))
    }

    func remove(_ transport: DescriptorTransport) {
        removeMembers { $0 === transport }
        unflushed.removeAll { $0 === transport }
    }

    private func removeMembers(where isLeaving: (DescriptorTransport?) -> Bool) {
        for place in members.indices.reversed() where isLeaving(members[place].transport) {
            members.remove(at: place)
            entries.remove(at: place + 1)
        }
    }

    /// Has a transport write at the end of the turn.
    func flushLater(_ transport: DescriptorTransport) {
        unflushed.append(transport)
    }
}
