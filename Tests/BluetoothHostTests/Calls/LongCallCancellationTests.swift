import BLEHCI
import BLEL2CAP
import BluetoothTypes
import Synchronization
import Testing

@testable import BluetoothHost

/// An answer of the controller, the peer or the app may be late by many seconds. A cancelled call does not wait for it.
@Suite("Cancelling calls that may wait for long")
struct LongCallCancellationTests {
    private static let peer = DeviceAddress(0xC0FF_EE00_0001, isRandom: true)

    private func connected(
        _ role: BLEHCI.Role = .peripheral,
        override: @escaping ScriptedController.Override = { _ in nil }
    ) throws -> (HostFixture, LinkIdentifier) {
        let fixture = HostFixture { $0.requestsMTU = false }
        fixture.controller.override = override
        try fixture.bringUp()
        let host = fixture.host
        if role == .central {
            _ = fixture.start {
                try await host.connect(toAnyOf: [LongCallCancellationTests.peer], parameters: .init(), timeout: nil)
            }
        }
        fixture.connect(role: role, peer: LongCallCancellationTests.peer)
        return (fixture, try fixture.link())
    }

    /// Expects that a call waits, that cancelling its task ends it, and that the host then holds nothing for it.
    private func expectCancellable(
        on fixture: HostFixture,
        outcome expected: HostError? = .cancelled,
        _ body: @escaping @Sendable () async throws -> Void
    ) throws {
        let host = fixture.host
        let before = try fixture.run { await host.inspect() }
        let (task, outcome) = fixture.startTask(body)
        #expect(outcome.all.isEmpty, "the call waits")
        task.cancel()
        fixture.loop.run(for: .milliseconds(1))
        #expect(outcome.all == [expected])
        let after = try fixture.run { await host.inspect() }
        #expect(after.waiters == before.waiters && after.endObservers == before.endObservers)
        #expect(after.calls == before.calls)
        #expect(try fixture.run { await host.contradiction() } == nil)
    }

    // MARK: Ends of links

    @Test func disconnectionIsCancellable() throws {
        let (fixture, link) = try connected()
        let host = fixture.host
        try expectCancellable(on: fixture) { _ = try await host.disconnection(of: link) }
    }

    @Test func secondDisconnectIsCancellable() throws {
        let (fixture, link) = try connected()
        let host = fixture.host
        let first = fixture.start { await host.disconnect(link) }
        try expectCancellable(on: fixture, outcome: nil) { await host.waitIfDisconnecting(link) }
        #expect(first.all.isEmpty)
    }

    @Test func disconnectIsCancellableBeforeTheControllerAnswers() throws {
        let (fixture, link) = try connected { $0.opcode == Disconnect.opcode ? .silence : nil }
        let host = fixture.host
        try expectCancellable(on: fixture, outcome: nil) { await host.disconnect(link) }
        #expect(fixture.controller.opcodes.last == Disconnect.opcode)
    }

    // MARK: Procedures of the Link Layer

    @Test(arguments: [BLEHCI.Role.central, .peripheral]) func parameterUpdateIsCancellable(role: BLEHCI.Role) throws {
        let (fixture, link) = try connected(role)
        let host = fixture.host
        let parameters = ConnectionParameters(interval: .milliseconds(50)...(.milliseconds(50)))
        try expectCancellable(on: fixture) { try await host.updateParameters(parameters, of: link) }
    }

    @Test("The event of a cancelled update does not end the next update")
    func eventOfACancelledUpdateDoesNotEndTheNextUpdate() throws {
        let (fixture, link) = try connected(.central) { command in
            command.opcode == LEConnectionUpdate.opcode ? ScriptedController.status(command.opcode) : nil
        }
        let host = fixture.host
        func update(_ interval: Duration) -> (Task<Void, Never>, Recorder<HostError?>) {
            fixture.startTask { try await host.updateParameters(.init(interval: interval...interval), of: link) }
        }
        func intervals() -> [UInt16] {
            fixture.controller.commands.compactMap { $0.decode(LEConnectionUpdate.self)?.connectionIntervalMin }
        }
        let (first, firstOutcome) = update(.milliseconds(50))
        let (_, second) = update(.milliseconds(100))
        #expect(intervals() == [40], "one at a time")
        first.cancel()
        fixture.loop.run(for: .milliseconds(1))
        #expect(firstOutcome.all == [.cancelled])
        #expect(intervals() == [40])
        fixture.completeParameterUpdate(interval: 40)
        #expect(second.all.isEmpty)
        #expect(intervals() == [40, 80])
        fixture.completeParameterUpdate(interval: 80)
        #expect(second.all == [nil])
        #expect(try fixture.run { try await host.information(on: link) }.parameters.interval == .milliseconds(100))
    }

