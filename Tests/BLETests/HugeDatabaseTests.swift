import BLE
import BluetoothTesting
import Testing

@Suite("A peer with a huge database")
struct HugeDatabaseTests {
    @Test("Discovery of too many characteristics fails with the limit, and the link stays usable")
    func discoveryOfTooManyCharacteristicsEnds() throws {
        try World.run(seed: 7) { world in
            let server = try await world.device("server").openAdapter()
            let definition = CharacteristicDefinition(
                uuid: "2A19",
                properties: [.read],
                permissions: [.read],
                value: .stored([7])
            )
            let published = try await server.peripheral.publish([
                ServiceDefinition(uuid: "180F", characteristics: Array(repeating: definition, count: 2_100))
            ])
            let advertising = try await server.peripheral.startAdvertising(
                AdvertisementConfiguration(interval: .milliseconds(30))
            )
            let client = try await world.device("client").openAdapter()
            let peer = try await client.central.connect(to: server.information.identityAddress)
            let error = await #expect(throws: BLEError.self) { try await peer.discoverAll() }
            #expect("\(String(describing: error))".contains("the peer has more than 2000 attributes"))
            let handle = try #require(published.first?.characteristics.last?.valueHandle)
            #expect(try await peer.read(handle) == [7])
            await advertising.stop()
        }
    }
}
