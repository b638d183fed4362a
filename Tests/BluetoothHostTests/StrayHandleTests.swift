import BLEHCI
import BluetoothHost
import BluetoothTypes
import Testing

@Suite("Packets whose connection handle belongs to no link")
struct StrayHandleTests {
    private let peer = DeviceAddress(0xC0FF_EE00_0002, isRandom: true)

    /// A host with one link, handle 0x0040, whose controller knows no other link.
    private func fixtureWithLink(knows handles: [UInt16] = [0x0040]) throws -> HostFixture {
        let fixture = HostFixture()
        try fixture.bringUp()
        fixture.connect()
        fixture.controller.override = { command in
            guard let disconnect = command.decode(Disconnect.self) else { return nil }
            return ScriptedController.status(
                Disconnect.opcode,
                handles.contains(disconnect.connectionHandle.rawValue) ? .success : .unknownConnectionIdentifier
            )
        }
        fixture.loop.run(for: .seconds(1))
        fixture.controller.forgetCommands()
        return fixture
    }

    private func emitEnd(of handle: ConnectionHandle, _ fixture: HostFixture) {
        fixture.controller.emit {
            DisconnectionComplete(connectionHandle: handle, reason: .connectionTimeout).encodePacket(into: &$0)
        }
    }

    private func expectNoReset(_ fixture: HostFixture, sourceLocation: SourceLocation = #_sourceLocation) throws {
        #expect(fixture.events.all == ["poweredOn"], sourceLocation: sourceLocation)
        let host = fixture.host
        #expect(try fixture.run { await host.contradiction() } == nil, sourceLocation: sourceLocation)
    }

    @Test("Log packets with the handle 0x0EDC disturb no link, and cause one question to the controller")
    func vendorLogKeepsLinks() throws {
        let fixture = try fixtureWithLink()
        for _ in 0..<100 {
            fixture.controller.emit(HostFixture.acl([0x01, 0x02, 0x03], on: 0x0EDC))
            fixture.loop.run(for: .milliseconds(100))
        }
        #expect(fixture.controller.commands.compactMap { $0.decode(Disconnect.self)?.connectionHandle } == [0x0EDC])
        #expect(fixture.exchange([0x02, 0x17, 0x00]) == [[0x03, 0x05, 0x02]])
        try expectNoReset(fixture)
    }

    @Test("Data and disconnections with a reserved handle cause no command", arguments: [0x0F00, 0x0FFF] as [UInt16])
    func reservedHandleIsIgnored(handle: UInt16) throws {
        let fixture = try fixtureWithLink()
        fixture.controller.emit(HostFixture.acl([0x01], on: ConnectionHandle(handle)))
        emitEnd(of: ConnectionHandle(handle), fixture)
        fixture.loop.run(for: .seconds(5))
        #expect(fixture.controller.opcodes.isEmpty)
        try expectNoReset(fixture)
    }

    @Test("Data with more handles than a controller has links causes a bounded number of commands")
    func manyHandlesAreBounded() throws {
        let fixture = try fixtureWithLink()
        for handle in 0x0100..<0x0300 as Range<UInt16> {
            fixture.controller.emit(HostFixture.acl([0x01], on: ConnectionHandle(handle)))
        }
        fixture.loop.run(for: .seconds(10))
        #expect(fixture.controller.opcodes.count == 16)
        try expectNoReset(fixture)
    }

    @Test("A link whose Connection Complete event was lost is ended, and another keeps working")
    func unknownLinkIsEndedAlone() throws {
        let fixture = try fixtureWithLink(knows: [0x0040, 0x0042])
        fixture.controller.emit(HostFixture.acl([0x0A, 0x03, 0x00], on: 0x0042))
        fixture.loop.run(for: .milliseconds(900))
        #expect(fixture.controller.opcodes.isEmpty)
        fixture.loop.run(for: .milliseconds(200))
        #expect(fixture.controller.opcodes == [Disconnect.opcode])
        emitEnd(of: 0x0042, fixture)
        fixture.loop.run(for: .seconds(60))
        #expect(fixture.exchange([0x02, 0x17, 0x00]) == [[0x03, 0x05, 0x02]])
        try expectNoReset(fixture)
    }

    @Test("A controller that confirms an unknown link and does not end it is reset")
    func unknownLinkThatDoesNotEndResets() throws {
        let fixture = try fixtureWithLink(knows: [0x0042])
        fixture.controller.emit(HostFixture.acl([0x0A, 0x03, 0x00], on: 0x0042))
        fixture.loop.run(for: .seconds(30))
        try expectNoReset(fixture)
        fixture.loop.run(for: .seconds(10))
        #expect(fixture.events.all.contains { $0.hasPrefix("resetting: it did not end the link 0x0042") })
    }

