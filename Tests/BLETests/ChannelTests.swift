import BLE
import BLEL2CAP
import BluetoothTesting
import Synchronization
import Testing

/// The lengths with which a megabyte is transferred.
struct Lengths: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let configuration: L2CAPChannel.Configuration

    init(_ description: String, _ configuration: L2CAPChannel.Configuration) {
        testDescription = description
        self.configuration = configuration
    }
}

@Suite("L2CAP channels between two hosts in a simulated world")
struct ChannelTests {
    @Test(
        "A megabyte in each direction at the same time arrives complete and in order",
        arguments: [
            Lengths("as they are by default", .init()),
            Lengths("with the least lengths", .init(mtu: 23, mps: 23)),
            Lengths("with the greatest lengths", .init(mtu: 65535, mps: 4096, receiveByteCapacity: 1 << 18)),
            Lengths("with SDUs of many K-frames", .init(mtu: 5000, mps: 100)),
            Lengths(
                "starving for credits",
                .init(mtu: 500, mps: 247, receiveByteCapacity: 0, sendByteCapacity: 0)
            ),
        ]
    )
    func megabyteInEachDirectionArrivesCompleteAndInOrder(_ lengths: Lengths) throws {
        let size = 1 << 20
        try World.run(seed: 7, limit: .seconds(3600)) { world in
            let fixture = try await ChannelFixture(in: world, configuration: lengths.configuration)
            let (near, far) = try await fixture.open(configuration: lengths.configuration)
            let (there, back) = (pattern(size), pattern(size, salt: 99))
            async let arrivedThere = far.read(size)
            async let arrivedBack = near.read(size)
            async let wroteThere: Void = near.write(there)
            async let wroteBack: Void = far.write(back)
            try await wroteThere
            try await wroteBack
            let results = try await (arrivedThere == there, arrivedBack == back)
            #expect(results == (true, true))
            await near.finish()
            #expect(try await far.readToEnd().isEmpty)
        }
    }

    @Test("A value that fits is sent as one SDU, a longer one as several")
    func valueThatFitsIsOneSDUAndALongerOneSeveral() throws {
        try World.run(seed: 1) { world in
            let fixture = try await ChannelFixture(in: world, configuration: .init(mtu: 100, mps: 50))
            let (near, far) = try await fixture.open()
            #expect(await near.maximumWriteLength == 100)
            for length in [1, 100, 250] { try await near.write(pattern(length)) }
            await near.finish()
            var lengths: [Int] = []
            for try await unit in far { lengths.append(unit.count) }
            #expect(lengths == [1, 100, 100, 100, 50])
            #expect(await far.ending() == .byPeer)
            #expect(await near.ending() == .byUs)
        }
    }

    @Test("A reader that pauses stops the sender, and later receives everything")
    func pausedReaderStopsTheSenderAndLaterReceivesEverything() throws {
        let capacity = 8192
        let configuration = L2CAPChannel.Configuration(receiveByteCapacity: capacity, sendByteCapacity: capacity)
        try World.run(seed: 2, limit: .seconds(1000)) { world in
            let fixture = try await ChannelFixture(in: world, configuration: configuration)
            let (near, far) = try await fixture.open(configuration: configuration)
            let octets = pattern(1 << 17)
            let progress = Progress()
            async let writing: Void = {
                for start in stride(from: 0, to: octets.count, by: 1024) {
                    try await near.write(Array(octets[start..<start + 1024]))
                    progress.add(1024)
                }
                await near.finish()
            }()
            try await world.sleep(for: .seconds(60))
            let taken = progress.count
            // The queues of both ends are full, and a few frames are on the way.
            #expect(taken > capacity && taken < 3 * capacity, "\(taken) bytes were taken")
            try await world.sleep(for: .seconds(60))
            #expect(progress.count == taken)
            let arrived = try await far.readToEnd()
            #expect(arrived == octets)
            try await writing
        }
    }

