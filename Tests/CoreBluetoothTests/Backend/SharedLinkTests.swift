import BLE
import BluetoothHost
import BluetoothTesting
import BluetoothTypes
import Testing

@testable import CoreBluetooth

@Suite("A link shared by a manager and the BLE module")
struct SharedLinkTests {
    private static let service = ScriptedService(
        "A800",
        [ScriptedCharacteristic("A801", properties: [.read, .notify], value: [7])]
    )

    private struct Fixture {
        let gateway: BackendDevice
        let manager: TestCentral
        let lamp: ScriptedPeripheral
        let handle: AttributeHandle

        init(_ world: World) async throws {
            lamp = try await world.peripheral("lamp", services: [service])
            handle = try #require(lamp.valueHandle(of: "A801"))
            gateway = try await BackendDevice("gateway", in: world)
            manager = await gateway.central()
        }

        var linkCount: Int {
            get async { await gateway.adapter.host.linkIdentifiers().count }
        }
    }

    @Test("The last disconnect() of the BLE module keeps the manager's connection")
    func disconnectLeavesTheLinkToTheManager() throws {
        try World.run { world in
            let fixture = try await Fixture(world)
            let peer = try await fixture.gateway.adapter.central.connect(to: fixture.lamp.address)
            let identifier = await fixture.manager.find().identifier
            fixture.manager.backend.connect(identifier, ConnectionRequest())
            await fixture.manager.connected(identifier)
            #expect(await fixture.linkCount == 1)
            await peer.disconnect()
            try await world.sleep(for: .seconds(10))
            #expect(await fixture.linkCount == 1)
            #expect(try await fixture.manager.read(fixture.handle, of: identifier).get() == [7])
            fixture.manager.backend.cancelConnection(identifier)
            #expect(await fixture.manager.disconnected(identifier).error == nil)
            #expect(await fixture.linkCount == 0)
        }
    }

    @Test("A manager that cancels its connection, even twice, keeps that of the BLE module")
    func cancelledConnectionLeavesTheLinkToTheModule() throws {
        try World.run { world in
            let fixture = try await Fixture(world)
            let identifier = await fixture.manager.find().identifier
            await fixture.manager.connect(identifier)
            let peer = try await fixture.gateway.adapter.central.connect(to: fixture.lamp.address)
            #expect(await fixture.linkCount == 1)
            for _ in 1...2 {
                fixture.manager.backend.cancelConnection(identifier)
                #expect(await fixture.manager.disconnected(identifier).error == nil)
                try await world.sleep(for: .seconds(10))
                #expect(try await peer.read(fixture.handle) == [7])
                fixture.manager.backend.connect(identifier, ConnectionRequest())
                await fixture.manager.connected(identifier)
                #expect(await fixture.linkCount == 1)
            }
            fixture.manager.backend.cancelConnection(identifier)
            _ = await fixture.manager.disconnected(identifier)
            await peer.disconnect()
            #expect(await fixture.linkCount == 0)
        }
    }

    @Test("A manager with two identifiers of a device keeps the connection of one when it cancels that of the other")
    func connectionOfAnAliasIsItsOwn() throws {
        try World.run { world in
            let fixture = try await Fixture(world)
            let found = await fixture.manager.find().identifier
            let peers = fixture.gateway.open.peers
            let former = peers.heldPeer(at: fixture.lamp.address)
            #expect(former.identifier == found)
            let resolvable = DeviceAddress(0x4A00_0000_0001, isRandom: true)
            let alias = peers.heldPeer(at: resolvable)
            peers.identify(resolvable, as: fixture.lamp.address)
            for identifier in [former.identifier, alias.identifier] {
                fixture.manager.backend.connect(identifier, ConnectionRequest())
                await fixture.manager.connected(identifier)
            }
            #expect(await fixture.linkCount == 1)
            fixture.manager.backend.cancelConnection(former.identifier)
            #expect(await fixture.manager.disconnected(former.identifier).error == nil)
            try await world.sleep(for: .seconds(10))
            #expect(try await fixture.manager.read(fixture.handle, of: alias.identifier).get() == [7])
            fixture.manager.backend.cancelConnection(alias.identifier)
            #expect(await fixture.manager.disconnected(alias.identifier).error == nil)
            #expect(await fixture.linkCount == 0)
            withExtendedLifetime((former, alias)) {}
        }
    }

