import BLE
import ProgramSupport

/// A minimal gateway: it advertises, and prints each device once when it is first received.
///
///     minimal-gateway ADAPTER [--scan] [--advertise] [--connect]
@main
struct MinimalGateway {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count >= 2 else {
            fail("usage: minimal-gateway ADAPTER [--scan] [--advertise] [--connect]")
        }
        let adapter = try await Adapter.open(AdapterSpecification(parsing: arguments[1]))
        var advertising: AdvertisingSet?
        if arguments.contains("--advertise") {
            let data = AdvertisingData([.flags([.generalDiscoverable, .brEdrNotSupported])])
            advertising = try await adapter.peripheral.startAdvertising(
                AdvertisementConfiguration(advertisingData: data)
            )
        }
        if arguments.contains("--connect") {
            let addresses = [0x4E55_4C00_0001, 0x4E55_4C00_0002, 0x5642_4C45_0001, 0x5642_4C45_0002] as [UInt64]
            let peer = try await adapter.central.connect(
                toAnyOf: addresses.map { DeviceAddress($0, isRandom: false) }
            )
            _ = try await peer.disconnection()
        }
        if arguments.contains("--scan") {
            for try await advertisement in adapter.central.scan() { print(advertisement.address) }
        }
        for await _ in await adapter.events() {}
        await advertising?.stop()
    }
}
