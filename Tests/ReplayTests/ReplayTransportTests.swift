import BLE
import BLEByteCoding
import BLECapture
import BLEHCITransport
import BluetoothTesting
import Synchronization
import Testing

/// A run in a world, and the packets between its central's controller and host.
private struct Recorded {
    let recording: PacketRecording
    let value: [UInt8]

    static let lamp = DeviceAddress(0x5357_0000_0001, isRandom: false)

    /// The app's calls, in the world and again in the replay.
    static func use(_ adapter: Adapter) async throws -> [UInt8] {
        let peer = try await adapter.central.connect(to: lamp)
        let services = try await peer.discoverAll()
        let value = try #require(services.flatMap(\.characteristics).first { $0.uuid == "FFE1" })
        try await peer.pair()
        try await peer.write([7, 8, 9], to: value)
        let read = try await peer.read(value)
        await peer.disconnect()
        return read
    }

    /// - Parameter seed: the seed of the central's random numbers.
    init(seed: UInt64) throws {
        let world = World(seed: 3, recordsCaptures: true)
        defer { world.close() }
        let (value, bytes) = try world.run { () -> ([UInt8], [UInt8]) in
            let lamp = try await world.peripheral(
                "lamp",
                services: [
                    ScriptedService("FFE0", [ScriptedCharacteristic("FFE1", properties: [.read, .write], value: [0])])
                ]
            )
            #expect(lamp.address == Recorded.lamp)
            var policy = SecurityPolicy()
            policy.justWorks = .always
            for adapter in world.devices.flatMap(\.adapters) { await adapter.setSecurityPolicy(policy) }
            let phone = world.device("phone")
            let adapter = try await phone.openAdapter { $0.seed = seed }
            let value = try await Recorded.use(adapter)
            await adapter.close()
            return (value, phone.capture)
        }
        self.value = value
        recording = try PacketRecording(bytes)
    }

    init(recording: PacketRecording) {
        self.recording = recording
        value = []
    }

    func replay(seed: UInt64) throws -> [UInt8] {
        try Replay(recording, seed: seed).run {
            $0.deviceName = "phone"
        } _: {
            try await Recorded.use($0)
        }
    }

    func difference(seed: UInt64) -> ReplayDifference? {
        do {
            _ = try replay(seed: seed)
            return nil
        } catch {
            return error as? ReplayDifference
        }
    }
}

@Suite("Replaying a recorded controller")
struct ReplayTransportTests {
    @Test("The same host sends the same packets, byte by byte, including a pairing")
    func sameHostSendsTheSamePackets() throws {
        let recorded = try Recorded(seed: 42)
        #expect(recorded.value == [7, 8, 9])
        #expect(recorded.recording.packets.count > 100)
        #expect(try recorded.replay(seed: 42) == recorded.value)
    }

    @Test("Other random numbers cause a difference at the first one in the pairing")
    func otherRandomNumbersCauseADifferenceInThePairing() throws {
        let recorded = try Recorded(seed: 42)
        let difference = try #require(recorded.difference(seed: 43))
        let expected = try #require(difference.expected)
        // The public key, in the fixed channel of the Security Manager.
        #expect(expected.bytes.first == 2)
        #expect(difference.sent != nil && difference.sent != expected.bytes)
        #expect(try #require(difference.offset) >= 9)
    }

    @Test("A changed byte in the host's packets is found at any position", arguments: [0.0, 0.2, 0.7, 1.0])
    func changedByteOfTheHostIsFoundAtAnyPosition(place: Double) throws {
        let recorded = try Recorded(seed: 42)
        var packets = recorded.recording.packets
        let sent = packets.indices.filter { packets[$0].direction == .hostToController }
        let index = sent[Int(place * Double(sent.count - 1))]
        var bytes = packets[index].bytes
        let last = bytes.count - 1
        bytes[last] ^= 1
        packets[index] = packets[index].with(bytes)
        let difference = try #require(Recorded(recording: .init(packets: packets)).difference(seed: 42))
        #expect(difference.index == index && difference.offset == last)
        #expect(difference.expected?.bytes == bytes)
    }

    @Test("Missing and additional packets of the host are differences")
    func missingAndAdditionalPacketsOfTheHostAreDifferences() throws {
        let recorded = try Recorded(seed: 42)
        var packets = recorded.recording.packets
        let last = try #require(packets.last { $0.direction == .hostToController })
        packets.append(
            .init(number: 999, time: last.time + .seconds(1), direction: .hostToController, bytes: [1, 3, 12, 0])
        )
        let missing = try #require(Recorded(recording: .init(packets: packets)).difference(seed: 42))
        #expect(missing.sent == nil && missing.expected?.number == 999)

        let cut = Array(recorded.recording.packets.prefix(while: { $0.number < last.number }))
        let more = try #require(Recorded(recording: .init(packets: cut)).difference(seed: 42))
        #expect(more.expected == nil && more.sent == last.bytes && more.index == cut.count)
    }

