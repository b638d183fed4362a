import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("The private address of a host")
struct PrivateAddressTests {
    private func addresses(_ fixture: HostFixture) -> [DeviceAddress] {
        fixture.controller.commands.compactMap { $0.decode(LESetRandomAddress.self)?.randomAddress }
    }

    @Test func privateAddressIsReplacedAfterItsTimeAgainAndAgain() throws {
        let fixture = HostFixture { $0.usesPrivateAddresses = true }
        try fixture.bringUp()
        fixture.loop.run(for: .seconds(899))
        #expect(addresses(fixture).isEmpty)
        fixture.loop.run(for: .seconds(2))
        #expect(addresses(fixture).count == 1)
        fixture.loop.run(for: .seconds(900))
        #expect(Set(addresses(fixture)).count == 2)
    }

    @Test("A host closes although the time ends while its last link does not end", .timeLimit(.minutes(10)))
    func hostClosesThoughTheAddressExpiresMeanwhile() throws {
        let fixture = HostFixture {
            $0.usesPrivateAddresses = true
            $0.privateAddressTimeout = .seconds(1)
        }
        try fixture.bringUp()
        fixture.connect()
        fixture.loop.run(for: .milliseconds(500))
        // The controller answers and reports no end of the link, for which the host waits a second.
        fixture.controller.override = { $0.opcode == Disconnect.opcode ? ScriptedController.status($0.opcode) : nil }
        let host = fixture.host
        let start = fixture.loop.now
        try fixture.run { await host.close() }
        #expect(fixture.loop.now - start >= .seconds(1))
    }

    @Test func timeOfTheAddressBeginsAgainAfterAReset() throws {
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
