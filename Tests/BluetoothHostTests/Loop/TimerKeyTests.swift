import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("Timers by key")
struct TimerKeyTests {
    private func sleeps(takenFrom queue: inout TimerQueue, at now: Instant) -> [UInt32] {
        var taken: [UInt32] = []
        while let key = queue.takeDue(at: now) {
            if case .sleep(let call) = key { taken.append(call.index) }
        }
        return taken
    }

    @Test func dueKeysAreTakenByTimeAndThenByOrder() {
        var queue = TimerQueue()
        let start = Instant(nanoseconds: 0)
        for (index, seconds) in [(1, 3), (2, 1), (3, 2), (4, 1)] as [(UInt32, Int)] {
            _ = queue.schedule(.sleep(call(index)), at: start + .seconds(seconds))
        }
        #expect(queue.nextDue == start + .seconds(1))
        #expect(sleeps(takenFrom: &queue, at: start + .seconds(2)) == [2, 4, 3])
        #expect(sleeps(takenFrom: &queue, at: start + .seconds(3)) == [1])
        #expect(queue.nextDue == nil)
    }

    @Test func cancelledKeyIsNotTaken() {
        var queue = TimerQueue()
        let start = Instant(nanoseconds: 0)
        let token = queue.schedule(.sleep(call(1)), at: start)
        _ = queue.schedule(.sleep(call(2)), at: start + .seconds(1))
        queue.cancel(token)
        queue.cancel(token)
        #expect(queue.count == 1)
        #expect(queue.nextDue == start + .seconds(1))
        #expect(sleeps(takenFrom: &queue, at: start + .seconds(1)) == [2])
    }

    @Test func closedHostHasNoTimerAndNoAlarm() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        fixture.connect()
        let host = fixture.host
        #expect(fixture.loop.alarmCount == 1)
        try fixture.run { await host.close() }
        #expect(fixture.loop.alarmCount == 0)
        #expect(try fixture.run { await host.inspect() }.isEmpty)
    }

    @Test func cancelledTimersDoNotAccumulate() {
        var queue = TimerQueue()
        let start = Instant(nanoseconds: 0)
        _ = queue.schedule(.sleep(call(1)), at: start + .seconds(2))
        for index in 0..<1000 as Range<UInt32> {
            queue.cancel(queue.schedule(.sleep(call(index)), at: start + .seconds(86_400)))
        }
        _ = queue.schedule(.sleep(call(2)), at: start + .seconds(1))
        #expect(queue.heapCount < 100)
        #expect(sleeps(takenFrom: &queue, at: start + .seconds(86_400)) == [2, 1])
    }

    /// A host whose link has ended, and whose handle a later link has.
    private func fixtureWithEndedLink() throws -> (HostFixture, ended: LinkIdentifier) {
        let fixture = HostFixture()
        try fixture.bringUp()
        fixture.connect()
        let ended = try fixture.link()
        fixture.controller.emit {
            DisconnectionComplete(connectionHandle: 0x0040, reason: .connectionTimeout).encodePacket(into: &$0)
        }
        fixture.connect(peer: DeviceAddress(0xC0FF_EE00_0003, isRandom: true))
        fixture.loop.run(for: .seconds(1))
        fixture.controller.forgetCommands()
        return (fixture, ended)
    }

    @Test func keysOfAnEndedLinkDoNothingToTheNextLinkWithItsHandle() throws {
        let (fixture, ended) = try fixtureWithEndedLink()
        let host = fixture.host
        let (before, after) = try fixture.run {
            await host.fire([.link(ended)])
        }
        #expect(before == after)
        #expect(before.links == 1)
        #expect(fixture.controller.opcodes.isEmpty)
        #expect(fixture.events.all == ["poweredOn"])
    }

    @Test func keysOfEndedCallsAndOfAnEarlierControllerDoNothing() throws {
        let (fixture, _) = try fixtureWithEndedLink()
        let host = fixture.host
        let (before, after) = try fixture.run {
            await host.fire([.engine(.session), .engine(.gap), .sleep(call(1)), .stallCheck])
        }
        #expect(before == after)
        #expect(fixture.controller.opcodes.isEmpty)
        #expect(fixture.events.all == ["poweredOn"])
    }

    @Test func earlyKeyOfTheSessionDoesNotEndTheWaitForAnUnknownLink() throws {
        let (fixture, _) = try fixtureWithEndedLink()
        let host = fixture.host
        // The controller answers that it has the link and does not end it.
        fixture.controller.override = { $0.opcode == Disconnect.opcode ? ScriptedController.status($0.opcode) : nil }
        fixture.controller.emit(HostFixture.acl([0x01], on: 0x0050))
        fixture.loop.run(for: .milliseconds(1100))
        let (before, after) = try fixture.run { await host.fire([.engine(.session)]) }
        #expect(before == after)
        #expect(fixture.events.all == ["poweredOn"])
        #expect(try fixture.run { await host.contradiction() } == nil)
        fixture.loop.run(for: .seconds(60))
        #expect(fixture.events.all.dropFirst().first == "resetting: it did not end the link 0x0050")
    }
}

extension BluetoothHost {
    /// Fires timers that are not set.
    ///
    /// - Returns: the host's resources before and after.
    fileprivate func fire(_ keys: [TimerKey]) -> (HostInspection, HostInspection) {
        let before = inspect()
        for key in keys { timerFired(key) }
        return (before, inspect())
    }
}

private func call(_ index: UInt32) -> CallToken { CallToken(index: index, generation: 0) }
