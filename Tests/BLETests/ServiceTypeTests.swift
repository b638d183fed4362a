import BLE
import BLEHCITransport
import BluetoothTesting
import BluetoothTypes
import Testing

@Suite("Discovering services by UUID")
struct ServiceTypeTests {
    /// The request for services of a type in all handles, from its parameter Attribute Value on.
    private static func request(_ value: [UInt8]) -> [UInt8] { [0x06, 0x01, 0x00, 0xFF, 0xFF, 0x00, 0x28] + value }

    /// Runs `body` with a connection to a device that has the Battery service.
    ///
    /// - Returns: the result of `body`, and the requests for services of a type that it has caused. Only those that
    ///   begin at the first handle count.
    private static func run<Value: Sendable>(
        _ body: @escaping @Sendable (RemotePeripheral) async throws -> Value
    ) throws -> (value: Value, requests: [[UInt8]]) {
        let world = World(recordsCaptures: true)
        defer { world.close() }
        return try world.run {
            let phone = world.device("phone")
            let adapter = try await phone.openAdapter()
            let sensor = try await world.device("sensor").openAdapter()
            let level = CharacteristicDefinition(
                uuid: "2A19",
                properties: .read,
                permissions: .read,
                value: .stored([99])
            )
            _ = try await sensor.peripheral.publish([ServiceDefinition(uuid: "180F", characteristics: [level])])
            let advertising = try await sensor.peripheral.startAdvertising(AdvertisementConfiguration())
            let peer = try await adapter.central.connect(to: sensor.information.identityAddress)
            // The host has sent its own requests by then.
            try await world.sleep(for: .seconds(5))
            let before = try Self.requests(in: phone).count
            let value = try await body(peer)
            let caused = try Self.requests(in: phone).dropFirst(before)
            await advertising.stop()
            return (value, Array(caused))
        }
    }

    private static func requests(in phone: Device) throws -> [[UInt8]] {
        TracedLink.all(in: try PacketRecording(phone.capture)).flatMap(\.frames).filter { frame in
            frame.isSent && frame.channel == .attribute && frame.payload.starts(with: Self.request([]))
        }.map(\.payload)
    }

    /// Many servers compare the bytes of the request with their declarations, most of which have 16 bits.
    @Test(
        arguments: [
            ["180F"], ["0000180F"], ["0000180F-0000-1000-8000-00805F9B34FB"],
            ["180F", "0000180F-0000-1000-8000-00805F9B34FB", "180F"],
        ] as [[BluetoothUUID]]
    )
    func typeIsSentOnceInItsShortestForm(types: [BluetoothUUID]) throws {
        let (found, requests) = try Self.run { try await $0.discoverServices(types).map(\.uuid) }
        #expect(found == ["180F"])
        #expect(requests == [Self.request([0x0F, 0x18])])
    }

    @Test func characteristicIsFoundByTheLongFormOfItsService() throws {
        let (level, requests) = try Self.run { peer in
            let level = try await peer.characteristic("2A19", in: "0000180F-0000-1000-8000-00805F9B34FB")
            return try await peer.read(level)
        }
        #expect(level == [99])
        #expect(requests == [Self.request([0x0F, 0x18])])
    }

    @Test func typeThatIsNotFoundIsLookedForInItsLongForm() throws {
        let (found, requests) = try Self.run { try await $0.discoverServices(["AAAA"]).map(\.uuid) }
        let long: [UInt8] = [
            0xFB, 0x34, 0x9B, 0x5F, 0x80, 0x00, 0x00, 0x80, 0x00, 0x10, 0x00, 0x00, 0xAA, 0xAA, 0x00, 0x00,
        ]
        #expect(found.isEmpty)
        #expect(requests == [Self.request([0xAA, 0xAA]), Self.request(long)])
    }
}
