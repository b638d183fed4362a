import BLE
import BluetoothTesting
import Testing

@Suite("An advertisement with extended PDUs that has its data in the scan response only")
struct ScannableAdvertisingTests {
    @Test("is received by an active scan, as short and as long data", arguments: [3, 100])
    func responseIsReceived(length: Int) throws {
        try World.run { world in
            let sender = try await world.device("sender").openAdapter()
            let scanner = try await world.device("scanner").openAdapter()
            let name = String(repeating: "x", count: length)
            let advertising = try await sender.peripheral.startAdvertising(
                AdvertisementConfiguration(
                    isConnectable: false,
                    scanResponseData: AdvertisingData([.completeLocalName(name)]),
                    usesExtendedPDUs: true
                )
            )
            for try await advertisement in scanner.central.scan() where advertisement.localName == name {
                #expect(!advertisement.isConnectable)
                break
            }
            await advertising.stop()
        }
    }
}
