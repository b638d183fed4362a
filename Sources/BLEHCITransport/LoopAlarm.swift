import Dispatch

/// A one-shot timer on a ``LoopQueue``, which can be set repeatedly. It is set on the queue only.
///
/// A timer of the queue itself would fire only after a hold of the queue. A hold ends when an alarm is due.
///
/// An alarm that is more than 5 ms late, because the queue was blocked, first lets the transports deliver the packets
/// that have arrived. Otherwise a time limit would end a wait whose answer is there already.
package final class LoopAlarm {
    /// When an alarm fires, in nanoseconds of the monotonic clock. Its loop refers to it weakly.
    final class Due {
        var nanoseconds = UInt64.max
        fileprivate var isRegistered = false
    }

    /// An alarm that fires later than this after its time is late, in nanoseconds. It exceeds the leeway of any alarm.
    private static let lateness: UInt64 = 5_000_000

    private let loop: LoopQueue
    private let timer: any DispatchSourceTimer
    private let leeway: DispatchTimeInterval
    private let due: LoopConfined<Due>

    /// - Parameters:
    ///   - leeway: how much later than set the timer may fire, so that the system can combine wake-ups.
    ///   - action: is called on the queue.
    package init(
        on loop: LoopQueue,
        leeway: DispatchTimeInterval = .milliseconds(1),
        _ action: @escaping @Sendable () -> Void
    ) {
        self.loop = loop
        self.leeway = leeway
        let due = LoopConfined(Due(), to: loop.queue)
        self.due = due
        timer = DispatchSource.makeTimerSource(queue: loop.queue)
        timer.setEventHandler {
            let time = due.value.nanoseconds
            if time < .max - Self.lateness, monotonicNanoseconds() > time + Self.lateness {
                loop.readAll()
                // A packet may have turned the alarm off, or set it to a time at which the timer fires again.
                guard due.value.nanoseconds == time else { return }
            }
            due.value.nanoseconds = .max
            action()
        }
        timer.schedule(deadline: .distantFuture)
        timer.activate()
    }

    deinit {
        timer.cancel()
    }

    /// Makes the alarm fire once at a time, in nanoseconds of the monotonic clock, or immediately if that is in the
    /// past. Nil turns the alarm off.
    package func set(_ nanoseconds: UInt64?) {
        let due = due.value
        due.nanoseconds = nanoseconds ?? .max
        if !due.isRegistered {
            due.isRegistered = true
            loop.add(due)
        }
        guard let nanoseconds else { return timer.schedule(deadline: .distantFuture) }
        // Dispatch takes a greater number for a time of another clock, which has passed.
        let latest = UInt64(Int64.max)
        timer.schedule(deadline: DispatchTime(uptimeNanoseconds: min(max(nanoseconds, 1), latest)), leeway: leeway)
    }
}
