import BluetoothTypes

/// A call that waits for time to pass.
struct PendingSleep {
    let timer: TimerQueue.Token
    let completion: (Result<Void, HostError>) -> Void
}

extension BluetoothHost {
    /// Waits on the loop's clock.
    ///
    /// - Throws: ``HostError/cancelled`` if the task is cancelled, ``HostError/closed`` if the host is closed.
    package func sleep(for duration: Duration) async throws(HostError) {
        let identifier = makeIdentifier()
        try await withTaskCancellationHandler {
            await outcome { (completion: @escaping Completion<Void>) throws(HostError) in
                guard !Task.isCancelled else { throw .cancelled }
                guard power != .closed else { throw .closed }
                let timer = schedule(.sleep(identifier), after: duration)
                sleeps[identifier] = PendingSleep(timer: timer, completion: completion)
            }
        } onCancel: {
            spawn { $0.endSleep(identifier, .failure(.cancelled)) }
        }.get()
    }

    func endSleep(_ identifier: UInt64, _ result: Result<Void, HostError>) {
        guard let sleep = sleeps.removeValue(forKey: identifier) else { return }
        timers.cancel(sleep.timer)
        sleep.completion(result)
    }

    func endSleeps(_ error: HostError) {
        for identifier in Array(sleeps.keys) { endSleep(identifier, .failure(error)) }
    }

    /// Returns a random number of at least 0 and less than 1, from the host's source of randomness.
    package func randomFraction() -> Double {
        Double.random(in: 0..<1, using: &random)
    }
}
