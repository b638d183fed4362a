import BluetoothTypes

/// A world's time. It does not pass while there is work, and then jumps to the time of the next work.
///
/// Give it to code under test that takes a `Clock` whose `Duration` is `Swift.Duration`.
public struct WorldClock: Clock {
    /// An instant of a world's time.
    public struct Instant: InstantProtocol {
        /// The age of the world.
        public let sinceStart: Duration

        /// Creates the instant at an age of the world.
        public init(sinceStart: Duration) {
            self.sinceStart = sinceStart
        }

        /// Returns the instant that is later by `duration`.
        public func advanced(by duration: Duration) -> Instant {
            Instant(sinceStart: sinceStart + duration)
        }

        /// Returns the time from this instant to another one.
        public func duration(to other: Instant) -> Duration {
            other.sinceStart - sinceStart
        }

        public static func < (left: Instant, right: Instant) -> Bool { left.sinceStart < right.sinceStart }
    }

    let world: World

    /// The world's current time.
    public var now: Instant { Instant(sinceStart: world.elapsed) }

    /// One nanosecond.
    public var minimumResolution: Duration { .nanoseconds(1) }

    /// Waits in the world's time.
    ///
    /// - Throws: `CancellationError` if the task is cancelled or the world is closed.
    public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
        try await world.sleep(until: deadline, caller: "a clock's sleep")
    }
}
