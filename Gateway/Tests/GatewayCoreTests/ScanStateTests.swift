import BLE
import ESPHomeMessages
import ESPHomeProtocol
import Testing

@testable import GatewayCore

/// The state of scans while the controller is reset, and their mode when clients go.
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

    @Test func modeOfAClientThatHasGoneDoesNotStay() async throws {
        try await withGateway { world in
            let client = try await world.client()
            let other = try await world.client()
            let last = try await world.client()
            func waitForMode(_ mode: ESPHomeBluetoothScannerMode) async throws {
                _ = try await client.next(.scannerStateResponse, as: ESPHomeBluetoothScannerStateResponse.self) {
                    $0.mode == mode
                }
            }
            try await client.send(.subscribeAdvertisementsRequest, [8, 1])
            try await waitForMode(.active)
            // The client that requests the mode receives no advertisements.
            try await other.send(.scannerSetModeRequest)
            try await waitForMode(.passive)
            try await last.send(.scannerSetModeRequest, [8, 1])
            try await waitForMode(.active)
            // The last request of those that remain counts, and then the configuration.
            try await last.close()
            try await waitForMode(.passive)
            try await other.close()
            try await waitForMode(.active)
        }
    }
}
