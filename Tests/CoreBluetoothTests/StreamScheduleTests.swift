import Foundation
import Testing

@testable import CoreBluetooth

@Suite("The run loops of a stream")
struct StreamScheduleTests {
    /// A run loop that another thread uses.
    private struct Elsewhere: @unchecked Sendable {
        let runLoop: RunLoop
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
        for _ in 1...3 { _ = RunLoop.current.run(mode: .default, before: Date(timeIntervalSinceNow: 0.01)) }
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
}
