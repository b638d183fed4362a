import BLE
import BLEVirtualController
import BluetoothTesting
import Synchronization
import Testing

@Suite("A simulated world")
struct WorldTests {
    @Test("A central finds a scripted peripheral, reads, writes and receives notifications")
    func centralReadsWritesAndIsNotifiedByAScriptedPeripheral() throws {
        try World.run(seed: 1) { world in
            let lamp = try await world.peripheral(
                "lamp",
                services: [
                    ScriptedService(
                        "FFE0",
                        [
                            ScriptedCharacteristic("FFE1", properties: [.read, .write], value: [7]),
                            ScriptedCharacteristic(
                                "FFE2",
                                properties: [.notify],
                                schedule: .every(.seconds(1)) { [UInt8(truncatingIfNeeded: $0)] }
                            ),
                        ]
                    )
                ]
            )
            let phone = try await world.device("phone").openAdapter()
            var found: DeviceAddress?
            for try await advertisement in phone.central.scan() where advertisement.localName == "lamp" {
                found = advertisement.address
                break
            }
            #expect(found == lamp.address)
            let peer = try await phone.central.connect(to: lamp.address)
            let services = try await peer.discoverAll()
            let characteristics = try #require(services.last?.characteristics)
            #expect(try await peer.read(characteristics[0].valueHandle) == [7])
            try await peer.write([9], to: characteristics[0].valueHandle)
            #expect(lamp.value(of: "FFE1") == [9])
            #expect(lamp.writes.map(\.value) == [[9]])
            let notifications = try await peer.subscribe(to: characteristics[1])
            var values: [UInt8] = []
            for try await notification in notifications {
                values += notification.value
                if values.count == 5 { break }
            }
            #expect(values.count == 5)
            #expect(zip(values, values.dropFirst()).allSatisfy { $1 == $0 &+ 1 })
            await peer.disconnect()
        }
    }

    private static func lamp(
        in world: World,
        onRead: (@Sendable () -> ScriptedAnswer)? = nil,
        onWrite: (@Sendable ([UInt8]) -> ScriptedAnswer)? = nil
    ) async throws -> (lamp: ScriptedPeripheral, peer: RemotePeripheral, handle: AttributeHandle) {
        let characteristic = ScriptedCharacteristic(
            "FFE1",
            properties: [.read, .write],
            value: [7],
            onRead: onRead,
            onWrite: onWrite
        )
        let lamp = try await world.peripheral("lamp", services: [ScriptedService("FFE0", [characteristic])])
        let phone = try await world.device("phone", at: Position(x: 3, y: 0)).openAdapter()
        let peer = try await phone.central.connect(to: lamp.address)
        return (lamp, peer, try #require(lamp.valueHandle(of: "FFE1")))
    }

    @Test("Time passes only while no work is ready, and only as much as requested")
    func timePassesOnlyWhileNoWorkIsReady() throws {
        let world = World()
        try world.run(limit: .seconds(4000)) {
            try await world.sleep(for: .seconds(3600))
            #expect(world.elapsed == .seconds(3600))
            try await world.clock.sleep(for: .milliseconds(1))
            #expect(world.elapsed == .seconds(3600) + .milliseconds(1))
        }
        world.advance(by: .seconds(1))
        #expect(world.elapsed == .seconds(3601) + .milliseconds(1))
    }

    @Test("A cancelled sleep ends at once, whether it was cancelled before or after it began")
    func cancelledSleepEndsAtOnce() throws {
        let world = World()
        try world.run {
            await withTaskGroup(of: Void.self) { group in
                group.addTask {
                    await #expect(throws: CancellationError.self) { try await world.sleep(for: .seconds(100)) }
                    await #expect(throws: CancellationError.self) { try await world.sleep(for: .seconds(100)) }
                }
                try? await world.sleep(for: .seconds(1))
                group.cancelAll()
            }
            #expect(world.elapsed == .seconds(1))
        }
    }

    @Test("A run that does not end reports what it waits for")
    func runThatDoesNotEndReportsWhatItWaitsFor() throws {
        let error = #expect(throws: UnfinishedRun.self) {
            try World.run(limit: .seconds(20)) { world in
                let (_, peer, handle) = try await Self.lamp(in: world, onRead: { .silence })
                async let sleeping: Void = world.sleep(for: .seconds(1000))
                _ = try await peer.read(handle)
                try await sleeping
            }
        }
        let awaited = try #require(error?.awaited)
        #expect(awaited.contains { $0.hasPrefix("phone: ") && $0.contains("response to") }, "\(awaited)")
        #expect(awaited.contains { $0.contains("WorldTests.swift") && $0.hasSuffix("seconds") }, "\(awaited)")
    }

