import BluetoothTypes

extension BluetoothHost {
    /// Runs `action` on the loop after `delay`.
    func schedule(after delay: Duration, _ action: @escaping () -> Void) -> TimerQueue.Token {
        schedule(at: loop.now + delay, action)
    }

    func schedule(at due: Instant, _ action: @escaping () -> Void) -> TimerQueue.Token {
        let token = timers.schedule(at: due, action)
        armAlarm()
        return token
    }

    /// Starts a task on the loop.
    package nonisolated func spawn(_ body: @escaping @Sendable (isolated BluetoothHost) async -> Void) {
        Task(executorPreference: loop.taskExecutor) { await body(self) }
    }

    /// Starts a task on the loop for an object that is released. Does nothing if the host has ended, because it holds
    /// nothing then; the loop may have stopped and would keep the task, and with it the host.
    package nonisolated func cleanUp(_ body: @escaping @Sendable (isolated BluetoothHost) async -> Void) {
        guard !hasEnded else { return }
        spawn(body)
    }

    /// Sets the alarm for the next timer, unless it goes off by then anyway.
    private func armAlarm() {
        guard let due = timers.nextDue else { return }
        if let armedFor, armedFor <= due { return }
        if alarm == nil {
            alarm = loop.makeAlarm { [weak self] in
                self?.assumeIsolated { $0.runDueTimers() }
            }
        }
        armedFor = due
        alarm?.set(due)
    }

    private func runDueTimers() {
        armedFor = nil
        while let action = timers.takeDue(at: loop.now) { action() }
        sendPending()
        armAlarm()
    }
}
