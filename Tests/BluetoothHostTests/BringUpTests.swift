import BLEHCI
import BluetoothHost
import BluetoothTypes
import Testing

@Suite("Bringing a controller up")
struct BringUpTests {
    @Test("A legacy controller gets only commands that it lists: reset, queries and event masks")
    func legacyControllerGetsOnlyCommandsThatItLists() throws {
        let fixture = HostFixture()
        let host = fixture.host
        try fixture.run { try await host.start() }
        #expect(
            fixture.controller.opcodes == [
                Reset.opcode, ReadLocalVersionInformation.opcode, ReadLocalSupportedCommands.opcode,
                ReadLocalSupportedFeatures.opcode, LEReadLocalSupportedFeatures.opcode, ReadBDADDR.opcode,
                SetEventMask.opcode, LESetEventMask.opcode, LEReadBufferSize.opcode, LEReadSupportedStates.opcode,
                LEReadFilterAcceptListSize.opcode,
            ]
        )
        let information = try fixture.run { try await host.controllerInformation() }
        #expect(!information.usesExtendedCommands)
        #expect(information.identityAddress == DeviceAddress(0x0011_2233_4455, isRandom: false))
        #expect(information.aclDataLength == 27 && information.aclPacketCount == 4)
    }

    @Test("An extended controller is asked for its advertising sets and data lengths")
    func extendedControllerIsAskedForItsSetsAndDataLengths() throws {
        let fixture = HostFixture(profile: .init(usesExtendedCommands: true))
        let host = fixture.host
        try fixture.run { try await host.start() }
        let information = try fixture.run { try await host.controllerInformation() }
        #expect(information.usesExtendedCommands)
        #expect(information.numberOfAdvertisingSets == 4)
        #expect(information.maximumAdvertisingDataLength == 1650)
    }

    @Test("LE buffers of zero select those of BR/EDR")
    func buffersOfZeroSelectThoseOfBREDR() throws {
        let fixture = HostFixture(profile: .init(leBuffers: (0, 0)))
        let host = fixture.host
        try fixture.run { try await host.start() }
        let information = try fixture.run { try await host.controllerInformation() }
        #expect(information.aclDataLength == 310 && information.aclPacketCount == 10)
        #expect(information.sharesClassicBuffers)
    }

    @Test("A controller without a public address gets a random static one")
    func controllerWithoutAPublicAddressGetsARandomStaticOne() throws {
        let fixture = HostFixture()
        fixture.controller.override = { command in
            command.opcode == ReadBDADDR.opcode
                ? ScriptedController.complete(
                    ReadBDADDR.self,
                    .success(.init(bdADDR: DeviceAddress(0, isRandom: false)))
                )
                : nil
        }
        let host = fixture.host
        try fixture.run { try await host.start() }
        let address = try fixture.run { try await host.controllerInformation() }.identityAddress
        #expect(address.kind == .randomStatic)
        let command = try #require(fixture.controller.commands.last { $0.opcode == LESetRandomAddress.opcode })
        #expect(command.decode(LESetRandomAddress.self)?.randomAddress == address)
    }

    @Test("An optional command that is refused or not answered does not stop the bring-up")
    func refusedOptionalCommandDoesNotStopTheBringUp() throws {
        let fixture = HostFixture()
        fixture.controller.override = { command in
            switch command.opcode {
            case LEReadSupportedStates.opcode: .silence
            case LEReadFilterAcceptListSize.opcode: ScriptedController.status(command.opcode, .unknownHCICommand)
            default: nil
            }
        }
        let host = fixture.host
        try fixture.run { try await host.start() }
        let information = try fixture.run { try await host.controllerInformation() }
        #expect(information.supportedStates == 0 && information.filterAcceptListSize == 0)
    }

    @Test("Starting fails within the command timeout if the controller does not answer Reset")
    func startFailsWithinTheTimeoutIfResetIsNotAnswered() throws {
        let fixture = HostFixture()
        fixture.controller.override = { _ in .silence }
        let host = fixture.host
        let start = fixture.loop.now
        #expect(throws: StartError.host(.command(.timedOut(Reset.opcode)))) {
            try fixture.run { try await host.start() }
        }
        #expect(fixture.loop.now - start == .seconds(4))
    }

    @Test("Commands are sent one at a time, and none without a credit of the controller")
    func commandsAreSentOneAtATimeAndNoneWithoutACredit() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        fixture.connect()
        fixture.controller.override = { command in
            // Answered, but without a credit for the next command.
            command.opcode == ReadRSSI.opcode
                ? .packets([[0x04, 0x0E, 0x07, 0x00, 0x05, 0x14, 0x00, 0x40, 0x00, 0xC4]]) : nil
        }
        fixture.controller.forgetCommands()
        let host = fixture.host
        let link = try fixture.link()
        let first = fixture.start { try await host.readRSSI(of: link) }
        let second = fixture.start { try await host.readRSSI(of: link) }
        fixture.loop.run(for: .seconds(1))
        #expect(try first.all.first?.get() == -60)
        #expect(second.all.isEmpty && fixture.controller.commands.count == 1)
        fixture.controller.emit([0x04, 0x0E, 0x03, 0x01, 0x00, 0x00])
        fixture.loop.run(for: .milliseconds(1))
        #expect(try second.all.first?.get() == -60)
    }
}
