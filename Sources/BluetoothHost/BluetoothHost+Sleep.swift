import BluetoothTypes

extension BluetoothHost {
    /// Waits on the loop's clock.
    ///
    /// - Throws: ``HostError/cancelled`` if the task is cancelled, ``HostError/closed`` if the host is closed.
    package func sleep(for duration: Duration) async throws(HostError) {
        try await wait(for: .time) { host, call in
            guard host.power != .closed else { return host.end(call, .failure(.closed)) }
            host.calls.setTimer(host.schedule(.sleep(call), after: duration), of: call)
        }
    }

    func endSleeps(_ error: HostError) {
        for call in calls.sleeps { end(call, .failure(error)) }
    }

    /// Returns a random number of at least 0 and less than 1, from the host's source of randomness.
    package func randomFraction() -> Double {
        Double.random(in: 0..<1, using: &random)
    }
}
