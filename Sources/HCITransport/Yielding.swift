/// Decides whether a busy queue lets others have its processor before it sleeps.
///
/// What a host waits for is often made on the same processor: by the kernel's Bluetooth threads, or by a controller in
/// software. Where these have their turn first, there is something to read afterwards, and the thread need not be put to
/// sleep and woken. But a program that computes keeps the processor for milliseconds when it is let have it, and a thread that
/// sleeps is woken before that one's time is over. So a yield that takes long is not repeated soon: after a pause that grows
/// with each.
///
/// Times are in nanoseconds of a clock that only moves forward.
struct Yielding {
    /// How long a yield takes at the most that is worth it.
    static let patience: UInt64 = 200_000
    static let shortestPause: UInt64 = 10_000_000
    static let longestPause: UInt64 = 10_000_000_000

    private var pause = shortestPause
    private var pauseEnd: UInt64 = 0

    func isWorthIt(at now: UInt64) -> Bool {
        now >= pauseEnd
    }

    mutating func yielded(from start: UInt64, to end: UInt64) {
        if end > start &+ Yielding.patience {
            pauseEnd = end &+ pause
            pause = min(pause * 2, Yielding.longestPause)
        } else {
            pause = max(pause - pause / 16, Yielding.shortestPause)
        }
    }
}