    @Test("If the host sends nothing, the replay waits for the time limit only")
    func silentHostIsWaitedForUntilTheTimeLimitOnly() throws {
        let recorded = try Recorded(seed: 42)
        let replay = Replay(recorded.recording, seed: 42)
        #expect(throws: ReplayDifference.self) {
            try replay.run {
                $0.deviceName = "phone"
            } _: { _ in
                try await replay.sleep(for: .seconds(1000))
            }
        }
        let difference = try #require(replay.difference)
        #expect(difference.sent == nil && difference.time >= .seconds(60) && difference.time < .seconds(70))
    }

    /// The difference when a host should send some packets, and sends others.
    private static func difference(_ expected: [[UInt8]], sent: [[UInt8]]) -> ReplayDifference? {
        let timers = Timers()
        let packets = expected.enumerated().map {
            PacketRecording.Packet(number: $0 + 1, time: .zero, direction: .hostToController, bytes: $1)
        }
        let transport = ReplayTransport(
            PacketRecording(packets: packets),
            now: { timers.now },
            after: { timers.add($0, $1) }
        )
        transport.start(onPacket: { _ in }, onEnd: { _ in })
        for packet in sent {
            transport.send(packet.rawSpan)
            timers.run(for: .milliseconds(1))
        }
        timers.run(for: .seconds(2))
        transport.finish()
        return transport.difference
    }

    @Test("A packet that is sent too early is held for its turn, for a limited time")
    func packetSentTooEarlyIsHeldForItsTurn() throws {
        let packets: [[UInt8]] = [[1, 3, 12, 0], [2, 1, 0, 1, 0, 7], [2, 1, 0, 1, 0, 8]]
        for order in [[0, 1, 2], [1, 0, 2], [2, 1, 0], [1, 2, 0]] {
            #expect(ReplayTransportTests.difference(packets, sent: order.map { packets[$0] }) == nil, "\(order)")
        }
        let late = try #require(ReplayTransportTests.difference(packets, sent: [packets[1], packets[2]]))
        #expect(late.index == 0 && late.sent == packets[1] && late.time == ReplayTransport.turnLimit)
        let other = try #require(ReplayTransportTests.difference(packets, sent: [packets[1], [9, 9]]))
        #expect(other.index == 0 && other.sent == [9, 9] && other.time < .seconds(1))
        let twice = [packets[1], packets[1], packets[0], packets[2]]
        let more = try #require(ReplayTransportTests.difference(packets, sent: twice))
        #expect(more.index == 3 && more.expected == nil && more.sent == packets[1])
        // A host that repeats itself is not held indefinitely.
        let many = Array(repeating: packets[2], count: ReplayTransport.heldLimit + 1)
        #expect(ReplayTransportTests.difference(packets, sent: many)?.time == .milliseconds(8))
    }

    @Test("Commands keep their order, and so do the fragments of a frame")
    func commandsAndFragmentsKeepTheirOrder() throws {
        let commands: [[UInt8]] = [[1, 3, 12, 0], [1, 1, 16, 0]]
        #expect(ReplayTransportTests.difference(commands, sent: commands) == nil)
        #expect(ReplayTransportTests.difference(commands, sent: commands.reversed())?.index == 0)
        // Two frames of two fragments each. The second fragments have the flag of a continuing fragment.
        let frames: [[UInt8]] = [
            [2, 1, 0, 1, 0, 7], [2, 1, 0x10, 1, 0, 8], [2, 1, 0, 1, 0, 9], [2, 1, 0x10, 1, 0, 10],
        ]
        func differs(_ order: [Int]) -> Bool {
            ReplayTransportTests.difference(frames, sent: order.map { frames[$0] }) != nil
        }
        #expect(!differs([0, 1, 2, 3]) && !differs([2, 3, 0, 1]))
        for order in [[1, 0, 2, 3], [0, 2, 1, 3], [2, 0, 1, 3], [0, 3, 1, 2]] { #expect(differs(order), "\(order)") }
    }

    @Test("After the controller was lost, the replay continues at the same position")
    func replayContinuesAfterALostController() throws {
        let recorded = try Recorded(seed: 42)
        // The same bring-up twice, as of a host whose controller was unplugged and plugged in again.
        let up = recorded.recording.bringUp.packets
        #expect(up.count > 30)
        let end = recorded.recording.packets.suffix(2)
        let replay = Replay(.init(packets: up + up + end), seed: 42)
        try replay.run {
            $0.deviceName = "phone"
        } _: { adapter in
            let events = await adapter.events()
            try await replay.loseController()
            var isOn = false
            for await event in events {
                if case .poweredOn = event {
                    isOn = true
                    break
                }
            }
            #expect(isOn)
        }
        #expect(replay.position >= up.count * 2 + 1)
    }

    /// The host also sends packets when the body is cancelled at the end of the time. They are no difference.
    @Test func replayThatDoesNotEndReportsWhatItWaitsFor() throws {
        let recorded = try Recorded(seed: 42)
        // The recording ends before LE Connection Complete, or one of its enhanced versions.
        let packets = recorded.recording.packets.prefix { packet in
            !(packet.bytes.starts(with: [0x04, 0x3E]) && [0x01, 0x0A, 0x29].contains(packet.bytes[3]))
        }
        #expect(packets.count < recorded.recording.packets.count)
        let replay = Replay(.init(packets: Array(packets)), seed: 42)
        let error = #expect(throws: UnfinishedRun.self) {
            _ = try replay.run(limit: .seconds(10)) {
                $0.deviceName = "phone"
            } _: {
                try await Recorded.use($0)
            }
        }
        let awaited = try #require(error?.awaited)
        #expect(awaited.contains { $0.hasPrefix("host: a connection to ") }, "\(awaited)")
    }

    @Test("A replay saves no state, so settings about it are refused", arguments: [false, true])
    func settingsAboutSavedStateAreRefused(isRequired: Bool) {
        let replay = Replay(.init(packets: []), seed: 42)
        let error = #expect(throws: BLEError.self) {
            try replay.run {
                if isRequired { $0.requiresState = true } else { $0.stateLocation = .directory("/nowhere") }
            } _: { _ in
            }
        }
        #expect(error.map { "\($0)" }?.contains("saves no state") == true)
    }

    @Test("Packets of one adapter are read from a capture, and an unplayable packet ends it")
    func packetsOfOneAdapterAreReadUntilAnUnplayableOne() throws {
        let recorded = try Recorded(seed: 42)
        var writer = CaptureWriter(.btsnoop)
        var file = PacketBuffer(capacity: 1024, headroom: 0)
        writer.encodeHeader(into: &file)
        for (index, packet) in recorded.recording.packets.prefix(10).enumerated() {
            let time = CaptureTime(microsecondsSince1970: 1_000_000 + Int64(index) * 250)
            writer.encode(h4Packet: packet.bytes.rawSpan, packet.direction, time: time, into: &file)
        }
        let bytes = [UInt8](copying: file.bytes)
        let whole = try PacketRecording(bytes)
        #expect(whole.packets.map(\.bytes) == recorded.recording.packets.prefix(10).map(\.bytes))
        #expect(whole.packets.map(\.number) == Array(1...10))
        #expect(whole.packets.last?.time == .microseconds(2250) && whole.damage == nil && !whole.isCut)

        let damaged = try PacketRecording(Array(bytes.dropLast()))
        #expect(damaged.packets.count == 9 && damaged.damage != nil)
        #expect(throws: CaptureReadingError.self) { try PacketRecording(Array("no capture at all".utf8)) }
        #expect(throws: CaptureFileError.self) { try PacketRecording(path: "/nowhere/at/all") }
    }
}

extension PacketRecording.Packet {
    /// The packet with other bytes.
    fileprivate func with(_ bytes: [UInt8]) -> PacketRecording.Packet {
        .init(number: number, time: time, direction: direction, bytes: bytes)
    }
}

/// A loop's time and timers.
private final class Timers: Sendable {
    private struct State {
        var now = Duration.zero
        var pending: [(due: Duration, action: @Sendable () -> Void)] = []

        /// Removes the earliest timer that is due at `end`, advances the time to it and returns its action.
        mutating func takeNext(by end: Duration) -> (@Sendable () -> Void)? {
            let next = pending.indices.filter { pending[$0].due <= end }.min { pending[$0].due < pending[$1].due }
            guard let next else {
                now = end
                return nil
            }
            let (due, action) = pending.remove(at: next)
            now = max(now, due)
            return action
        }
    }

    private let state = Mutex(State())

    var now: Duration { state.withLock { $0.now } }

    func add(_ delay: Duration, _ action: @escaping @Sendable () -> Void) {
        state.withLock { $0.pending.append(($0.now + delay, action)) }
    }

    func run(for duration: Duration) {
        let end = now + duration
        while let action = state.withLock({ $0.takeNext(by: end) }) { action() }
    }
}