    @Test("A connection that the BLE module makes while the manager's last writes are sent stays")
    func connectionWhileLastWritesAreSent() throws {
        try World.run { world in
            let fixture = try await Fixture(world)
            let identifier = await fixture.manager.find().identifier
            await fixture.manager.connect(identifier)
            for number in 1...20 {
                let value = [UInt8](repeating: UInt8(number), count: 100)
                fixture.manager.backend.writeWithoutResponse(value, to: fixture.handle, of: identifier) { _ in }
            }
            fixture.manager.backend.cancelConnection(identifier)
            let peer = try await fixture.gateway.adapter.central.connect(to: fixture.lamp.address)
            #expect(await fixture.manager.disconnected(identifier).error == nil)
            try await world.sleep(for: .seconds(10))
            #expect(try await peer.read(fixture.handle) == [7])
            #expect(await fixture.linkCount == 1)
            await peer.disconnect()
            #expect(await fixture.linkCount == 0)
        }
    }

    @Test(
        "A manager that ends its subscription or its connection keeps the module's subscription",
        arguments: [true, false]
    )
    func subscriptionOfTheModuleStays(managerDisconnects: Bool) throws {
        try World.run { world in
            let fixture = try await Fixture(world)
            let identifier = await fixture.manager.find().identifier
            await fixture.manager.connect(identifier)
            let peer = try await fixture.gateway.adapter.central.connect(to: fixture.lamp.address)
            let characteristics = try await fixture.manager.characteristics(of: "A800", on: identifier)
            _ = await fixture.manager.configure(.notification, of: characteristics[0], on: identifier)
            let characteristic = try #require(
                try await peer.discoverAll().flatMap(\.characteristics).first { $0.valueHandle == fixture.handle }
            )
            let subscription = try await peer.subscribe(to: characteristic)
            if managerDisconnects {
                fixture.manager.backend.cancelConnection(identifier)
                _ = await fixture.manager.disconnected(identifier)
            } else {
                _ = await fixture.manager.configure([], of: characteristics[0], on: identifier)
            }
            try await world.sleep(for: .seconds(1))
            try await fixture.lamp.send([8], of: "A801")
            var values = subscription.makeAsyncIterator()
            #expect(try await values.next()?.value == [8])
        }
    }

    @Test(
        "The manager that ends the last subscription clears the configuration once, also one of the module",
        arguments: [true, false]
    )
    func lastSubscriptionIsClearedOnce(managerDisconnects: Bool) throws {
        let world = World(seed: 145, recordsCaptures: true)
        defer { world.close() }
        try world.run {
            let fixture = try await Fixture(world)
            let identifier = await fixture.manager.find().identifier
            await fixture.manager.connect(identifier)
            let peer = try await fixture.gateway.adapter.central.connect(to: fixture.lamp.address)
            let characteristics = try await fixture.manager.characteristics(of: "A800", on: identifier)
            _ = await fixture.manager.configure(.notification, of: characteristics[0], on: identifier)
            let characteristic = try #require(
                try await peer.discoverAll().flatMap(\.characteristics).first { $0.valueHandle == fixture.handle }
            )
            try await peer.subscribe(to: characteristic).cancel()
            if managerDisconnects {
                fixture.manager.backend.cancelConnection(identifier)
                _ = await fixture.manager.disconnected(identifier)
            } else {
                _ = await fixture.manager.configure([], of: characteristics[0], on: identifier)
            }
            try await world.sleep(for: .seconds(5))
            #expect(await fixture.linkCount == 1, "the module uses the link")
            let writes = try AttributeTrace(fixture.gateway.device.capture).sent.filter { $0.first == 0x12 }
            #expect(writes.count { $0.count == 5 && $0.suffix(2) == [0, 0] } == 1)
            await peer.disconnect()
        }
    }

    @Test("A manager that leaves a link does not clear a configuration that the server has reported as changed")
    func changedConfigurationIsNotCleared() throws {
        let world = World(seed: 146, recordsCaptures: true)
        defer { world.close() }
        try world.run {
            let fixture = try await Fixture(world)
            let identifier = await fixture.manager.find().identifier
            await fixture.manager.connect(identifier)
            let peer = try await fixture.gateway.adapter.central.connect(to: fixture.lamp.address)
            let characteristics = try await fixture.manager.characteristics(of: "A800", on: identifier)
            _ = await fixture.manager.configure(.notification, of: characteristics[0], on: identifier)
            try await world.sleep(for: .seconds(3))
            let service = try #require(
                try await peer.discoverAll().first { $0.characteristics.contains { $0.valueHandle == fixture.handle } }
            )
            await fixture.lamp.adapter.host.removeService(at: service.handle)
            _ = await fixture.manager.changedServices(of: identifier)
            let count = try AttributeTrace(fixture.gateway.device.capture).sent.count
            fixture.manager.backend.cancelConnection(identifier)
            _ = await fixture.manager.disconnected(identifier)
            try await world.sleep(for: .seconds(5))
            #expect(await fixture.linkCount == 1, "the module uses the link")
            let sent = try AttributeTrace(fixture.gateway.device.capture).sent.dropFirst(count)
            // Find Information Request and Write Request.
            #expect(!sent.contains { $0.first == 0x04 || $0.first == 0x12 })
            await peer.disconnect()
        }
    }
}
