import BLE
import BluetoothTesting
import Testing

@Suite("L2CAP channels that the app does not take")
struct ChannelBacklogTests {
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
