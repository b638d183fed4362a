import Foundation
import Testing

@testable import CoreBluetooth

@Suite("The run loops of a stream")
struct StreamScheduleTests {
    /// A run loop that another thread uses.
    private struct Elsewhere: @unchecked Sendable {
        let runLoop: RunLoop
    }

    /// Runs this thread's run loop until a condition is true, for at most 30 s.
    private static func runLoop(until isTrue: () -> Bool) {
        let deadline = ContinuousClock.now + .seconds(30)
        while !isTrue(), ContinuousClock.now < deadline { runLoopOnce() }
    }

    private static func runLoopOnce() {
        _ = RunLoop.current.run(mode: .default, before: Date(timeIntervalSinceNow: 0.01))
    }

    /// Lets another thread schedule a stream on this thread's run loop, and remove it if `isRemoved` is true. Then runs
    /// the run loop.
    ///
    /// - Returns: whether the stream is scheduled, and the number of its calls.
    private static func run(isRemoved: Bool) -> (isScheduled: Bool, calls: Int) {
        let schedule = StreamSchedule()
        let calls = Guarded(0)
        schedule.perform = { calls.withLock { $0 += 1 } }
        let elsewhere = Elsewhere(runLoop: .current)
        let isDone = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            schedule.add(elsewhere.runLoop, .default)
            if isRemoved { schedule.remove(elsewhere.runLoop, .default) }
            isDone.signal()
        }
        isDone.wait()
        schedule.signal()
        // The schedule uses a timer, which fires before this one.
        let hasFired = Guarded(false)
        let timer = Timer(fire: Date(timeIntervalSinceNow: 0.01), interval: 0, repeats: false) { _ in
            hasFired.withLock { $0 = true }
        }
        RunLoop.current.add(timer, forMode: .default)
        runLoop { hasFired.withLock { $0 } }
        // For the source, which the schedule's timer may have added.
        runLoopOnce()
        if !isRemoved { runLoop { calls.withLock { $0 } > 0 } }
        return (!schedule.isEmpty, calls.withLock { $0 })
    }

    @Test("A stream that another thread removes before the run loop has run stays removed", arguments: [true, false])
    func removalBeforeTheRunLoopHasRunCounts(isRemoved: Bool) async {
        let result: (isScheduled: Bool, calls: Int) = await withCheckedContinuation { continuation in
            Thread.detachNewThread { continuation.resume(returning: Self.run(isRemoved: isRemoved)) }
        }
        #expect(result.isScheduled == !isRemoved)
        #expect((result.calls > 0) == !isRemoved)
    }

    /// Schedules a stream in the common modes and runs the run loop in the default mode, which is one of them. Then
    /// removes the stream and runs the run loop again.
    ///
    /// - Returns: the number of calls before the removal, and after it.
    private static func runInCommonModes() -> (before: Int, after: Int) {
        let schedule = StreamSchedule()
        let calls = Guarded(0)
        schedule.perform = { calls.withLock { $0 += 1 } }
        schedule.add(.current, .common)
        runLoop { calls.withLock { $0 } > 0 }
        let before = calls.withLock { $0 }
        schedule.remove(.current, .common)
        schedule.signal()
        runLoopOnce()
        return (before, calls.withLock { $0 } - before)
    }

    @Test func streamInTheCommonModesCallsInTheDefaultMode() async {
        let calls: (before: Int, after: Int) = await withCheckedContinuation { continuation in
            Thread.detachNewThread { continuation.resume(returning: Self.runInCommonModes()) }
        }
        #expect(calls.before > 0)
        #expect(calls.after == 0)
    }
}
