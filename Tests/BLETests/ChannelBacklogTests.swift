import BLE
import BluetoothTesting
import Testing

@Suite("L2CAP channels and SDUs that the app does not take")
struct ChannelBacklogTests {
    @Test("After the app has read one SDU, at most twice the receive capacity waits for it")
    func unreadSDUsTakeAtMostTwiceTheReceiveCapacity() throws {
        let (capacity, length) = (8192, 500)
        // The sender holds one SDU at a time.
        let configuration = L2CAPChannel.Configuration(receiveByteCapacity: capacity, sendByteCapacity: 0)
        try World.run(seed: 20) { world in
            let fixture = try await ChannelFixture(in: world, configuration: configuration)
            let (near, far) = try await fixture.open(configuration: configuration)
            let sent = Log<Int>()
            let writing = Task(executorPreference: world.taskExecutor) {
                for _ in 0..<1000 {
                    try await near.write([UInt8](repeating: 1, count: length))
                    sent.append(length)
                }
            }
            try await world.sleep(for: .seconds(60))
            #expect(sent.all.count * length <= capacity + length)
            var iterator = far.makeAsyncIterator()
            let first = try await iterator.next()
            #expect(first?.count == length)
            try await world.sleep(for: .seconds(60))
            let unread = (sent.all.count - 1) * length
            #expect(unread > capacity && unread <= 2 * capacity + length, "\(unread) bytes were sent and not read")
            writing.cancel()
            await #expect(throws: BLEError.cancelled) { try await writing.value }
        }
    }

    @Test("Of 65 channels that wait, the oldest is closed and counted")
    func oldestChannelBeyondTheLimitIsClosedAndCounted() throws {
        try World.run(seed: 19) { world in
            let fixture = try await ChannelFixture(in: world)
            let psm = fixture.listener.psm
            let oldest = try await fixture.peer.openChannel(psm: psm)
            // A link has fewer channels at a time, so these are closed. They wait for the app nevertheless.
            for _ in 2...64 {
                let channel = try await fixture.peer.openChannel(psm: psm)
                await channel.close()
            }
            try await world.sleep(for: .seconds(1))
            #expect(fixture.listener.droppedCount == 0)
            try await oldest.write([1])
            let newest = try await fixture.peer.openChannel(psm: psm)
            #expect(await oldest.ending() == .byPeer)
            #expect(fixture.listener.droppedCount == 1)
            for _ in 2...64 {
                let closed = try await fixture.accept()
                #expect(await closed.ending() == .byPeer)
            }
            try await newest.write([2])
            #expect(try await fixture.accept().read(1) == [2])
        }
    }
}
