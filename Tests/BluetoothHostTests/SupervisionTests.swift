import BLEHCI
import BluetoothHost
import BluetoothTypes
import Testing

@Suite("Disagreement between host and controller")
struct SupervisionTests {
    private let peer = DeviceAddress(0xC0FF_EE00_0001, isRandom: true)

    private func wasReset(_ fixture: HostFixture, because reason: String) -> Bool {
        fixture.events.all.contains { $0.hasPrefix("resetting: " + reason) } && fixture.events.all.last == "poweredOn"
    }

    @Test("A controller that does not end a link within its supervision timeout is reset")
    func linkThatDoesNotEndResetsTheController() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        fixture.connect()
        let (host, link) = (fixture.host, try fixture.link())
        let end = fixture.start { await host.disconnect(link) }
        fixture.loop.run(for: .seconds(4))
        #expect(end.all.isEmpty)
        fixture.loop.run(for: .seconds(8))
        #expect(!end.all.isEmpty)
        #expect(wasReset(fixture, because: "it did not end the link"))
    }

    @Test(arguments: [true, false]) func linkThatTheControllerDoesNotKnowEndsAlone(isAwaited: Bool) throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        fixture.connect()
        let (host, link) = (fixture.host, try fixture.link())
        fixture.connect(0x0041, peer: DeviceAddress(0xC0FF_EE00_0002, isRandom: true))
        fixture.controller.override = {
            $0.opcode == Disconnect.opcode
                ? ScriptedController.status($0.opcode, .unknownConnectionIdentifier) : nil
        }
        let end = fixture.start { try await host.disconnection(of: link) }
        _ = fixture.start { isAwaited ? await host.disconnect(link) : await host.beginDisconnecting(link) }
        #expect(try end.all.first?.get() == .controller(.connectionTerminatedByLocalHost))
        fixture.loop.run(for: .seconds(30))
        #expect(try fixture.run { await host.linkIdentifiers() }.count == 1)
        #expect(fixture.events.all == ["poweredOn"])
    }

    @Test("A link whose packets the controller keeps is ended after the maximum supervision timeout")
    func stalledLinkIsEndedAfterTheMaximumTimeout() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        fixture.connect()
        let (host, link) = (fixture.host, try fixture.link())
        #expect(fixture.exchange([0x0A, 0x03, 0x00]).count == 1)
        fixture.controller.forgetCommands()
        fixture.loop.run(for: .seconds(33))
        #expect(fixture.controller.opcodes.isEmpty)
        fixture.loop.run(for: .seconds(12))
        #expect(fixture.controller.opcodes == [Disconnect.opcode])
        let end = fixture.start { try await host.disconnection(of: link) }
        fixture.disconnected(reason: .connectionTerminatedByLocalHost)
        #expect(try end.all.first?.get() == .transmissionStalled)
    }

    @Test("An existing connection that was not reported resets the controller; the attempt continues")
    func unreportedConnectionResetsTheControllerAndTheAttemptContinues() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        let (host, peer) = (fixture.host, peer)
        fixture.controller.override = {
            $0.opcode == LECreateConnection.opcode
                ? ScriptedController.status($0.opcode, .connectionAlreadyExists) : nil
        }
        let attempt = fixture.start {
            try await host.connect(toAnyOf: [peer], parameters: ConnectionParameters(), timeout: nil)
        }
        fixture.loop.run(for: .seconds(10))
        let resets = fixture.events.all.count { $0.hasPrefix("resetting: it has a connection") }
        #expect((3...10).contains(resets), "each after a longer pause: \(resets)")
        fixture.controller.override = { _ in nil }
        fixture.loop.run(for: .seconds(30))
        #expect(fixture.events.all.last == "poweredOn")
        fixture.connect(role: .central)
        #expect(throws: Never.self) { try attempt.all.first?.get() }
        #expect(attempt.all.count == 1)
    }

    @Test("A controller that reports a buffer overflow, although no more was sent than it holds, is reset")
    func unexplainedBufferOverflowResetsTheController() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        fixture.controller.emit([0x04, 0x1A, 0x01, 0x01])
        fixture.loop.run(for: .seconds(1))
        #expect(wasReset(fixture, because: "its buffers have overflowed"))
    }

    @Test("If the address cannot be read in a recovery, the host keeps its address")
    func hostKeepsItsAddressIfItCannotBeReadInARecovery() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        let host = fixture.host
        let before = try fixture.run { try await host.controllerInformation().identityAddress }
        fixture.controller.override = {
            $0.opcode == ReadBDADDR.opcode ? .packets([[0x04, 0x0E, 0x05, 0x01, 0x09, 0x10, 0x00, 0x55]]) : nil
        }
        fixture.controller.emit([0x04, 0x10, 0x01, 0x42])
        fixture.loop.run(for: .seconds(2))
        #expect(fixture.events.all.last == "poweredOn")
        #expect(try fixture.run { try await host.controllerInformation().identityAddress } == before)
    }

    @Test("Connecting to a connected peer returns the existing link, whichever side initiated it")
    func connectingToAConnectedPeerReturnsTheExistingLink() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        fixture.connect(role: .peripheral, peer: peer)
        let (host, link, peer) = (fixture.host, try fixture.link(), peer)
        fixture.controller.forgetCommands()
        let connected = try fixture.run {
            try await host.connect(toAnyOf: [peer], parameters: .init(), timeout: .seconds(1))
        }
        #expect(connected == link)
        #expect(fixture.controller.opcodes.isEmpty)
    }

    @Test("If the event of a cancelled initiation is lost, new attempts wait at most two seconds")
    func lostEndOfInitiatingDelaysAttemptsByTwoSecondsAtMost() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        let (host, peer) = (fixture.host, peer)
        #expect(throws: HostError.timedOut) {
            try fixture.run {
                _ = try await host.connect(toAnyOf: [peer], parameters: .init(), timeout: .seconds(1))
            }
        }
        fixture.loop.run(for: .milliseconds(1))
        #expect(fixture.controller.opcodes.last == LECreateConnectionCancel.opcode)
        fixture.controller.forgetCommands()
        _ = fixture.start { try await host.connect(toAnyOf: [peer], parameters: .init(), timeout: nil) }
        #expect(fixture.controller.opcodes.isEmpty)
        fixture.loop.run(for: .seconds(2))
        #expect(fixture.controller.opcodes.last == LECreateConnection.opcode)
    }

    @Test("A connection update whose event is lost fails after forty seconds")
    func updateWhoseEventIsLostFailsAfterFortySeconds() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        let (host, peer) = (fixture.host, peer)
        _ = fixture.start { try await host.connect(toAnyOf: [peer], parameters: .init(), timeout: nil) }
        fixture.connect(role: .central)
        let link = try fixture.link()
        // The MTU exchange is done and its packet was sent, so nothing else waits.
        _ = fixture.exchange([0x03, 0x17, 0x00])
        fixture.controller.emit([0x04, 0x13, 0x05, 0x01, 0x40, 0x00, 0x01, 0x00])
        let update = fixture.start { try await host.updateParameters(ConnectionParameters(), of: link) }
        fixture.loop.run(for: .seconds(39))
        #expect(update.all.isEmpty)
        fixture.loop.run(for: .seconds(2))
        #expect(throws: HostError.timedOut) { try update.all.first?.get() }
    }

    @Test("A host that is closed while its controller does not come up ends its attempts")
    func hostClosedDuringARecoveryEndsItsAttempts() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        fixture.opener.failuresLeft.store(100, ordering: .sequentiallyConsistent)
        fixture.controller.vanish()
        fixture.loop.run(for: .seconds(10))
        let host = fixture.host
        let inspection = try fixture.run(limit: .seconds(1)) {
            await host.close()
            return await host.inspect()
        }
        #expect(inspection.isEmpty, "\(inspection)")
        let attempts = fixture.opener.count.load(ordering: .sequentiallyConsistent)
        fixture.loop.run(for: .seconds(100))
        #expect(fixture.opener.count.load(ordering: .sequentiallyConsistent) == attempts)
    }
}

