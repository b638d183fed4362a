import BLEATT
import BLEGATT
import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("The order of calls on a link")
struct CallOrderTests {
    private func command(_ number: UInt8) -> [UInt8] { [0x52, 3, 0, number] }

    @Test func requestBehindWriteCommandsThatWaitForRoomKeepsOrder() throws {
        let calls = try CallFixture(buffers: 2)
        let (host, link) = (calls.host, calls.link)
        for number in 0..<UInt8(12) {
            _ = calls.fixture.start { try await host.writeWithoutResponse([number], to: 3, on: link) }
        }
        let read = calls.fixture.start { try await host.perform(ReadValue(handle: 5), on: link) }
        #expect(calls.drain() == (0..<12).map(command) + [[0x0A, 5, 0]])
        calls.receive([0x0B, 7])
        #expect(try read.all.first?.get() == [7])
    }

    @Test func writeCommandBehindQueuedRequestsWaitsForTheirFirstPacket() throws {
        let calls = try CallFixture()
        let (host, link) = (calls.host, calls.link)
        _ = calls.fixture.start { try await host.perform(ReadValue(handle: 5), on: link) }
        _ = calls.fixture.start { try await host.perform(ReadValue(handle: 6), on: link) }
        _ = calls.fixture.start { try await host.writeWithoutResponse([1], to: 3, on: link) }
        _ = calls.fixture.start { try await host.perform(ReadValue(handle: 7), on: link) }
        #expect(calls.drain() == [[0x0A, 5, 0]])
        calls.receive([0x0B, 7])
        #expect(calls.drain() == [[0x0A, 6, 0], command(1)])
        calls.receive([0x0B, 7])
        #expect(calls.drain() == [[0x0A, 7, 0]])
    }

    @Test func writeCommandBehindLongWriteWaitsForExecuteWrite() throws {
        let calls = try CallFixture()
        let (host, link) = (calls.host, calls.link)
        let value = [UInt8](repeating: 9, count: 25)
        _ = calls.fixture.start { try await host.perform(WriteWholeValue(handle: 3, value: value), on: link) }
        _ = calls.fixture.start { try await host.writeWithoutResponse([1], to: 3, on: link) }
        for part in [Array(value[..<18]), Array(value[18...])] {
            let sent = calls.drain()
            #expect(sent.count == 1 && sent[0][0] == 0x16 && sent[0].count == 5 + part.count)
            calls.receive([0x17] + sent[0].dropFirst())
        }
        #expect(calls.drain() == [[0x18, 1], command(1)])
    }

    @Test func cancelledLongWriteDropsItsPreparedParts() throws {
        let calls = try CallFixture()
        let (host, link) = (calls.host, calls.link)
        let value = [UInt8](repeating: 9, count: 25)
        let (task, outcome) = calls.startTask {
            try await host.perform(WriteWholeValue(handle: 3, value: value), on: link)
        }
        let sent = calls.drain()
        #expect(sent.map(\.first) == [0x16])
        task.cancel()
        calls.fixture.loop.run(for: .milliseconds(1))
        #expect(outcome.all == [.cancelled])
        _ = calls.fixture.start { try await host.perform(ReadValue(handle: 5), on: link) }
        calls.receive([0x17] + sent[0].dropFirst())
        #expect(calls.drain() == [[0x18, 0]])
        calls.receive([0x19])
        #expect(calls.drain() == [[0x0A, 5, 0]])
    }

    @Test func notificationBehindIndicationKeepsOrder() throws {
        let calls = try CallFixture()
        let (host, link) = (calls.host, calls.link)
        let handle = try calls.publishSubscribed()
        for number in 0..<UInt8(2) {
            _ = calls.fixture.start { try await host.indicate([number], of: handle, to: link) }
            _ = calls.fixture.start { try await host.notify([number], of: handle, to: [link]) }
        }
        #expect(calls.drain() == [[0x1D] + handle.bytes + [0], [0x1B] + handle.bytes + [0]])
        calls.receive([0x1E])
        #expect(calls.drain() == [[0x1D] + handle.bytes + [1], [0x1B] + handle.bytes + [1]])
    }

