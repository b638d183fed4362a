import BluetoothTypes
import HCI
import Testing

@testable import BluetoothHost

@Suite("The private address of a host")
struct PrivateAddressTests {
    private func addresses(_ fixture: HostFixture) -> [DeviceAddress] {
        fixture.controller.commands.compactMap { $0.decode(LESetRandomAddress.self)?.randomAddress }
    }

    @Test("It is replaced after its time, again and again")
    func rotation() throws {
        let fixture = HostFixture { $0.usesPrivateAddresses = true }
        try fixture.bringUp()
        fixture.loop.run(for: .seconds(899))
        #expect(addresses(fixture).isEmpty)
        fixture.loop.run(for: .seconds(2))
        #expect(addresses(fixture).count == 1)
        fixture.loop.run(for: .seconds(900))
        #expect(Set(addresses(fixture)).count == 2)
    }

    @Test("Its time begins again when the controller was reset")
    func rotationAfterReset() throws {
        let fixture = HostFixture { $0.usesPrivateAddresses = true }
        try fixture.bringUp()
        fixture.loop.run(for: .seconds(600))
        // A hardware error.
        fixture.controller.emit([0x04, 0x10, 0x01, 0x42])
        fixture.loop.run(for: .seconds(10))
        #expect(fixture.events.all.last == "poweredOn")
        #expect(addresses(fixture).count == 1)
        fixture.loop.run(for: .seconds(880))
        #expect(addresses(fixture).count == 1)
        fixture.loop.run(for: .seconds(20))
        #expect(addresses(fixture).count == 2)
    }
}
