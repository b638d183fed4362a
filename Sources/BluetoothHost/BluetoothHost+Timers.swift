import BluetoothTypes

extension BluetoothHost {
    /// Sets a timer. After `delay`, ``timerFired(_:)`` is called with the key.
    func schedule(_ key: TimerKey, after delay: Duration) -> TimerQueue.Token {
        schedule(key, at: loop.now + delay)
    }

    /// Sets a timer. When it is due, ``timerFired(_:)`` is called with the key.
    func schedule(_ key: TimerKey, at due: Instant) -> TimerQueue.Token {
        let token = timers.schedule(key, at: due)
        armAlarm()
        return token
    }

    /// Starts a task on the loop. The part of `body` before its first suspension or return is an input: see
    /// ``endInput()``.
    package nonisolated func spawn(_ body: @escaping @Sendable (isolated BluetoothHost) async -> Void) {
        #if DEBUG
            Task(executorPreference: loop.taskExecutor) { await self.runCounted(body) }
        #else
            Task(executorPreference: loop.taskExecutor) { await body(self) }
        #endif
    }

    #if DEBUG
        /// Counts a task while it runs, for tests that look for leaks. Only in debug builds, because counting adds
        /// a tenth to the cost of a connection.
        private func runCounted(_ body: (isolated BluetoothHost) async -> Void) async {
            turn.taskCount += 1
            await body(self)
            turn.taskCount -= 1
        }
    #endif

    /// Sets the alarm for the next timer, unless the alarm is due earlier.
    private func armAlarm() {
        guard let due = timers.nextAlarm() else { return }
        let alarm = timers.alarm ?? loop.makeAlarm { [weak self] in self?.assumeIsolated { $0.runDueTimers() } }
        timers.alarm = alarm
        alarm.set(due)
    }

    private func runDueTimers() {
        timers.alarmFired()
        while let key = timers.takeDue(at: loop.now) {
            timerFired(key)
            endInput()
        }
        armAlarm()
    }

    /// Runs the action of a timer. A stale key does nothing: see ``TimerKey``.
    func timerFired(_ key: TimerKey) {
        switch key {
        case .engine(let engine): deadlineReached(of: engine)
        case .stallCheck: endStalledLinks()
        case .link(let identifier): if let link = links[identifier] { deadlineReached(of: link) }
        case .channelClassification: advanceChannelClassification()
        case .update: updateDeadlineReached()
        case .pairingWindow: pairingWindowExpired()
        case .sleep(let call): end(call, .success(()))
        case .action(let action): deliver(.action(action))
        }
    }

    /// Sets the timer of an engine to its deadline; for nil, cancels it.
    func setTimer(of engine: TimerQueue.Engine, to deadline: Instant?) {
        timers.set(engine, to: deadline)
        armAlarm()
    }

    private func deadlineReached(of engine: TimerQueue.Engine) {
        timers.clear(engine)
        switch engine {
        case .session: sessionDeadlineReached()
        case .gap: gapDeadlineReached()
        }
    }
}
