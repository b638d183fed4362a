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

    @Test(arguments: [SensorProtection.needsKey, .unsupported])
    func inventedAddressesDoNotSilenceTheLogAboutOthers(protection: SensorProtection) {
        let recorder = LogRecorder()
        let reader = SensorReader(gateway: "hall", keys: [:], logger: recorder.logger) { _ in }
        func receive(_ protection: SensorProtection, counter: UInt32? = nil) {
            reader.log(SensorReport(format: .bthome, protection: protection, counter: counter), "C0:DE:00:00:00:01")
        }
        for number in 0...UInt64(SensorReader.logLimit) {
            let address = DeviceAddress(0xC0DE_0001_0000 + number, isRandom: true)
            reader.log(SensorReport(format: .bthome, protection: protection), address)
        }
        #expect(recorder.messages.count == SensorReader.logLimit)
        receive(.authenticated, counter: 5000)
        receive(.replayed, counter: 1)
        #expect(recorder.messages.count == SensorReader.logLimit + 1)
        #expect(recorder.messages.last?.contains("24 hours") == true)
        receive(protection == .needsKey ? .unsupported : .needsKey)
        #expect(recorder.messages.count == SensorReader.logLimit + 2)
    }

    /// Any device can send a report that is not encrypted, or that does not match the key.
    @Test func eachKindOfProblemOfASensorIsLoggedOnce() {
        let recorder = LogRecorder()
        let reader = SensorReader(gateway: "hall", keys: [:], logger: recorder.logger) { _ in }
        func receive(_ protection: SensorProtection, counter: UInt32? = nil) {
            reader.log(SensorReport(format: .bthome, protection: protection, counter: counter), "C0:DE:00:00:00:01")
        }
        receive(.authenticated, counter: 5000)
        for _ in 0..<2 {
            receive(.downgraded)
            receive(.wrongKey)
            receive(.replayed, counter: 1)
        }
        let texts = ["is not encrypted", "do not match its key", "24 hours"]
        #expect(recorder.messages.count == 3)
        #expect(zip(recorder.messages, texts).allSatisfy { $0.contains($1) })
    }

    /// Counters of 8 bits wrap. 140 is behind 10, because it is not among the 127 after it.
    @Test(
        arguments: [
            (10, 140, 126), (250, 124, 126), (10, 138, 128), (200, 150, 50), (3, 250, 9), (10, 10, nil), (10, 9, nil),
            (3, 251, nil), (10, 137, nil),
        ] as [(UInt32, UInt32, Int?)]
    )
    func shortCounterThatIsBehindIsLoggedWithTheReportsThatAreDropped(last: UInt32, counter: UInt32, count: Int?) {
        for format in [SensorFormat.atc1441, .pvvx] {
            let recorder = LogRecorder()
            let reader = SensorReader(gateway: "hall", keys: [:], logger: recorder.logger) { _ in }
            let address: DeviceAddress = "A4:C1:38:00:00:01"
            reader.log(SensorReport(format: format, protection: .authenticated, counter: last), address)
            for _ in 0..<2 {
                reader.log(SensorReport(format: format, protection: .replayed, counter: counter), address)
            }
            #expect(recorder.messages.count == (count == nil ? 0 : 1))
            if let count {
                #expect(recorder.messages.first?.contains("at most its next \(count) reports are dropped") == true)
            }
        }
    }
}
