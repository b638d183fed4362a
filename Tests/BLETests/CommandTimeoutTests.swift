import BLE
import BLEVirtualController
import BluetoothTesting
import Testing

@Suite("The time limit for the answers of a controller")
struct CommandTimeoutTests {
    @Test("A limit below 100 ms is taken as 100 ms", arguments: [Duration.milliseconds(1), .zero, .seconds(-1)])
    func shortLimitIsTakenAs100Milliseconds(limit: Duration) throws {
        try World.run { world in
            let device = world.device("slow")
            device.faults = ControllerFaults(completionDelay: .milliseconds(50))
            let adapter = try await device.openAdapter { $0.commandTimeout = limit }
            #expect(try await adapter.information.numberOfAdvertisingSets >= 1)
        }
    }
}
