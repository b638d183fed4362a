import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("The order of Link Layer procedures among the calls on a link")
struct LinkProcedureCallOrderTests {
    private static func parameters(_ milliseconds: Int) -> ConnectionParameters {
        ConnectionParameters(interval: .milliseconds(milliseconds)...(.milliseconds(milliseconds)))
    }

    /// A link whose controller accepts updates, and changes nothing by itself.
    private func linked() throws -> CallFixture {
        let calls = try CallFixture(role: .central)
        calls.fixture.controller.override = { command in
            command.opcode == LEConnectionUpdate.opcode ? ScriptedController.status(command.opcode) : nil
        }
        return calls
    }

    /// Makes the controller report the end of an update.
    private func complete(_ interval: UInt16, _ calls: CallFixture) {
        calls.fixture.controller.emit {
            LEConnectionUpdateComplete(
                status: .success,
                connectionHandle: CallFixture.handle,
                connectionInterval: interval,
                peripheralLatency: 0,
                supervisionTimeout: 400
            ).encodePacket(into: &$0)
        }
        calls.fixture.loop.run(for: .milliseconds(1))
    }

    @Test func updateOfParametersIsSentInTheCall() throws {
        let calls = try linked()
        let (host, link, controller) = (calls.host, calls.link, calls.fixture.controller)
        let outcomes = Recorder<HostError?>()
        let opcode = try calls.fixture.run {
            await host.beginUpdatingParameters(Self.parameters(50), of: link) { outcomes.append($0.failure) }
            return controller.opcodes.last
        }
        #expect(opcode == LEConnectionUpdate.opcode)
        #expect(outcomes.all.isEmpty)
        complete(40, calls)
        #expect(outcomes.all == [nil])
    }

    @Test func updatesOfTasksAndClosuresKeepTheirOrder() throws {
        let calls = try linked()
        let (host, link, controller) = (calls.host, calls.link, calls.fixture.controller)
        let order = Recorder<Int>()
        _ = calls.fixture.start {
            try await host.updateParameters(Self.parameters(50), of: link)
            order.append(1)
        }
        try calls.fixture.run {
            await host.beginUpdatingParameters(Self.parameters(100), of: link) { _ in order.append(2) }
        }
        _ = calls.fixture.start {
            try await host.updateParameters(Self.parameters(150), of: link)
            order.append(3)
        }
        for interval in [40, 80, 120] as [UInt16] { complete(interval, calls) }
        let intervals = controller.commands.compactMap { $0.decode(LEConnectionUpdate.self)?.connectionIntervalMin }
        #expect(intervals == [40, 80, 120])
        #expect(order.all == [1, 2, 3])
    }

    @Test func cancelledTaskLeavesTheClosuresTheirPlaces() throws {
        let calls = try linked()
        let (host, link, controller) = (calls.host, calls.link, calls.fixture.controller)
        let order = Recorder<Int>()
        try calls.fixture.run {
            await host.beginUpdatingParameters(Self.parameters(50), of: link) { _ in order.append(1) }
        }
        let (task, outcome) = calls.startTask { try await host.updateParameters(Self.parameters(100), of: link) }
        try calls.fixture.run {
            await host.beginUpdatingParameters(Self.parameters(150), of: link) { _ in order.append(3) }
        }
        task.cancel()
        calls.fixture.loop.run(for: .milliseconds(1))
        #expect(outcome.all == [.cancelled] && order.all.isEmpty)
        for interval in [40, 120] as [UInt16] { complete(interval, calls) }
        let intervals = controller.commands.compactMap { $0.decode(LEConnectionUpdate.self)?.connectionIntervalMin }
        #expect(intervals == [40, 120])
        #expect(order.all == [1, 3])
    }

