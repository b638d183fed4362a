import BLE
import BluetoothTesting
import Testing

@Suite("A scripted peripheral")
struct ScriptedPeripheralTests {
    // MARK: Reliable writes

    /// Connects a phone to a lamp with two values.
    ///
    /// - Parameter answer: the answer to writes of the second value.
    private static func lamp(
        in world: World,
        answer: ScriptedAnswer = .accept
    ) async throws -> (lamp: ScriptedPeripheral, peer: RemotePeripheral, handles: [AttributeHandle]) {
        let characteristics = [
            ScriptedCharacteristic("FFE1", properties: [.read, .write], value: [7]),
            ScriptedCharacteristic("FFE2", properties: [.read, .write], value: [8], onWrite: { _ in answer }),
        ]
        let lamp = try await world.peripheral("lamp", services: [ScriptedService("FFE0", characteristics)])
        let phone = try await world.device("phone").openAdapter()
        let peer = try await phone.central.connect(to: lamp.address)
        let first = try #require(lamp.valueHandle(of: "FFE1"))
        let second = try #require(lamp.valueHandle(of: "FFE2"))
        return (lamp, peer, [first, second])
    }

    @Test func reliableWritesToOneValueAreAppliedInTheirOrder() throws {
        try World.run { world in
            let (lamp, peer, handles) = try await Self.lamp(in: world)
            try await peer.writeReliably([ReliableWrite([1, 1], to: handles[0]), ReliableWrite([2], to: handles[0])])
            #expect(lamp.value(of: "FFE1") == [2])
            #expect(lamp.writes.map(\.value) == [[2]])
        }
    }

    @Test("Reliable writes to several values take effect together", arguments: [Duration.zero, .seconds(1)])
    func reliableWritesToSeveralValuesTakeEffectTogether(delay: Duration) throws {
        try World.run { world in
            let (lamp, peer, handles) = try await Self.lamp(in: world, answer: .after(delay, .accept))
            let start = world.elapsed
            try await peer.writeReliably([ReliableWrite([3], to: handles[1]), ReliableWrite([1, 2], to: handles[0])])
            #expect(world.elapsed - start >= delay)
            #expect(lamp.value(of: "FFE1") == [1, 2] && lamp.value(of: "FFE2") == [3])
            #expect(lamp.writes.map(\.uuid) == ["FFE2", "FFE1"])
        }
    }

    @Test func reliableWritesOfWhichOneIsRefusedHaveNoEffect() throws {
        try World.run { world in
            let (lamp, peer, handles) = try await Self.lamp(in: world, answer: .refuse(.valueNotAllowed))
            await #expect(throws: BLEError.attribute(.valueNotAllowed, handle: handles[0])) {
                try await peer.writeReliably([ReliableWrite([1], to: handles[0]), ReliableWrite([2], to: handles[1])])
            }
            #expect(lamp.value(of: "FFE1") == [7] && lamp.value(of: "FFE2") == [8])
            #expect(lamp.writes.isEmpty)
        }
    }

    // MARK: Advertising

    @Test func servicesAreAdvertisedAsFarAsTheyFit() throws {
        let services: [BluetoothUUID] = [
            "5C3A1001-0000-4000-8000-00805F9B34FB", "5C3A1002-0000-4000-8000-00805F9B34FB",
        ]
        try World.run(limit: .seconds(10)) { world in
            let lamp = try await world.peripheral("lamp", services: services.map { ScriptedService($0, []) })
            let phone = try await world.device("phone").openAdapter()
            for try await advertisement in phone.central.scan(ScanOptions(serviceUUIDs: [services[0]])) {
                #expect(advertisement.address == lamp.address)
                #expect(advertisement.serviceUUIDs == [services[0]])
                // An incomplete list of 128-bit UUIDs follows the flags.
                #expect(advertisement.advertisingData.dropFirst(3).starts(with: [17, 0x06]))
                break
            }
        }
    }

    // MARK: Schedules

    /// Adds a device that indicates a value each second.
    private static func counter(in world: World) async throws -> ScriptedPeripheral {
        let characteristic = ScriptedCharacteristic(
            "FFE1",
            properties: .indicate,
            schedule: .every(.seconds(1)) { [UInt8(truncatingIfNeeded: $0)] }
        )
        return try await world.peripheral("counter", services: [ScriptedService("FFE0", [characteristic])])
    }

    /// Subscribes to the value. A confirmation takes at least a connection interval.
    private static func subscribe(_ device: Device, to counter: ScriptedPeripheral) async throws -> Subscription {
        let peer = try await device.openAdapter().central.connect(
            to: counter.address,
            parameters: ConnectionParameters(
                interval: .milliseconds(400)...(.milliseconds(400)),
                supervisionTimeout: .seconds(30)
            )
        )
        return try await peer.subscribe(to: try await peer.characteristic("FFE1", in: "FFE0"))
    }

    /// Returns the time between a value and the value that comes `count` values later.
    private static func time(of count: Int, _ subscription: Subscription, in world: World) async throws -> Duration {
        var start = Duration.zero
        var received = 0
        for try await _ in subscription {
            if received == 0 { start = world.elapsed }
            received += 1
            if received > count { break }
        }
        return world.elapsed - start
    }

    @Test func scheduleOfIndicationsKeepsItsInterval() throws {
        try World.run { world in
            let counter = try await Self.counter(in: world)
            let subscription = try await Self.subscribe(world.device("phone"), to: counter)
            let time = try await Self.time(of: 60, subscription, in: world)
            #expect(time >= .seconds(59) && time <= .seconds(61), "\(time)")
        }
    }

    /// The lost client has more unconfirmed indications than the peripheral keeps for it.
    @Test func lostClientDoesNotDelayTheIndicationsOfOthers() throws {
        try World.run { world in
            let counter = try await Self.counter(in: world)
            let lost = world.device("lost")
            let unread = try await Self.subscribe(lost, to: counter)
            let subscription = try await Self.subscribe(world.device("phone"), to: counter)
            lost.vanish()
            let time = try await Self.time(of: 20, subscription, in: world)
            #expect(time >= .seconds(19) && time <= .seconds(21), "\(time)")
            withExtendedLifetime(unread) {}
        }
    }
}
