import BLE
import BluetoothSensors
import GatewayTestSupport
import Testing

@testable import GatewayCore

/// What the log says about encrypted sensors.
struct SensorLogTests {
    @Test func counterThatGoesBackFarIsLoggedOnce() {
        let recorder = LogRecorder()
        let reader = SensorReader(gateway: "hall", keys: [:], logger: recorder.logger) { _ in }
        func receive(_ counter: UInt32, _ protection: SensorProtection) {
            reader.log(SensorReport(format: .bthome, protection: protection, counter: counter), "C0:DE:00:00:00:01")
        }
        receive(5000, .authenticated)
        for counter in [5000, 4999, 4900] as [UInt32] { receive(counter, .replayed) }
        #expect(recorder.messages.isEmpty, "repeated and late reports")
        receive(1, .replayed)
        receive(2, .replayed)
        #expect(recorder.messages.count == 1 && recorder.messages.first?.contains("24 hours") == true)
    }
}