    @Test func postponedUpdateOfAClosureGetsItsOutcome() throws {
        let calls = try CallFixture(role: .peripheral)
        let (host, link, controller) = (calls.host, calls.link, calls.fixture.controller)
        let order = Recorder<Int>()
        func requests() -> [[UInt8]] { controller.data.filter { $0[7] == 5 && $0[9] == 0x12 } }
        try calls.fixture.run {
            await host.beginUpdatingParameters(Self.parameters(50), of: link) { _ in order.append(1) }
            await host.beginUpdatingParameters(Self.parameters(100), of: link) { _ in order.append(2) }
        }
        #expect(requests().count == 1)
        // The central changes the parameters by its own decision, and then refuses the request.
        complete(24, calls)
        #expect(order.all == [1] && requests().count == 1)
        let awaited = try calls.fixture.run { await host.whatIsAwaited() }
        #expect(awaited.contains { $0.contains("answer to an earlier request, before the next update") })
        #expect(try calls.fixture.run { await host.contradiction() } == nil)
        calls.receive([0x13, try #require(requests().first)[10], 2, 0, 1, 0], channel: 5)
        #expect(requests().map { $0[13] } == [40, 80])
        calls.receive([0x13, try #require(requests().last)[10], 2, 0, 0, 0], channel: 5)
        complete(80, calls)
        #expect(order.all == [1, 2])
        #expect(try calls.fixture.run { await host.contradiction() } == nil)
    }

    @Test func updateThatWaitsForNothingIsAContradiction() throws {
        let calls = try CallFixture(role: .peripheral)
        let (host, link) = (calls.host, calls.link)
        #expect(try calls.fixture.run { await host.contradiction() } == nil)
        try calls.fixture.run { await host.addUpdateWithoutBeginning(on: link) }
        #expect(
            try calls.fixture.run { await host.contradiction() }?.contains("update of connection parameters") == true
        )
    }

    @Test func unawaitedUpdatesDoNotQueueUp() throws {
        let calls = try linked()
        let (host, link, controller) = (calls.host, calls.link, calls.fixture.controller)
        try calls.fixture.run {
            for number in 1...20 { await host.beginUpdatingParameters(Self.parameters(50 * number), of: link) }
        }
        for _ in 1...20 { complete(40, calls) }
        let intervals = controller.commands.compactMap { $0.decode(LEConnectionUpdate.self)?.connectionIntervalMin }
        #expect(intervals == [40, 800])
    }

    @Test func updatesEndWithTheLink() throws {
        let calls = try linked()
        let (host, link) = (calls.host, calls.link)
        let outcomes = Recorder<HostError?>()
        try calls.fixture.run {
            await host.beginUpdatingParameters(Self.parameters(50), of: link) { outcomes.append($0.failure) }
            await host.beginUpdatingParameters(Self.parameters(100), of: link) { outcomes.append($0.failure) }
        }
        calls.fixture.disconnected(CallFixture.handle, reason: .connectionTimeout)
        try calls.fixture.run {
            await host.beginUpdatingParameters(Self.parameters(150), of: link) { outcomes.append($0.failure) }
        }
        #expect(outcomes.all == Array(repeating: .disconnected(.controller(.connectionTimeout)), count: 3))
        #expect(try calls.fixture.run { await host.contradiction() } == nil)
    }

    @Test func whatTheControllerCannotDoFailsAtOnce() throws {
        let calls = try linked()
        let (host, link, controller) = (calls.host, calls.link, calls.fixture.controller)
        controller.forgetCommands()
        let outcomes = Recorder<HostError?>()
        try calls.fixture.run {
            await host.beginUpdatingParameters(Self.parameters(5000), of: link) { outcomes.append($0.failure) }
            await host.beginSettingPHY(transmit: .le2M, receive: .le2M, of: link) { outcomes.append($0.failure) }
        }
        #expect(
            outcomes.all == [
                .invalidArgument("connection parameters out of range"),
                .notSupported("this controller has only the 1M PHY"),
            ]
        )
        #expect(controller.commands.isEmpty)
    }
}

extension BluetoothHost {
    fileprivate func addUpdateWithoutBeginning(on link: LinkIdentifier) {
        var context = controlContext
        context.isPoweredOn = false
        _ = links[link]?.control.requestUnawaited(ConnectionParameters(), context)
    }
}

extension Result where Failure == HostError {
    fileprivate var failure: HostError? {
        if case .failure(let error) = self { error } else { nil }
    }
}