@Suite("Supervision of advertising")
struct AdvertisingSupervisionTests {
    private func advertise(_ fixture: HostFixture) throws {
        try fixture.bringUp()
        let host = fixture.host
        try fixture.run { _ = try await host.startAdvertising(AdvertisementConfiguration()) }
    }

    private func enables(_ fixture: HostFixture) -> [Bool] {
        fixture.controller.commands.compactMap { $0.decode(LESetAdvertisingEnable.self)?.advertisingEnable }
    }

    @Test func advertisingStartsAgainIfAConnectionEndsItBeforeItIsConfirmed() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        fixture.controller.override = { $0.opcode == LESetAdvertisingEnable.opcode ? .silence : nil }
        let host = fixture.host
        let started = fixture.start { _ = try await host.startAdvertising(AdvertisementConfiguration()) }
        fixture.controller.override = { _ in nil }
        fixture.connect()
        fixture.controller.emit([0x04, 0x0E, 0x04, 0x01, 0x0A, 0x20, 0x00])
        fixture.loop.run(for: .milliseconds(1))
        #expect(started.all.count == 1)
        #expect(enables(fixture) == [true, true])
    }

    @Test func advertisingIsStartedAgainEveryNinetySeconds() throws {
        let fixture = HostFixture()
        try advertise(fixture)
        fixture.controller.forgetCommands()
        fixture.loop.run(for: .seconds(89))
        #expect(fixture.controller.opcodes.isEmpty)
        fixture.loop.run(for: .seconds(92))
        #expect(enables(fixture) == [false, true, false, true])
        #expect(fixture.controller.opcodes.count == 4)
    }

    @Test("An advertisement that was on and cannot be started again is tried again")
    func advertisementThatCannotBeRestartedIsTriedAgain() throws {
        let fixture = HostFixture()
        try advertise(fixture)
        fixture.controller.override = {
            $0.opcode == LESetAdvertisingParameters.opcode
                ? ScriptedController.complete(LESetAdvertisingParameters.self, .failure(.hardwareFailure)) : nil
        }
        fixture.controller.emit([0x04, 0x10, 0x01, 0x42])
        fixture.loop.run(for: .seconds(3))
        fixture.controller.override = { _ in nil }
        fixture.controller.forgetCommands()
        fixture.loop.run(for: .seconds(2))
        #expect(enables(fixture) == [true])
    }
}