    @Test func answerFollowsNotificationsThatWaitForRoom() throws {
        let calls = try CallFixture(buffers: 1)
        let (host, link) = (calls.host, calls.link)
        let handle = try calls.publishSubscribed()
        calls.receive([0x0A] + handle.bytes)
        let request = try #require(calls.accesses.all.first)
        for number in 0..<UInt8(5) {
            _ = calls.fixture.start { try await host.notify([number], of: handle, to: [link]) }
        }
        _ = calls.fixture.start { await host.answer(request, on: link, with: .success([7])) }
        #expect(calls.drain() == (0..<5).map { [0x1B] + handle.bytes + [$0] } + [[0x0B, 7]])
    }

    @Test func answerPassesIndicationThatWaitsForConfirmation() throws {
        let calls = try CallFixture()
        let (host, link) = (calls.host, calls.link)
        let handle = try calls.publishSubscribed()
        calls.receive([0x0A] + handle.bytes)
        let request = try #require(calls.accesses.all.first)
        for number in 0..<UInt8(2) {
            _ = calls.fixture.start { try await host.indicate([number], of: handle, to: link) }
        }
        _ = calls.fixture.start { try await host.notify([9], of: handle, to: [link]) }
        _ = calls.fixture.start { await host.answer(request, on: link, with: .success([7])) }
        #expect(calls.drain() == [[0x1D] + handle.bytes + [0], [0x0B, 7]])
        calls.receive([0x1E])
        #expect(calls.drain() == [[0x1D] + handle.bytes + [1], [0x1B] + handle.bytes + [9]])
    }

    @Test func callsOfBothLanesKeepOrderWhileTheyWaitForRoom() throws {
        let calls = try CallFixture(buffers: 1)
        let (host, link) = (calls.host, calls.link)
        let handle = try calls.publishSubscribed()
        for number in 0..<UInt8(8) {
            if number.isMultiple(of: 2) {
                _ = calls.fixture.start { try await host.notify([number], of: handle, to: [link]) }
            } else {
                _ = calls.fixture.start { try await host.writeWithoutResponse([number], to: 3, on: link) }
            }
        }
        #expect(
            calls.drain() == (0..<8).map { $0.isMultiple(of: 2) ? [0x1B] + handle.bytes + [$0] : command($0) }
        )
    }

    @Test func notificationToAllDoesNotWaitForTheSlowestClient() throws {
        let calls = try CallFixture(buffers: 2)
        let host = calls.host
        let handle = try calls.publishSubscribed()
        // A second client, which takes its packets at once. The first client takes none.
        let second = ConnectionHandle(0x0041)
        calls.fixture.connect(second, peer: DeviceAddress(0xC0FF_EE00_0002, isRandom: true))
        let descriptor = AttributeHandle(handle.rawValue + 1)
        _ = calls.fixture.exchange([0x12] + descriptor.bytes + [1, 0], on: second)
        let count = 400
        let sent = Recorder<Int>()
        _ = calls.fixture.start {
            for number in 0..<count {
                try await host.notify([UInt8(number & 0xFF)], of: handle)
                sent.append(number)
            }
        }
        var received = 0
        for _ in 0..<(4 * count) where sent.all.count < count {
            let packets = calls.fixture.controller.data.filter { $0[1] == 0x41 }
            calls.fixture.controller.forgetData()
            received += packets.count
            calls.fixture.controller.emit {
                NumberOfCompletedPackets.encodePacket(
                    .init(connectionHandle: second, numCompletedPackets: UInt16(max(packets.count, 1))),
                    into: &$0
                )
            }
            calls.fixture.loop.run(for: .milliseconds(1))
        }
        #expect(sent.all.count == count)
        let waiting = try calls.fixture.run { await host.inspect().waiters }
        // The first client is behind, by at most the limit.
        #expect(waiting <= OutboundLanes.broadcastLimit && waiting > 0)
    }
}
