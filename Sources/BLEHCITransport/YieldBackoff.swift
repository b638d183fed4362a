/// Decides whether a busy queue yields the processor before it sleeps.
///
/// A host often waits for work on the same processor: that of the kernel's Bluetooth threads, or of a software
/// controller. If these run first, there is something to read afterwards, and the thread need not sleep and wake. But a
/// computing program keeps the processor for milliseconds after a yield, whereas a sleeping thread preempts it. So a
/// yield that takes long is not repeated soon: the pause before the next grows with each.
///
/// Times are in nanoseconds of a clock that only moves forward.
struct YieldBackoff {
    /// The longest duration of a profitable yield, in nanoseconds.
    static let patience: UInt64 = 200_000
    static let shortestPause: UInt64 = 10_000_000
    static let longestPause: UInt64 = 10_000_000_000

    private var pause = shortestPause
    private var pauseEnd: UInt64 = 0

    func isWorthIt(at now: UInt64) -> Bool {
        now >= pauseEnd
    }

    mutating func yielded(from start: UInt64, to end: UInt64) {
        if end > start &+ YieldBackoff.patience {
            pauseEnd = end &+ pause
            pause = min(pause * 2, YieldBackoff.longestPause)
        } else {
            pause = max(pause - pause / 16, YieldBackoff.shortestPause)
        }
    }
}
