import BLE
import BluetoothTesting
import Testing

@Suite("A scan that receives nothing")
struct SilentScanTests {
    @Test("It is restarted after the configured time, or never", arguments: [10, nil] as [Int?])
    func silentScanIsRestartedAsConfigured(seconds: Int?) throws {
        try World.run { world in
            let adapter = try await world.device("gateway").openAdapter {
                $0.scanSilenceTimeout = seconds.map { Duration.seconds($0) }
            }
            let restarts = Log<Duration>()
            let events = await adapter.events()
            let observing = Task(executorPreference: world.taskExecutor) {
                for await case .scanRestarted(let silence) in events { restarts.append(silence) }
            }
            let scanning = Task(executorPreference: world.taskExecutor) {
                for try await _ in adapter.central.scan() {}
            }
            // Longer than the configured time, or than several times of the default.
            try await world.sleep(for: .seconds(seconds == nil ? 400 : 15))
            let expected = seconds.map { [Duration.seconds($0)] } ?? []
            #expect(restarts.all == expected)
            scanning.cancel()
            _ = await scanning.result
            await adapter.close()
            await observing.value
        }
    }
}