    @Test("A script refuses, delays, disconnects and breaks the protocol")
    func scriptRefusesDelaysDisconnectsAndBreaksTheProtocol() throws {
        try World.run { world in
            let answers = Answers([
                .refuse(.readNotPermitted), .after(.seconds(5), .value([1])), .value([2]), .octets([0x0B]),
                .octets([0x13]), .disconnect,
            ])
            let (lamp, peer, handle) = try await Self.lamp(in: world, onRead: { answers.next() })
            await #expect(throws: BLEError.attribute(.readNotPermitted, handle: handle)) {
                try await peer.read(handle)
            }
            let start = world.elapsed
            #expect(try await peer.read(handle) == [1])
            #expect(world.elapsed - start >= .seconds(5))
            #expect(try await peer.read(handle) == [2])
            #expect(try await peer.read(handle) == [])
            // A Write Response does not answer a read. It is dropped, and the read ends with the link.
            await #expect(throws: BLEError.disconnected(.attributeTransactionTimeout)) { try await peer.read(handle) }
            #expect(lamp.writes.isEmpty)
        }
    }

    @Test("A device that vanishes loses its links, and is found again when it returns")
    func vanishedDeviceLosesItsLinksAndIsFoundAgain() throws {
        try World.run { world in
            let (lamp, peer, handle) = try await Self.lamp(in: world)
            #expect(try await peer.read(handle) == [7])
            lamp.vanish()
            #expect(try await peer.disconnection() == .controller(.connectionTimeout))
            #expect(!lamp.device.isPresent)
            lamp.comeBack()
            let phone = try #require(world.devices.last)
            let again = try await phone.adapters[0].central.connect(to: lamp.address)
            #expect(try await again.read(handle) == [7])
        }
    }

    @Test("A device that moves out of range loses its link")
    func deviceOutOfRangeLosesItsLink() throws {
        try World.run { world in
            let (lamp, peer, _) = try await Self.lamp(in: world)
            async let reason = peer.disconnection()
            try await lamp.device.move(to: Position(x: 100_000, y: 0), over: .seconds(60))
            #expect(try await reason == .controller(.connectionTimeout))
        }
    }

    @Test("Devices with no radio path between them do not connect; others do")
    func devicesWithoutARadioPathDoNotConnect() throws {
        try World.run { world in
            let lamp = try await world.peripheral("lamp", services: [])
            let (phone, tablet) = (world.device("phone"), world.device("tablet"))
            world.setConditions(RadioConditions(isDead: true), between: phone, and: lamp.device)
            let (deaf, other) = (try await phone.openAdapter().central, try await tablet.openAdapter().central)
            _ = try await other.connect(to: lamp.address, timeout: .seconds(5)).disconnect()
            await #expect(throws: BLEError.timedOut("connecting to \(lamp.address)")) {
                try await deaf.connect(to: lamp.address, timeout: .seconds(5))
            }
            world.setConditions(nil, between: phone, and: lamp.device)
            _ = try await deaf.connect(to: lamp.address, timeout: .seconds(5))
        }
    }

    @Test("A name that does not fit a scan response is shortened to whole characters, also without Bluetooth 5")
    func longNameIsShortenedToWholeCharacters() throws {
        try World.run { world in
            let short = String(repeating: "a", count: 28)
            _ = try await world.peripheral(short + "é", services: []) { $0.features = .bluetooth42 }
            let phone = try await world.device("phone") { $0.features = .bluetooth42 }.openAdapter()
            for try await advertisement in phone.central.scan() where advertisement.localName != nil {
                #expect(advertisement.localName == short)
                // A shortened local name.
                #expect(advertisement.scanResponseData == [29, 0x08] + Array(short.utf8))
                break
            }
        }
    }

    @Test("Equal seeds give equal courses of events, different seeds different ones")
    func equalSeedsGiveEqualCoursesOfEvents() throws {
        let captures = try [1, 1, 2].map { (seed: UInt64) in
            let world = World(seed: seed, recordsCaptures: true)
            defer { world.close() }
            return try world.run {
                world.conditions = RadioConditions(loss: 0.2, jitter: .milliseconds(3))
                let (_, peer, handle) = try await Self.lamp(in: world)
                for _ in 0..<10 { _ = try await peer.read(handle) }
                return world.devices.map(\.capture)
            }
        }
        #expect(captures[0].allSatisfy { $0.count > 1000 })
        #expect(captures[0] == captures[1])
        #expect(captures[0] != captures[2])
    }
}

/// Answers that are given one after the other; the last one is repeated.
private final class Answers: Sendable {
    private let answers: Mutex<[ScriptedAnswer]>

    init(_ answers: [ScriptedAnswer]) { self.answers = Mutex(answers) }

    func next() -> ScriptedAnswer {
        answers.withLock { $0.count > 1 ? $0.removeFirst() : $0[0] }
    }
}