    @Test("Data just before Connection Complete, or just after a link's end, causes no command")
    func dataJustOutsideTheTimeOfALinkCausesNoCommand() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        fixture.controller.emit(HostFixture.acl([0x0A, 0x03, 0x00], on: 0x0040))
        fixture.connect()
        fixture.loop.run(for: .seconds(2))
        emitEnd(of: 0x0040, fixture)
        fixture.controller.emit(HostFixture.acl([0x0A, 0x03, 0x00], on: 0x0040))
        fixture.loop.run(for: .seconds(2))
        #expect(!fixture.controller.opcodes.contains(Disconnect.opcode))
        try expectNoReset(fixture)
    }

    @Test("A request that arrives before the link's Connection Complete event is answered")
    func requestBeforeConnectionCompleteIsAnswered() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        fixture.controller.emit(HostFixture.acl([0x02, 0x17, 0x00], on: 0x0040))
        fixture.connect(forgetsData: false)
        fixture.loop.run(for: .seconds(2))
        #expect(fixture.controller.data.map { Array($0.dropFirst(9)) } == [[0x03, 0x05, 0x02]])
        try expectNoReset(fixture)
    }

    @Test("Data of a link that has ended does not reach the next link with its handle")
    func dataOfAnEndedLinkDoesNotReachTheNext() throws {
        let fixture = try fixtureWithLink()
        emitEnd(of: 0x0040, fixture)
        fixture.controller.emit(HostFixture.acl([0x02, 0x17, 0x00], on: 0x0040))
        fixture.connect(peer: peer, forgetsData: false)
        fixture.loop.run(for: .seconds(2))
        #expect(fixture.controller.data.isEmpty)
    }

    @Test("An ignored handle that becomes a link is served, and checked again after the link's end")
    func ignoredHandleBecomesALink() throws {
        let fixture = try fixtureWithLink()
        fixture.controller.emit(HostFixture.acl([0x01], on: 0x0041))
        fixture.loop.run(for: .seconds(2))
        fixture.connect(0x0041, peer: peer)
        #expect(fixture.exchange([0x02, 0x17, 0x00], on: 0x0041) == [[0x03, 0x05, 0x02]])
        emitEnd(of: 0x0041, fixture)
        fixture.loop.run(for: .seconds(3))
        fixture.controller.forgetCommands()
        fixture.controller.emit(HostFixture.acl([0x01], on: 0x0041))
        fixture.loop.run(for: .seconds(2))
        #expect(fixture.controller.opcodes == [Disconnect.opcode])
        try expectNoReset(fixture)
    }

    @Test("The end of an unknown link starts advertising again")
    func unknownEndRestartsAdvertising() throws {
        let fixture = try fixtureWithLink()
        let host = fixture.host
        try fixture.run { _ = try await host.startAdvertising(AdvertisementConfiguration()) }
        fixture.controller.forgetCommands()
        for handle in 0x0042...0x0045 as ClosedRange<UInt16> { emitEnd(of: ConnectionHandle(handle), fixture) }
        fixture.loop.run(for: .seconds(3))
        let enables = fixture.controller.commands.compactMap {
            $0.decode(LESetAdvertisingEnable.self)?.advertisingEnable
        }
        #expect(enables == [false, true])
        #expect(fixture.exchange([0x02, 0x17, 0x00]) == [[0x03, 0x05, 0x02]])
        try expectNoReset(fixture)
    }

    @Test("The end of an unknown link starts a connection attempt again")
    func unknownEndRestartsInitiating() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        let (host, peer) = (fixture.host, peer)
        let attempt = fixture.start {
            try await host.connect(toAnyOf: [peer], parameters: ConnectionParameters(), timeout: nil)
        }
        // The controller no longer initiates, and reports that.
        fixture.controller.override = { command in
            command.opcode == LECreateConnectionCancel.opcode
                ? ScriptedController.complete(LECreateConnectionCancel.self, .failure(.commandDisallowed)) : nil
        }
        fixture.controller.forgetCommands()
        emitEnd(of: 0x0042, fixture)
        fixture.loop.run(for: .seconds(5))
        #expect(fixture.controller.opcodes == [LECreateConnectionCancel.opcode, LECreateConnection.opcode])
        fixture.connect(role: .central, peer: peer)
        #expect(throws: Never.self) { try attempt.all.first?.get() }
        #expect(attempt.all.count == 1)
        try expectNoReset(fixture)
    }
}
