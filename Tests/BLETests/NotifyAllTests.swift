import BLE
import BluetoothTesting
import Testing

@Suite("A notification to all clients")
struct NotifyAllTests {
    private static let sensor = ServiceDefinition(
        uuid: "A730",
        characteristics: [
            CharacteristicDefinition(uuid: "A731", properties: .notify, permissions: [], value: .stored([]))
        ]
    )

    @Test func notificationToAllDoesNotWaitForTheSlowestClient() throws {
        try World.run { world in
            let server = world.device("server")
            let peripheral = try await server.openAdapter().peripheral
            let handle = try await peripheral.publish([Self.sensor])[0].characteristics[0].valueHandle
            let advertisement = AdvertisingData([.serviceUUIDs(["A730"], isComplete: true)])
            let advertising = try await peripheral.startAdvertising(
                AdvertisementConfiguration(advertisingData: advertisement)
            )
            let devices = [world.device("fast"), world.device("slow")]
            let logs = [Log<[UInt8]>(), Log<[UInt8]>()]
            var tasks: [Task<Void, Never>] = []
            for (device, log) in zip(devices, logs) {
                let central = try await device.openAdapter().central
                let peer = try await central.connect(
                    to: server.address,
                    parameters: ConnectionParameters(supervisionTimeout: .seconds(30))
                )
                let services = try await peer.discoverServices(["A730"])
                let characteristics = try await peer.discoverCharacteristics(of: #require(services.first))
                let subscription = try await peer.subscribe(to: #require(characteristics.first))
                tasks.append(
                    Task(executorPreference: world.taskExecutor) {
                        do {
                            for try await value in subscription { log.append(value.value) }
                        } catch {}
                    }
                )
            }
            try await world.sleep(for: .seconds(2))
            // The link stays, but no packet reaches the slow client.
            var conditions = world.conditions
            conditions.isDead = true
            world.setConditions(conditions, between: server, and: devices[1])
            let start = world.elapsed
            for number in UInt8(1)...200 { try await peripheral.notify([number], of: handle) }
            #expect(world.elapsed - start < .seconds(10))
            try await world.sleep(for: .seconds(2))
            #expect(logs[0].all == (UInt8(1)...200).map { [$0] })
            #expect(logs[1].all.count < 200)
            for task in tasks { task.cancel() }
            await advertising.stop()
        }
    }
}
