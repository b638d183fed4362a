import BLE
import BLEHCITransport
import BluetoothTesting
import BluetoothTypes
import Testing

@Suite("The discarded database of a bonded device")
struct DiscardedDatabaseTests {
    private static let service: BluetoothUUID = "180F"

    /// A phone that may bond with a lamp.
    private struct Pair {
        let phone: Device
        let adapter: Adapter
        let lamp: Adapter
        let lampAddress: DeviceAddress

        init(in world: World) async throws {
            phone = world.device("phone")
            adapter = try await phone.openAdapter()
            lamp = try await world.device("lamp").openAdapter { $0.security.justWorks = .always }
            lampAddress = try await lamp.information.identityAddress
            _ = try await lamp.peripheral.publish([ServiceDefinition(uuid: DiscardedDatabaseTests.service)])
        }

        /// The number of requests for primary services that the phone has sent on each of its links.
        func discoveryRequests() throws -> [Int] {
            TracedLink.all(in: try PacketRecording(phone.capture)).map { link in
                // Read By Group Type Request.
                link.frames.count { $0.isSent && $0.channel == .attribute && $0.payload.first == 0x10 }
            }
        }

        /// Waits until the phone has validated its cache or made a new one, and asserts that the services are found.
        func discover(_ peer: RemotePeripheral, in world: World) async throws {
            try await world.sleep(for: .seconds(5))
            let services = try await peer.discoverAll()
            #expect(services.last?.uuid == DiscardedDatabaseTests.service)
        }
    }

    @Test("It is discovered again on the next connection, and only then")
    func databaseIsDiscoveredOnTheNextConnection() throws {
        let world = World(recordsCaptures: true)
        defer { world.close() }
        try world.run {
            let pair = try await Pair(in: world)
            let advertising = try await pair.lamp.peripheral.startAdvertising(AdvertisementConfiguration())
            for number in 0..<4 {
                let peer = try await pair.adapter.central.connect(to: pair.lampAddress)
                if number == 0 { try await peer.pair() }
                try await pair.discover(peer, in: world)
                await peer.disconnect()
                try await world.sleep(for: .seconds(1))
                if number == 1 { #expect(await pair.adapter.discardDatabaseCache(of: pair.lampAddress)) }
            }
            #expect(try pair.discoveryRequests().map { $0 > 0 } == [true, false, true, false])
            await advertising.stop()
        }
    }

    @Test("It is discovered again at once on a connection that exists")
    func databaseOfAConnectedDeviceIsDiscoveredAtOnce() throws {
        let world = World(recordsCaptures: true)
        defer { world.close() }
        try world.run {
            let pair = try await Pair(in: world)
            let advertising = try await pair.lamp.peripheral.startAdvertising(AdvertisementConfiguration())
            let peer = try await pair.adapter.central.connect(to: pair.lampAddress)
            try await peer.pair()
            try await pair.discover(peer, in: world)
            let before = try #require(try pair.discoveryRequests().first)
            try await pair.discover(peer, in: world)
            #expect(try pair.discoveryRequests() == [before], "the database is known")
            #expect(await pair.adapter.discardDatabaseCache(of: pair.lampAddress))
            try await pair.discover(peer, in: world)
            let after = try #require(try pair.discoveryRequests().first)
            #expect(after > before)
            await peer.disconnect()
            await advertising.stop()
        }
    }

    @Test("A device without a bond has none")
    func deviceWithoutABondHasNone() throws {
        try World.run { world in
            let adapter = try await world.device("phone").openAdapter()
            let stranger = DeviceAddress(0xC000_0000_0001, isRandom: true)
            #expect(await !adapter.discardDatabaseCache(of: stranger))
        }
    }
}
