import BLEHCI
import BLESMP
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("A controller that is replaced by another one while the host is open")
struct ReplacedControllerTests {
    private static let first = DeviceAddress(0x0011_2233_4455, isRandom: false)
    private static let other = DeviceAddress(0x0011_2233_6677, isRandom: false)
    private static let none = DeviceAddress(0, isRandom: false)

    /// A store without bonds.
    private final class EmptyStore: BondStore {
        nonisolated(nonsending) func load(for publicAddress: DeviceAddress?) async -> HostSecurityState {
            HostSecurityState()
        }

        func save(_ security: HostSecurityState, completion: (@Sendable (Bool) -> Void)?) {
            completion?(true)
        }
    }

    /// Makes the controller report a public address.
    private func report(_ address: DeviceAddress, _ fixture: HostFixture) {
        fixture.controller.override = { command in
            guard command.opcode == ReadBDADDR.opcode else { return nil }
            return ScriptedController.complete(ReadBDADDR.self, .success(.init(bdADDR: address)))
        }
    }

    /// Ends the connection to the controller. The next one is to a controller with this public address.
    private func replaceController(of fixture: HostFixture, with address: DeviceAddress) {
        report(address, fixture)
        fixture.controller.forgetCommands()
        fixture.controller.vanish()
    }

    private func identity(_ fixture: HostFixture) throws -> DeviceAddress {
        let host = fixture.host
        return try fixture.run { try await host.controllerInformation().identityAddress }
    }

    private func isOn(_ fixture: HostFixture, times count: Int) -> Bool {
        fixture.events.all.count { $0 == "poweredOn" } == count
    }

    @Test func hostWithBondsWaitsForItsController() throws {
        let fixture = HostFixture { $0.bondStore = WatchedStore(Bond(identity: bondedPeer)) }
        try fixture.bringUp()
        replaceController(of: fixture, with: Self.other)
        fixture.loop.run(for: .seconds(10))
        #expect(isOn(fixture, times: 1))
        #expect(fixture.events.all.last?.hasPrefix("resetting: ") == true)
        // It has tried several times, and only asked the other controller for its properties.
        #expect(fixture.opener.count.load(ordering: .sequentiallyConsistent) > 3)
        #expect(fixture.controller.opcodes.contains(ReadBDADDR.opcode))
        #expect(!fixture.controller.opcodes.contains(SetEventMask.opcode))

        report(Self.first, fixture)
        #expect(fixture.loop.run(limit: .seconds(60), until: { isOn(fixture, times: 2) }))
        #expect(try identity(fixture) == Self.first)
        let host = fixture.host
        #expect(try fixture.run { await host.bondInformation() }.map(\.identity) == [bondedPeer])
    }

    @Test func hostWithoutBondsUsesTheOtherControllerAndSavesNothing() throws {
        let fixture = HostFixture { $0.bondStore = EmptyStore() }
        try fixture.bringUp()
        let host = fixture.host
        #expect(try fixture.run { await host.savesBonds() })
        replaceController(of: fixture, with: Self.other)
        #expect(fixture.loop.run(limit: .seconds(10), until: { isOn(fixture, times: 2) }))
        #expect(try identity(fixture) == Self.other)
        #expect(try !fixture.run { await host.savesBonds() })
        let problems = fixture.events.all.filter { $0.hasPrefix("stateUnavailable: ") }
        #expect(problems.count == 1)
        #expect(problems.first?.contains("\(Self.other), and the saved state is that of \(Self.first)") == true)

        replaceController(of: fixture, with: Self.first)
        #expect(fixture.loop.run(limit: .seconds(10), until: { isOn(fixture, times: 3) }))
        #expect(try identity(fixture) == Self.first)
        #expect(try fixture.run { await host.savesBonds() })
    }

    @Test func hostThatRequiresItsStateWaitsForItsController() throws {
        let fixture = HostFixture {
            $0.bondStore = EmptyStore()
            $0.requiresState = true
        }
        try fixture.bringUp()
        replaceController(of: fixture, with: Self.other)
        fixture.loop.run(for: .seconds(10))
        #expect(isOn(fixture, times: 1))
        report(Self.first, fixture)
        #expect(fixture.loop.run(limit: .seconds(60), until: { isOn(fixture, times: 2) }))
    }

    @Test("Peers know a host with an address of its own on any controller")
    func hostWithAnAddressOfItsOwnUsesTheOtherController() throws {
        let address = DeviceAddress(0xC012_3456_789A, isRandom: true)
        let fixture = HostFixture {
            $0.bondStore = WatchedStore(Bond(identity: bondedPeer))
            $0.identityAddress = address
        }
        try fixture.bringUp()
        replaceController(of: fixture, with: Self.other)
        #expect(fixture.loop.run(limit: .seconds(10), until: { isOn(fixture, times: 2) }))
        #expect(try identity(fixture) == address)
    }

    @Test func hostOfAControllerWithoutAPublicAddressKeepsItsOwn() throws {
        let fixture = HostFixture { $0.bondStore = WatchedStore(Bond(identity: bondedPeer)) }
        report(Self.none, fixture)
        try fixture.bringUp()
        let address = try identity(fixture)
        #expect(address.kind == .randomStatic)
        replaceController(of: fixture, with: Self.other)
        #expect(fixture.loop.run(limit: .seconds(10), until: { isOn(fixture, times: 2) }))
        #expect(try identity(fixture) == address)
    }

    @Test func hostThatKeepsNothingUsesTheOtherController() throws {
        let fixture = HostFixture()
        try fixture.bringUp()
        replaceController(of: fixture, with: Self.other)
        #expect(fixture.loop.run(limit: .seconds(10), until: { isOn(fixture, times: 2) }))
        #expect(try identity(fixture) == Self.other)
        #expect(!fixture.events.all.contains { $0.hasPrefix("stateUnavailable") })
    }
}

extension BluetoothHost {
    /// Adds a bond and removes it again. Nothing is given to the store.
    ///
    /// - Returns: whether both changes would be saved.
    fileprivate func savesBonds() -> Bool {
        let added = (try? bonds.insert(BondRecord(bond: Bond(identity: bondedPeer)), inUse: [])) ?? []
        let removed = bonds.remove(bondedPeer, notifying: .call(CallToken(index: 1, generation: 0)))
        return !added.isEmpty && !(added + removed).contains(.report(.bondsNotSaved))
    }
}
