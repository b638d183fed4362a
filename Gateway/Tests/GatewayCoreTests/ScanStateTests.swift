import BLE
import Testing

@testable import GatewayCore

/// The state of a scan while the controller is reset.
@Suite(.timeLimit(.minutes(2)))
struct ScanStateTests {
    @Test func adapterThatIsResetDoesNotScanForNewClients() async throws {
        try await withTable(adapterCount: 1) { world in
            let (runner, scanner) = (world.runners[0], world.scanner)
            runner.handle(.resetting(reason: "test"), world.table.adaptersChanged)
            scanner.subscribe(try await world.makeClient())
            // The host has started the scan. The controller works in fact, so advertisements arrive.
            while scanner.advertisementCount == 0 { await Task.yield() }
            #expect(!scanner.isScanning(0))
            runner.handle(.poweredOn(try await world.adapters[0].information), world.table.adaptersChanged)
            #expect(scanner.isScanning(0))
        }
    }
}
