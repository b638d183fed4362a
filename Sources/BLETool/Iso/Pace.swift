/// The times at which SDUs are sent: one in each interval.
struct Pace {
    let interval: Duration
    private var next = ContinuousClock.now

    init(interval: Duration) {
        self.interval = interval
    }

    /// Waits until the next SDU is to be sent. An SDU that is late does not delay the later ones.
    mutating func wait() async throws {
        next += interval
        try await Task.sleep(until: next, clock: .continuous)
    }
}
