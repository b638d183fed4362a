import BLE
import BluetoothTesting
import Testing

@Suite("L2CAP channels that finish")
struct ChannelFinishTests {
    /// Opens a channel and writes more bytes than the far side, which does not read, lets the near side send.
    private func openBlocked(_ fixture: ChannelFixture) async throws -> (near: L2CAPChannel, far: L2CAPChannel) {
        let (near, far) = try await fixture.open(configuration: .init(sendByteCapacity: 1 << 17))
        try await near.write(pattern(50_000))
        return (near, far)
    }

    @Test func finishedChannelThatHasSentEverythingWasClosedByThisSide() throws {
        try World.run(seed: 15) { world in
            let fixture = try await ChannelFixture(in: world)
            let (near, far) = try await fixture.open()
            try await near.write(pattern(10_000))
            #expect(await near.finish() == .byUs)
            #expect(try await far.readToEnd() == pattern(10_000))
            #expect(await near.finish() == .byUs)
        }
    }

    @Test func lostLinkWhileFinishingIsTheResult() throws {
        try World.run(seed: 16) { world in
            let fixture = try await ChannelFixture(in: world)
            let (near, far) = try await openBlocked(fixture)
            let finishing = Task(executorPreference: world.taskExecutor) { await near.finish() }
            try await world.sleep(for: .seconds(5))
            fixture.farDevice.vanish()
            #expect(await finishing.value == ChannelEnd.disconnected(.controller(.connectionTimeout)))
            withExtendedLifetime(far) {}
        }
    }

    @Test func peerThatClosesWhileFinishingIsTheResult() throws {
        try World.run(seed: 17) { world in
            let fixture = try await ChannelFixture(in: world)
            let (near, far) = try await openBlocked(fixture)
            let finishing = Task(executorPreference: world.taskExecutor) { await near.finish() }
            try await world.sleep(for: .seconds(5))
            await far.close()
            #expect(await finishing.value == .byPeer)
        }
    }

    @Test func cancelledFinishClosesTheChannelAndHasNoResult() throws {
        try World.run(seed: 18) { world in
            let fixture = try await ChannelFixture(in: world)
            let (near, far) = try await openBlocked(fixture)
            let finishing = Task(executorPreference: world.taskExecutor) { await near.finish() }
            try await world.sleep(for: .seconds(5))
            finishing.cancel()
            #expect(await finishing.value == nil)
            #expect(await far.ending() == .byPeer)
        }
    }
}
