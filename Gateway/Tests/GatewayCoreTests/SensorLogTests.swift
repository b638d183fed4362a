import BLE
import BluetoothSensors
import Logging
import Synchronization
import Testing

@testable import GatewayCore

/// What the log says about encrypted sensors.
struct SensorLogTests {
    private final class Recorder: Sendable {
        private let recorded = Mutex<[String]>([])
        var lines: [String] { recorded.withLock { $0 } }
        var logger: Logger { Logger(label: "test", factory: { _ in Handler(recorder: self) }) }

        private struct Handler: LogHandler {
            let recorder: Recorder
            var metadata: Logger.Metadata = [:]
            var logLevel = Logger.Level.trace

            subscript(metadataKey key: String) -> Logger.Metadata.Value? {
                get { metadata[key] }
                set { metadata[key] = newValue }
            }

            func log(event: LogEvent) { recorder.recorded.withLock { $0.append("\(event.message)") } }
        }
    }

    @Test func counterThatGoesBackFarIsLoggedOnce() {
        let recorder = Recorder()
        let reader = SensorReader(gateway: "hall", keys: [:], logger: recorder.logger) { _ in }
        func receive(_ counter: UInt32, _ protection: SensorProtection) {
            reader.log(SensorReport(format: .bthome, protection: protection, counter: counter), "C0:DE:00:00:00:01")
        }
        receive(5000, .authenticated)
        for counter in [5000, 4999, 4900] as [UInt32] { receive(counter, .replayed) }
        #expect(recorder.lines.isEmpty, "repeated and late reports")
        receive(1, .replayed)
        receive(2, .replayed)
        #expect(recorder.lines.count == 1 && recorder.lines.first?.contains("24 hours") == true)
    }
}
