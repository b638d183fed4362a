import BLE
import BluetoothTesting
import Testing

@Suite("Closing an adapter")
struct ClosingTests {
    @Test("An adapter stops advertising before its links end, so no peer finds it again", arguments: [false, true])
    func adapterStopsAdvertisingBeforeItsLinksEnd(isLegacy: Bool) throws {
        try World.run { world in
            let server = try await world.device("server") { if isLegacy { $0.features = .bluetooth42 } }.openAdapter()
            let client = try await world.device("client").openAdapter()
            let observer = try await world.device("observer").openAdapter()
            let configuration = AdvertisementConfiguration(interval: .milliseconds(20))
            let advertising = try await server.peripheral.startAdvertising(configuration)
            let parameters = ConnectionParameters(
                interval: .seconds(1)...(.seconds(1)),
                supervisionTimeout: .seconds(10)
            )
            let address = try await server.information.identityAddress
            let peer = try await client.central.connect(to: address, parameters: parameters)
            let heard = Log<Duration>()
            let scanning = Task(executorPreference: world.taskExecutor) {
                for try await _ in observer.central.scan(ScanOptions(isActive: false, reportsDuplicates: true)) {
                    heard.append(world.elapsed)
                }
            }
            try await world.sleep(for: .seconds(2))
            let start = world.elapsed
            await server.close()
            let end = world.elapsed
            _ = try await peer.disconnection()
            scanning.cancel()
            _ = await scanning.result
            // The end of the link takes connection events, in which the server could advertise many times.
            #expect(end > start + .milliseconds(200))
            #expect(heard.all.count > 20)
            #expect(heard.all.allSatisfy { $0 < start + .milliseconds(20) })
            withExtendedLifetime(advertising) {}
        }
    }
}