    @Test("A procedure whose event is lost ends after 40 s, and the next begins")
    func procedureWhoseEventIsLostEndsAndTheNextBegins() throws {
        let (fixture, link) = try connected(.central) { command in
            command.opcode == LEConnectionUpdate.opcode ? ScriptedController.status(command.opcode) : nil
        }
        let host = fixture.host
        let outcomes = (0..<2).map { _ in
            fixture.startTask {
                try await host.updateParameters(.init(interval: .milliseconds(50)...(.milliseconds(50))), of: link)
            }.1
        }
        fixture.loop.run(for: .seconds(40))
        #expect(outcomes.map(\.all) == [[.timedOut], []])
        fixture.loop.run(for: .seconds(41))
        #expect(outcomes.map(\.all) == [[.timedOut], [.timedOut]])
        #expect(fixture.controller.commands.filter { $0.opcode == LEConnectionUpdate.opcode }.count == 2)
        #expect(try fixture.run { await host.contradiction() } == nil)
    }

    @Test func changeOfPHYsIsCancellable() throws {
        let (fixture, link) = try connected { command in
            switch command.opcode {
            case ReadLocalSupportedCommands.opcode:
                var commands = SupportedCommands()
                for opcode in [
                    ReadBDADDR.opcode, LEReadFilterAcceptListSize.opcode, LEReadBufferSize.opcode, LESetPHY.opcode,
                ] {
                    commands.insert(opcode)
                }
                return ScriptedController.complete(
                    ReadLocalSupportedCommands.self,
                    .success(.init(supportedCommands: commands))
                )
            case LESetPHY.opcode: return ScriptedController.status(command.opcode)
            default: return nil
            }
        }
        let host = fixture.host
        try expectCancellable(on: fixture) { try await host.setPHY(transmit: .le2M, receive: .le2M, of: link) }
    }

    // MARK: Channels

    @Test func reconfigurationIsCancellable() throws {
        let (fixture, link) = try connected()
        let host = fixture.host
        let opened = Recorder<OpenedChannel>()
        _ = try fixture.run {
            try await host.beginOpeningChannels(1, to: SPSM(rawValue: 0x80), on: link) { result in
                if case .success(let channel) = result { opened.append(channel) }
                return { _ in }
            }
        }
        let request = try #require(fixture.controller.data.last).dropFirst(9)
        try #require(request.first == 0x17)
        let identifier = request[request.startIndex + 1]
        fixture.controller.emit(
            HostFixture.acl([0x18, identifier, 10, 0, 64, 0, 64, 0, 1, 0, 0, 0, 0x41, 0], channel: 5)
        )
        fixture.loop.run(for: .milliseconds(1))
        let channel = try #require(opened.all.first).identifier
        try expectCancellable(on: fixture) { try await host.reconfigure(channel, mtu: 4000, mps: 300) }
    }

    // MARK: Advertising

    @Test func advertisementIsCancellableWhileTheControllerRecovers() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        let host = fixture.host
        fixture.opener.failuresLeft.store(3, ordering: .sequentiallyConsistent)
        fixture.controller.vanish()
        fixture.loop.run(for: .milliseconds(1))
        try #require(fixture.events.all.last?.hasPrefix("resetting") == true)
        try expectCancellable(on: fixture) { _ = try await host.startAdvertising(AdvertisementConfiguration()) }
        #expect(try fixture.run { await host.inspect() }.advertisements == 0)
        fixture.loop.run(for: .seconds(60))
        try #require(fixture.events.all.last == "poweredOn")
        #expect(!fixture.controller.opcodes.contains(LESetAdvertisingEnable.opcode))
    }

    @Test func advertisementThatIsCancelledWhileItStartsIsStopped() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        let host = fixture.host
        fixture.controller.override = { $0.opcode == LESetAdvertisingParameters.opcode ? .silence : nil }
        try expectCancellable(on: fixture) { _ = try await host.startAdvertising(AdvertisementConfiguration()) }
        fixture.controller.override = { _ in nil }
        fixture.loop.run(for: .seconds(60))
        #expect(try fixture.run { await host.inspect() }.advertisements == 0)
        let isEnabled = fixture.controller.commands.compactMap { $0.decode(LESetAdvertisingEnable.self) }
        #expect(isEnabled.last?.advertisingEnable != true)
    }

    @Test func stopOfAnAdvertisementIsCancellable() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        let host = fixture.host
        let advertisement = try fixture.run { try await host.startAdvertising(AdvertisementConfiguration()) }
        fixture.controller.override = { $0.opcode == LESetAdvertisingEnable.opcode ? .silence : nil }
        try expectCancellable(on: fixture, outcome: nil) { await host.stopAdvertising(advertisement) }
        fixture.controller.override = { _ in nil }
        fixture.loop.run(for: .seconds(60))
        #expect(try fixture.run { await host.inspect() }.advertisements == 0)
    }

    @Test func cancelledTaskStopsItsAdvertisement() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        let host = fixture.host
        let advertisement = try fixture.run { try await host.startAdvertising(AdvertisementConfiguration()) }
        let (_, outcome) = fixture.startTask {
            withUnsafeCurrentTask { $0?.cancel() }
            await host.stopAdvertising(advertisement)
        }
        #expect(outcome.all == [nil])
        #expect(try fixture.run { await host.inspect() }.advertisements == 0)
        let isEnabled = fixture.controller.commands.compactMap { $0.decode(LESetAdvertisingEnable.self) }
        #expect(isEnabled.last?.advertisingEnable == false)
    }
}
