import BLEHCI
import BLEHCITransport
import BluetoothHost
import BluetoothTypes
import Synchronization
import Testing

@Suite("Recovery of a controller")
struct RecoveryTests {
    private func startScan(_ fixture: HostFixture) throws {
        let host = fixture.host
        try fixture.run { _ = await host.startScan(ScanOptions()) { _ in } }
        fixture.loop.run(for: .milliseconds(10))
        #expect(fixture.controller.opcodes.suffix(2) == [LESetScanParameters.opcode, LESetScanEnable.opcode])
    }

    @Test("A hardware error resets the controller, ends links with the reason, restarts scan and advertising")
    func hardwareErrorResetsTheControllerAndRestartsActivities() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        try startScan(fixture)
        let host = fixture.host
        try fixture.run { _ = try await host.startAdvertising(AdvertisementConfiguration()) }
        fixture.connect()
        let link = try fixture.link()
        let end = fixture.start { try await host.disconnection(of: link) }
        fixture.controller.forgetCommands()
        fixture.controller.emit([0x04, 0x10, 0x01, 0x42])
        fixture.loop.run(for: .seconds(2))
        #expect(try end.all.first?.get() == .controllerReset("hardware error 66"))
        #expect(fixture.events.all.suffix(2) == ["resetting: hardware error 66", "poweredOn"])
        #expect(fixture.controller.opcodes.first == Reset.opcode)
        #expect(fixture.controller.opcodes.contains(LESetScanEnable.opcode))
        #expect(fixture.controller.opcodes.contains(LESetAdvertisingEnable.opcode))
    }

    @Test("A command left unanswered resets the controller")
    func unansweredCommandResetsTheController() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        fixture.connect()
        let host = fixture.host
        let link = try fixture.link()
        let isSilent = Atomic(true)
        fixture.controller.override = { command in
            command.opcode == ReadRSSI.opcode && isSilent.exchange(false, ordering: .relaxed) ? .silence : nil
        }
        #expect(throws: HostError.self) { try fixture.run { try await host.readRSSI(of: link) } }
        fixture.loop.run(for: .seconds(1))
        #expect(fixture.events.all.contains { $0.hasPrefix("resetting: it did not answer") })
        #expect(fixture.events.all.last == "poweredOn")
    }

    /// A host as the central of one link. The controller does not answer this command.
    private func central(leavingUnanswered opcode: HCIOpcode) throws -> (HostFixture, LinkIdentifier) {
        let fixture = HostFixture { $0.requestsMTU = false }
        fixture.controller.override = { $0.opcode == opcode ? .silence : nil }
        try fixture.bringUp()
        let (host, peer) = (fixture.host, DeviceAddress(0xC0FF_EE00_0001, isRandom: true))
        _ = fixture.start { try await host.connect(toAnyOf: [peer], parameters: .init(), timeout: nil) }
        fixture.connect(role: .central, peer: peer)
        let link = try fixture.link()
        fixture.controller.forgetCommands()
        return (fixture, link)
    }

    /// The ways in which a controller is lost.
    private enum Loss: CaseIterable {
        case hardwareError
        case silence
        case transport
    }

    @Test(
        "While the controller is given up, waiting updates fail with the end of the link",
        arguments: Loss.allCases
    )
    private func waitingUpdatesFailWhenTheControllerIsGivenUp(loss: Loss) throws {
        let (fixture, link) = try central(leavingUnanswered: LEConnectionUpdate.opcode)
        let host = fixture.host
        let updates = (0..<2).map { _ in
            fixture.start { try await host.updateParameters(ConnectionParameters(), of: link) }
        }
        #expect(fixture.controller.opcodes == [LEConnectionUpdate.opcode])
        fixture.controller.forgetCommands()
        switch loss {
        case .hardwareError: fixture.controller.emit([0x04, 0x10, 0x01, 0x42])
        case .transport: fixture.controller.vanish()
        case .silence: break
        }
        #expect(fixture.loop.run(limit: .seconds(10), until: { fixture.events.all.count > 1 }))
        fixture.loop.run(for: .seconds(1))
        #expect(fixture.controller.opcodes.first == Reset.opcode)
        #expect(!fixture.controller.opcodes.contains(LEConnectionUpdate.opcode))
        let reason =
            switch loss {
            case .hardwareError: "hardware error 66"
            case .transport: "the connection to it was lost: \(TransportError.closedByPeer)"
            case .silence: "it did not answer \(LEConnectionUpdate.opcode)"
            }
        #expect(fixture.events.all == ["poweredOn", "resetting: \(reason)", "poweredOn"])
        for update in updates {
            #expect(throws: HostError.disconnected(.controllerReset(reason))) { try update.all.first?.get() }
        }
        #expect(try fixture.run { await host.contradiction() } == nil)
    }

    @Test(
        "A command for a link fails with the end of the link if the controller is given up",
        arguments: [ReadRSSI.opcode, LESetDataLength.opcode]
    )
    func commandForALinkFailsWhenTheControllerIsGivenUp(opcode: HCIOpcode) throws {
        let (fixture, link) = try central(leavingUnanswered: opcode)
        let host = fixture.host
        let results = Recorder<Result<Int?, HostError>>()
        let call = fixture.start {
            if opcode == ReadRSSI.opcode {
                _ = try await host.readRSSI(of: link)
            } else {
                try await host.setDataLength(bytes: 100, of: link)
            }
        }
        try fixture.run { await host.beginReadingRSSI(of: link) { results.append($0) } }
        #expect(fixture.controller.opcodes == [opcode])
        fixture.controller.emit([0x04, 0x10, 0x01, 0x42])
        fixture.loop.run(for: .seconds(1))
        let end = HostError.disconnected(.controllerReset("hardware error 66"))
        #expect(throws: end) { try call.all.first?.get() }
        #expect(results.all == [.failure(end)])
    }

    @Test("A link reported while the controller is being reset is ignored")
    func linkReportedDuringAResetIsIgnored() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        fixture.controller.emit([0x04, 0x10, 0x01, 0x42])
        fixture.connect()
        fixture.loop.run(for: .seconds(2))
        #expect(fixture.events.all.last == "poweredOn")
        let host = fixture.host
        #expect(try fixture.run { await host.linkIdentifiers() }.isEmpty)
        #expect(try fixture.run { await host.contradiction() } == nil)
        fixture.connect()
        #expect(try fixture.run { await host.linkIdentifiers() }.count == 1)
    }

    @Test("A controller that accepts no commands for too long is reset")
    func controllerThatAcceptsNoCommandsIsReset() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        fixture.connect()
        let host = fixture.host
        let link = try fixture.link()
        fixture.controller.emit([0x04, 0x0E, 0x03, 0x00, 0x00, 0x00])
        fixture.controller.forgetCommands()
        #expect(throws: HostError.self) { try fixture.run { try await host.readRSSI(of: link) } }
        #expect(!fixture.controller.opcodes.contains(ReadRSSI.opcode))
        fixture.loop.run(for: .seconds(1))
        #expect(fixture.events.all.suffix(2) == ["resetting: it accepts no commands", "poweredOn"])
    }

    @Test("A controller that accepts commands again after a while gets those that waited")
    func controllerThatAcceptsCommandsAgainGetsThoseThatWaited() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        fixture.connect()
        let host = fixture.host
        let link = try fixture.link()
        fixture.controller.emit([0x04, 0x0E, 0x03, 0x00, 0x00, 0x00])
        let value = fixture.start { try await host.readRSSI(of: link) }
        fixture.loop.run(for: .milliseconds(100))
        #expect(value.all.isEmpty)
        fixture.controller.emit([0x04, 0x0E, 0x03, 0x01, 0x00, 0x00])
        fixture.loop.run(for: .seconds(60))
        #expect(value.all.count == 1)
        #expect(fixture.events.all.last == "poweredOn")
    }

    @Test("A lost transport is opened again, with increasing pauses while that fails")
    func lostTransportIsOpenedAgainWithIncreasingPauses() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        try startScan(fixture)
        fixture.opener.failuresLeft.store(4, ordering: .sequentiallyConsistent)
        let start = fixture.loop.now
        fixture.controller.forgetCommands()
        fixture.controller.vanish()
        #expect(
            fixture.loop.run(
                limit: .seconds(60),
                until: { fixture.events.all.last == "poweredOn" && fixture.events.all.count > 2 }
            )
        )
        #expect(fixture.opener.count.load(ordering: .sequentiallyConsistent) == 6)
        // At least 0.1 + 0.2 + 0.4 + 0.8 seconds.
        #expect(fixture.loop.now - start >= .milliseconds(1500))
        fixture.loop.run(for: .milliseconds(10))
        #expect(fixture.controller.opcodes.last == LESetScanEnable.opcode)
    }

    @Test(
        "A controller that is lost right after its answer gets the command again afterwards",
        arguments: [LESetAdvertisingEnable.opcode, LESetScanEnable.opcode]
    )
    func controllerLostRightAfterItsAnswerGetsTheCommandAgain(opcode: HCIOpcode) throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        let (host, controller) = (fixture.host, fixture.controller)
        let isFirst = Atomic(true)
        controller.override = { command in
            guard command.opcode == opcode, isFirst.exchange(false, ordering: .relaxed) else { return nil }
            let (low, high) = (UInt8(opcode.rawValue & 0xFF), UInt8(opcode.rawValue >> 8))
            controller.emit([0x04, 0x0E, 0x04, 0x01, low, high, 0x00])
            controller.vanish()
            return .silence
        }
        if opcode == LESetScanEnable.opcode {
            try fixture.run { _ = await host.startScan(ScanOptions()) { _ in } }
        } else {
            _ = fixture.start { try await host.startAdvertising(AdvertisementConfiguration()) }
        }
        fixture.loop.run(for: .seconds(2))
        #expect(fixture.events.all.last == "poweredOn")
        let afterReset = controller.opcodes.suffix(while: { $0 != Reset.opcode })
        #expect(afterReset.contains(opcode))
    }

    @Test("A silent scan is restarted, then the controller is reset; the app gets both events")
    func silentScanIsRestartedAndThenTheControllerIsReset() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        try startScan(fixture)
        fixture.loop.run(for: .seconds(89))
        #expect(fixture.events.all == ["poweredOn"])
        fixture.loop.run(for: .seconds(2))
        #expect(fixture.events.all == ["poweredOn", "scanRestarted"])
        fixture.loop.run(for: .seconds(91))
        #expect(
            fixture.events.all
                == ["poweredOn", "scanRestarted", "resetting: its scan has been silent for 180.0 seconds", "poweredOn"]
        )
    }

    @Test("Closing ends all waiting calls, resets the controller and is reported")
    func closingEndsAllCallsAndResetsTheController() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        let host = fixture.host
        let attempt = fixture.start {
            try await host.connect(
                toAnyOf: [DeviceAddress(1, isRandom: false)],
                parameters: ConnectionParameters(),
                timeout: nil
            )
        }
        try fixture.run { await host.close() }
        #expect(throws: HostError.closed) { try attempt.all.first?.get() }
        #expect(fixture.controller.opcodes.last == Reset.opcode)
        #expect(fixture.events.all.last == "closed")
        #expect(throws: StartError.host(.closed)) { try fixture.run { try await host.start() } }
    }

    /// Begins two attempts to connect, with a controller that takes one address at a time.
    private func beginTwoAttempts(_ fixture: HostFixture) {
        let host = fixture.host
        for number in 1...2 {
            let peer = DeviceAddress(0xC0FF_EE00_0000 + UInt64(number), isRandom: true)
            _ = fixture.start { try await host.connect(toAnyOf: [peer], parameters: .init(), timeout: nil) }
        }
        fixture.loop.run(for: .seconds(1))
    }

    @Test func callOfAClosedHostSetsNoTimer() throws {
        let fixture = HostFixture(profile: .init(acceptListSize: 1))
        let rules = RadioRules(fixture.controller)
        try fixture.bringUp()
        let host = fixture.host
        let scan = try fixture.run { await host.startScan(ScanOptions()) { _ in } }
        beginTwoAttempts(fixture)
        try fixture.run { await host.close() }
        try fixture.run { await host.stopScan(scan) }
        #expect(try fixture.run { await host.inspect() }.isEmpty)
        withExtendedLifetime(rules) {}
    }

    @Test func closeWhileAddressesAreSetUpLeavesNoTimer() throws {
        let fixture = HostFixture(profile: .init(acceptListSize: 1)) { $0.usesPrivateAddresses = true }
        let rules = RadioRules(fixture.controller)
        try fixture.bringUp()
        let host = fixture.host
        beginTwoAttempts(fixture)
        let answer = fixture.controller.override
        fixture.controller.override = { $0.opcode == LESetRandomAddress.opcode ? .silence : answer($0) }
        fixture.controller.emit { HardwareError(hardwareCode: 1).encodePacket(into: &$0) }
        fixture.loop.run(for: .milliseconds(500))
        #expect(fixture.controller.opcodes.last == LESetRandomAddress.opcode)
        try fixture.run { await host.close() }
        fixture.loop.run(for: .milliseconds(1))
        #expect(try fixture.run { await host.inspect() }.isEmpty)
        withExtendedLifetime(rules) {}
    }

    @Test("Closing waits once for a controller that does not answer, whatever the number of links")
    func closingWaitsOnceForASilentController() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        for number in 0..<5 {
            fixture.connect(
                ConnectionHandle(0x0040 + UInt16(number)),
                peer: DeviceAddress(0xC0FF_EE00_0001 + UInt64(number), isRandom: true)
            )
        }
        fixture.controller.override = { _ in .silence }
        let host = fixture.host
        let start = fixture.loop.now
        try fixture.run { await host.close() }
        #expect(fixture.loop.now - start <= .seconds(5))
        #expect(try fixture.run { await host.inspect() }.isEmpty)
    }

    @Test func secondCloseReturnsWhenTheHostIsClosed() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        fixture.controller.override = { $0.opcode == Reset.opcode ? .silence : nil }
        let host = fixture.host
        let closes = (0..<2).map { _ in fixture.start { await host.close() } }
        let cancelled = fixture.start {
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await host.close() }
                group.cancelAll()
            }
        }
        fixture.loop.run(for: .milliseconds(1))
        #expect(closes.allSatisfy(\.all.isEmpty) && cancelled.all.count == 1)
        fixture.loop.run(for: .seconds(5))
        #expect(closes.allSatisfy { $0.all.count == 1 })
        try fixture.run { await host.close() }
        #expect(try fixture.run { await host.inspect() }.isEmpty)
    }

    @Test("Closing ends a start that waits for the controller", arguments: [Reset.opcode, LESetEventMask.opcode])
    func closingEndsAStartThatWaitsForTheController(opcode: HCIOpcode) throws {
        let fixture = HostFixture()
        fixture.controller.override = { $0.opcode == opcode ? .silence : nil }
        let host = fixture.host
        let start = fixture.start { try await host.start() }
        #expect(start.all.isEmpty && fixture.controller.opcodes.last == opcode)
        try fixture.run { await host.close() }
        fixture.loop.run(for: .milliseconds(1))
        #expect(throws: StartError.host(.closed)) { try start.all.first?.get() }
        #expect(start.all.count == 1)
        #expect(try fixture.run { await host.inspect() }.isEmpty)
    }

    @Test(
        "Malformed packets are ignored and the link continues",
        arguments: [
            [], [0x04], [0x04, 0x3E], [0x04, 0x3E, 0x05, 0x01], [0x04, 0x13, 0x01, 0x05],
            [0x02, 0x40, 0x20, 0xFF, 0xFF],
            [0x02, 0x40, 0x20, 0x02, 0x00, 0x01], [0x09, 0x01, 0x02], [0x04, 0x3E, 0x02, 0x02, 0xFF],
            [0x01, 0x03, 0x0C, 0x00],
            [0x02, 0x40, 0x10, 0x01, 0x00, 0x00], [0x04, 0x0E, 0x01, 0x01], [0x04, 0xEE, 0x00],
        ] as [[UInt8]]
    )
    func malformedPacketIsIgnoredAndTheLinkContinues(packet: [UInt8]) throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        fixture.connect()
        fixture.controller.emit(packet)
        fixture.loop.run(for: .milliseconds(1))
        #expect(fixture.exchange([0x02, 0x17, 0x00]) == [[0x03, 0x05, 0x02]])
    }
}

extension Array {
    /// The elements after the longest prefix that fits.
    fileprivate func suffix(while fits: (Element) -> Bool) -> ArraySlice<Element> {
        self[(lastIndex { !fits($0) }.map { $0 + 1 } ?? 0)...]
    }
}