    @Test(
        "A peer's refusal reports its reason",
        arguments: [
            (ChannelSecurity(), 1, CreditBasedConnectionResult.spsmNotSupported),
            (ChannelSecurity(needsEncryption: true), 0, .insufficientAuthentication),
            (ChannelSecurity(needsAuthentication: true), 0, .insufficientAuthentication),
            (ChannelSecurity(needsAuthorization: true), 0, .insufficientAuthorization),
        ] as [(ChannelSecurity, UInt16, CreditBasedConnectionResult)]
    )
    func refusalByThePeerReportsItsReason(
        security: ChannelSecurity,
        offset: UInt16,
        result: CreditBasedConnectionResult
    ) throws {
        try World.run(seed: 3) { world in
            let fixture = try await ChannelFixture(in: world, security: security)
            let psm = fixture.listener.psm + offset
            await #expect(throws: BLEError.channel(.refused(result))) {
                _ = try await fixture.peer.openChannel(psm: psm)
            }
            for outcome in await fixture.peer.openChannels(3, psm: psm) {
                #expect(throws: BLEError.channel(.refused(result))) { _ = try outcome.get() }
            }
        }
    }

    @Test("Invalid requests are refused at once, and each PSM has one service")
    func invalidRequestsAreRefused() throws {
        try World.run(seed: 4) { world in
            let fixture = try await ChannelFixture(in: world)
            for psm in [0, 0x100, 0xFFFF] as [UInt16] {
                await #expect(throws: BLEError.invalidArgument("a PSM is 1 to 255, not \(psm)")) {
                    _ = try await fixture.peer.openChannel(psm: psm)
                }
            }
            for configuration in [L2CAPChannel.Configuration(mtu: 22), .init(mps: 22), .init(mps: 4097)] {
                await #expect(throws: BLEError.self) {
                    _ = try await fixture.peer.openChannel(psm: 0x80, configuration: configuration)
                }
                await #expect(throws: BLEError.self) {
                    _ = try await fixture.far.peripheral.publishChannel(configuration: configuration)
                }
            }
            for count in [0, 6] {
                let outcomes = await fixture.peer.openChannels(count, psm: 0x80)
                #expect(throws: BLEError.invalidArgument("one request is for 1 to 5 channels, not \(count)")) {
                    _ = try outcomes.first?.get()
                }
            }
            await #expect(throws: BLEError.channel(.psmInUse(fixture.listener.psm))) {
                _ = try await fixture.far.peripheral.publishChannel(psm: fixture.listener.psm)
            }
            await fixture.listener.close()
            let again = try await fixture.far.peripheral.publishChannel(psm: fixture.listener.psm)
            #expect(again.psm == fixture.listener.psm)
        }
    }

    @Test("The PSM of a listener is free immediately after the listener was released")
    func releasedListenerFreesItsPSM() throws {
        try World.run(seed: 13) { world in
            let peripheral = try await world.device("adapter").openAdapter().peripheral
            for _ in 1...2 {
                let listener = try await peripheral.publishChannel(psm: 0x80)
                #expect(listener.psm == 0x80)
            }
        }
    }

    @Test("A negative capacity is taken as zero: an SDU waits until the one before it was sent")
    func negativeCapacityIsTakenAsZero() throws {
        let configuration = L2CAPChannel.Configuration(mtu: 500, receiveByteCapacity: .min, sendByteCapacity: .min)
        try World.run(seed: 14) { world in
            let fixture = try await ChannelFixture(in: world, configuration: configuration)
            let (near, far) = try await fixture.open(configuration: configuration)
            async let arrived = far.read(5000)
            try await near.write(pattern(5000))
            let isRight = try await arrived == pattern(5000)
            #expect(isRight)
        }
    }

    @Test("A link has at most sixteen channels; one that ends makes room for another")
    func linkHasAtMostSixteenChannels() throws {
        try World.run(seed: 5) { world in
            let fixture = try await ChannelFixture(in: world)
            var channels: [L2CAPChannel] = []
            var others: [L2CAPChannel] = []
            for _ in 0..<16 {
                let (near, far) = try await fixture.open()
                channels.append(near)
                others.append(far)
            }
            await #expect(throws: BLEError.channel(.tooManyChannels)) { _ = try await fixture.open() }
            await channels[7].close()
            try await world.sleep(for: .seconds(1))
            let (near, far) = try await fixture.open()
            try await near.write([1, 2, 3])
            #expect(try await far.read(3) == [1, 2, 3])
            for channel in channels + others { await channel.close() }
        }
    }

    @Test("A lost link ends both ends with its reason, after the received data was read")
    func lostLinkEndsBothEndsWithItsReason() throws {
        try World.run(seed: 6) { world in
            let fixture = try await ChannelFixture(in: world)
            let (near, far) = try await fixture.open()
            try await far.write(pattern(10_000))
            try await world.sleep(for: .seconds(5))
            let writing = Task(executorPreference: world.taskExecutor) { try await near.write(pattern(1 << 20)) }
            try await world.sleep(for: .milliseconds(200))
            fixture.farDevice.vanish()
            let lost = BLEError.disconnected(.controller(.connectionTimeout))
            await #expect(throws: lost) { try await writing.value }
            var arrived: [UInt8] = []
            await #expect(throws: lost) { for try await unit in near { arrived += unit } }
            #expect(arrived == pattern(10_000))
            await #expect(throws: lost) { try await near.write([1]) }
            await #expect(throws: lost) { _ = try await fixture.peer.openChannel(psm: 0x80) }
            await #expect(throws: BLEError.self) { _ = try await far.readToEnd() }
            #expect(await fixture.near.host.inspect().channels == 0)
        }
    }

    @Test("Five channels and attribute operations make progress at the same time")
    func channelsAndAttributeOperationsMakeProgressTogether() throws {
        try World.run(seed: 8, limit: .seconds(1000)) { world in
            let fixture = try await ChannelFixture(in: world)
            let outcomes = await fixture.peer.openChannels(5, psm: fixture.listener.psm)
            let channels = try outcomes.map { try $0.get() }
            #expect(channels.count == 5)
            let name = pattern(20)
            let published = try await fixture.far.peripheral.publish([
                ServiceDefinition(
                    uuid: "FFE0",
                    characteristics: [
                        CharacteristicDefinition(
                            uuid: "FFE1",
                            properties: [.read, .writeWithoutResponse],
                            permissions: [.read, .write],
                            value: .stored(name)
                        )
                    ]
                )
            ])
            let handle = try #require(published.first?.characteristics.first?.valueHandle)
            let size = 100_000
            let transfers = Progress()
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for (index, channel) in channels.enumerated() {
                    let far = try await fixture.accept()
                    group.addTask {
                        try await channel.write(pattern(size, salt: index))
                        await channel.finish()
                        return true
                    }
                    group.addTask {
                        let arrived = try await far.readToEnd()
                        transfers.add(1)
                        return arrived == pattern(size, salt: index)
                    }
                }
                group.addTask {
                    // Each operation is sent while the channels have more data than the link can transfer.
                    var count = 0
                    while transfers.count == 0 {
                        #expect(try await fixture.peer.read(handle) == name)
                        for _ in 0..<5 { try await fixture.peer.write(name, to: handle, kind: .withoutResponse) }
                        count += 1
                    }
                    return count > 10
                }
                for try await isRight in group { #expect(isRight) }
            }
        }
    }

    @Test("An enhanced channel accepts longer SDUs once it is reconfigured; another channel cannot be")
    func reconfiguredEnhancedChannelAcceptsLongerSDUs() throws {
        try World.run(seed: 9) { world in
            let fixture = try await ChannelFixture(in: world)
            let near = try #require(await fixture.peer.openChannels(1, psm: fixture.listener.psm).first).get()
            let far = try await fixture.accept()
            #expect(await far.maximumWriteLength == 2048)
            try await near.reconfigure(mtu: 4000, mps: 1000)
            #expect(await far.maximumWriteLength == 4000)
            try await far.write(pattern(4000))
            var iterator = near.makeAsyncIterator()
            #expect(try await iterator.next() == pattern(4000))
            await #expect(throws: BLEError.self) { try await near.reconfigure(mtu: 3999, mps: 1000) }
            let (plain, _) = try await fixture.open()
            await #expect(throws: BLEError.notSupported("only enhanced channels are reconfigured")) {
                try await plain.reconfigure(mtu: 4000, mps: 1000)
            }
        }
    }

    @Test("A channel that the peer has closed is not reconfigured, and the error says who has closed it")
    func reconfigurationOfAClosedChannelNamesItsEnd() throws {
        try World.run(seed: 19) { world in
            let fixture = try await ChannelFixture(in: world)
            let near = try #require(await fixture.peer.openChannels(1, psm: fixture.listener.psm).first).get()
            try await fixture.accept().close()
            #expect(await near.ending() == .byPeer)
            await #expect(throws: BLEError.channel(.ended(.byPeer))) {
                try await near.reconfigure(mtu: 4000, mps: 1000)
            }
        }
    }

    @Test("Two tasks that read one channel share its units, and a cancelled reader takes none")
    func twoTasksReadOneChannel() throws {
        try World.run(seed: 11) { world in
            let fixture = try await ChannelFixture(in: world)
            let (near, far) = try await fixture.open()
            let readers = (0..<2).map { _ in
                Task(executorPreference: world.taskExecutor) { try await near.readToEnd() }
            }
            let cancelled = Task(executorPreference: world.taskExecutor) { try await near.readToEnd() }
            try await world.sleep(for: .milliseconds(100))
            cancelled.cancel()
            await #expect(throws: BLEError.cancelled) { _ = try await cancelled.value }
            for number in 0..<UInt8(100) { try await far.write([number]) }
            await far.finish()
            var received: [UInt8] = []
            for reader in readers { received += try await reader.value }
            #expect(received.sorted() == Array(0..<100))
            #expect(try await near.readToEnd().isEmpty)
        }
    }

    @Test("A reader gets the units that another reader has left")
    func readerGetsTheUnitsThatAnotherReaderHasLeft() throws {
        try World.run(seed: 12) { world in
            let fixture = try await ChannelFixture(in: world)
            let (near, far) = try await fixture.open()
            // Both readers wait when two units arrive together. Each reads one unit only.
            let readers = (0..<2).map { _ in
                Task(executorPreference: world.taskExecutor) {
                    var iterator = near.makeAsyncIterator()
                    return try await iterator.next()
                }
            }
            try await world.sleep(for: .milliseconds(100))
            async let first: Void = far.write([1])
            async let second: Void = far.write([2])
            _ = try await (first, second)
            var received: [[UInt8]?] = []
            for reader in readers { received.append(try await reader.value) }
            #expect(Set(received) == [[1], [2]])
            await far.close()
        }
    }

    @Test("Cancelled calls end, and a channel without owners is closed")
    func cancelledCallsEndAndAChannelWithoutOwnersIsClosed() throws {
        try World.run(seed: 10) { world in
            let fixture = try await ChannelFixture(in: world)
            let (near, far) = try await fixture.open()
            let tasks = world.taskExecutor
            let reading = Task(executorPreference: tasks) { try await near.readToEnd() }
            let writing = Task(executorPreference: tasks) { try await far.write(pattern(1 << 20)) }
            let ending = Task(executorPreference: tasks) { await far.ending() }
            try await world.sleep(for: .milliseconds(500))
            reading.cancel()
            ending.cancel()
            await #expect(throws: BLEError.cancelled) { _ = try await reading.value }
            #expect(await ending.value == nil)
            // There is no reader now, so the write waits.
            try await world.sleep(for: .seconds(20))
            writing.cancel()
            await #expect(throws: BLEError.cancelled) { try await writing.value }
            let opening = Task(executorPreference: tasks) { try await fixture.peer.openChannel(psm: 0x80) }
            opening.cancel()
            await #expect(throws: BLEError.cancelled) { _ = try await opening.value }
            // The far device had accepted the channel already.
            #expect(try await fixture.accept().readToEnd().isEmpty)
            try await world.sleep(for: .seconds(1))
            #expect(await fixture.near.host.inspect().channels == 1)
            do {
                let (forgotten, other) = try await fixture.open()
                try await forgotten.write([1])
                #expect(try await other.read(1) == [1])
                #expect(await fixture.near.host.inspect().channels == 2)
                withExtendedLifetime((forgotten, other)) {}
            }
            try await world.sleep(for: .seconds(1))
            #expect(await fixture.near.host.inspect().channels == 1)
            await far.close()
        }
    }
}

/// A counter shared by the tasks of one world.
private final class Progress: Sendable {
    private let value = Atomic(0)

    var count: Int { value.load(ordering: .relaxed) }

    func add(_ count: Int) { value.add(count, ordering: .relaxed) }
}
