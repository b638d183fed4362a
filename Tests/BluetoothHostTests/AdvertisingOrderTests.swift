import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("An advertisement that starts while another is being stopped")
struct AdvertisingOrderTests {
    /// A host on a controller with one advertisement, which answers the command to stop it late.
    private func fixture(
        usesExtendedCommands: Bool = false,
        configure: (inout BluetoothHost.Configuration) -> Void = { _ in }
    ) throws -> HostFixture {
        let fixture = HostFixture(
            profile: .init(usesExtendedCommands: usesExtendedCommands, advertisingSets: 1),
            configure: configure
        )
        try fixture.bringUp()
        fixture.controller.override = { [controller = fixture.controller] command in
            guard Self.isEnabled(command) == false else { return nil }
            let opcode = command.opcode.rawValue
            let alarm = controller.loop.makeAlarm {
                controller.emit([
                    0x04, 0x0E, 0x04, 0x01, UInt8(truncatingIfNeeded: opcode), UInt8(truncatingIfNeeded: opcode >> 8),
                    0,
                ])
            }
            alarm.set(controller.loop.now + .milliseconds(5))
            return .silence
        }
        return fixture
    }

    private static func isEnabled(_ command: ScriptedController.CommandView) -> Bool? {
        command.decode(LESetAdvertisingEnable.self)?.advertisingEnable
            ?? command.decode(LESetExtendedAdvertisingEnable.self)?.enable
    }

    /// Stops an advertisement in a cancelled task, which does not wait for the end.
    private func stopCancelled(_ advertisement: AdvertisementIdentifier, _ fixture: HostFixture) {
        let host = fixture.host
        let stop = fixture.start {
            withUnsafeCurrentTask { $0?.cancel() }
            await host.stopAdvertising(advertisement)
        }
        #expect(stop.all.count == 1)
    }

    @Test(arguments: [false, true])
    func advertisementStartsAfterTheOtherHasStopped(usesExtendedCommands: Bool) throws {
        let fixture = try fixture(usesExtendedCommands: usesExtendedCommands)
        let host = fixture.host
        let first = try fixture.run { try await host.startAdvertising(AdvertisementConfiguration()) }
        fixture.controller.forgetCommands()
        stopCancelled(first, fixture)
        let second = fixture.start { try await host.startAdvertising(AdvertisementConfiguration()) }
        #expect(second.all.isEmpty)
        fixture.loop.run(for: .milliseconds(100))
        #expect(throws: Never.self) { try second.all.first?.get() }
        #expect(second.all.count == 1)
        #expect(fixture.controller.commands.compactMap(Self.isEnabled) == [false, true])
        if usesExtendedCommands {
            let opcodes = fixture.controller.opcodes
            let removal = opcodes.firstIndex(of: LERemoveAdvertisingSet.opcode)
            let parameters = opcodes.firstIndex(of: LESetExtendedAdvertisingParameters.opcode)
            #expect(try #require(removal) < #require(parameters), "the controller has room for one")
        }
        #expect(throws: HostError.self) {
            try fixture.run { _ = try await host.startAdvertising(AdvertisementConfiguration()) }
        }
    }

    @Test func advertisementDoesNotUseTheAddressOfTheOther() throws {
        let own = DeviceAddress(0xC0FF_EE00_0100, isRandom: true)
        let fixture = try fixture { $0.identityAddress = own }
        let host = fixture.host
        let other = AdvertisementConfiguration(address: DeviceAddress(0xC0FF_EE00_0101, isRandom: true))
        let first = try fixture.run { try await host.startAdvertising(other) }
        fixture.controller.forgetCommands()
        stopCancelled(first, fixture)
        let second = fixture.start { try await host.startAdvertising(AdvertisementConfiguration()) }
        fixture.loop.run(for: .milliseconds(100))
        #expect(second.all.count == 1)
        var address: DeviceAddress? = other.address
        var addresses: [DeviceAddress?] = []
        for command in fixture.controller.commands {
            if let random = command.decode(LESetRandomAddress.self) { address = random.randomAddress }
            if Self.isEnabled(command) == true { addresses.append(address) }
        }
        #expect(addresses == [own])
    }
}
