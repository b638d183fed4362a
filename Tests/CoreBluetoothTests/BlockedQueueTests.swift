import ATT
import BluetoothTesting
import BluetoothTypes
import Foundation
import HCI
import Testing

@testable import BluetoothHost
@testable import CoreBluetooth
@testable import GATT

/// What peers cause while the app's queue is blocked (Vol 3, Part F, 3.3.2).
@Suite("An app whose queue is blocked")
struct BlockedQueueTests {
    private func command(_ number: Int, from remote: RemoteCentral) -> CoreBluetooth.PeripheralEvent {
        let value = [UInt8(truncatingIfNeeded: number)]
        let write = AttributeWrite(handle: PeripheralFixture.valueHandle, offset: 0, value: value)
        return .access(remote, AccessRequest(identifier: UInt64(number), kind: .write(write, isCommand: true)))
    }

    private func request(_ number: Int, from remote: RemoteCentral) -> CoreBluetooth.PeripheralEvent {
        let kind = AccessRequest.Kind.read(PeripheralFixture.valueHandle, offset: 7)
        return .access(remote, AccessRequest(identifier: UInt64(number), kind: kind))
    }

    // MARK: The peripheral role

    @Test("gets the first commands of each link, and every request")
    func commandsAreBounded() throws {
        let fixture = PeripheralFixture()
        try fixture.publish()
        let other = RemoteCentral(link: .placeholder(2), identifier: UUID(), mtu: 23)
        fixture.manager.deliveryQueue.suspend()
        let taken = (0..<1100).filter { fixture.engine.say(command($0, from: fixture.remote)) }
        // 256 KiB, at 257 bytes each.
        #expect(taken == Array(0..<1021))
        #expect(fixture.engine.say(command(7, from: other)), "each link has its own limit")
        #expect(fixture.engine.say(request(100, from: fixture.remote)))
        fixture.manager.deliveryQueue.resume()
        #expect(fixture.takeTold() == taken.map { "write 0:[\($0 & 0xFF)]" } + ["write 0:[7]", "read 7"])
        #expect(fixture.manager.backlog.isEmpty)
        #expect(fixture.engine.say(command(8, from: fixture.remote)))
        #expect(fixture.takeTold() == ["write 0:[8]"])
    }

    @Test("gets a limited number of changes, channels and connections")
    func otherEventsAreBounded() throws {
        let fixture = PeripheralFixture()
        try fixture.publish()
        let remote = fixture.remote
        fixture.manager.deliveryQueue.suspend()
        let changes = (0..<300).count { number in
            let configuration: ClientConfiguration = number.isMultiple(of: 2) ? .notification : []
            return fixture.engine.say(.configured(remote, PeripheralFixture.valueHandle, configuration))
        }
        #expect(changes == 256)
        #expect(!fixture.engine.say(.mtuChanged(remote)))
        let channels = (0..<70).count { _ in
            fixture.engine.say(.channelOpened(remote, 0x80, .failure(.core(.unknown))))
        }
        #expect(channels == 64)
        let connections = (0..<1100).count { number in
            let remote = RemoteCentral(link: .placeholder(UInt64(number)), identifier: UUID(), mtu: 23)
            return fixture.engine.say(.connected(remote))
        }
        #expect(connections == 1024)
        fixture.manager.deliveryQueue.resume()
        fixture.settle()
        #expect(fixture.manager.backlog.isEmpty)
    }

    // MARK: The central role

    @Test("gets the first values of each peripheral")
    func valuesAreBounded() {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        _ = fixture.discover(peripheral)
        let handle = CentralFixture.measurement.valueHandle
        let value = [UInt8](repeating: 1, count: 512)
        fixture.manager.deliveryQueue.suspend()
        var taken = 0
        while taken < 100_000, fixture.engine.say(.valueReceived(peripheral.identifier, handle, value)) { taken += 1 }
        // 16 MiB, at 256 bytes more than the length of each.
        #expect(taken == 21_846)
        #expect(fixture.engine.say(.valueReceived(UUID(), handle, value)), "each peripheral has its own limit")
        fixture.manager.deliveryQueue.resume()
        #expect(fixture.takeTold().count == taken)
        #expect(fixture.manager.backlog.isEmpty)
        #expect(fixture.engine.say(.valueReceived(peripheral.identifier, handle, [2])))
        #expect(fixture.takeTold() == ["value [2]"])
    }

    @Test("gets the first of the advertisements that are heard, and of changes")
    func advertisementsAreBounded() {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        fixture.manager.scanForPeripherals(withServices: nil)
        let discovery = Discovery(
            identifier: peripheral.identifier,
            name: nil,
            advertisingData: AdvertisingData(),
            isConnectable: true,
            rssi: -40,
            time: 0
        )
        fixture.manager.deliveryQueue.suspend()
        #expect((0..<5000).count { _ in fixture.engine.say(.discovered(discovery)) } == 4096)
        let range = HandleRange(start: 1, end: 2)
        let changes = (0..<300).count { _ in
            fixture.engine.say(.servicesChanged(peripheral.identifier, range))
        }
        #expect(changes == 256)
        let known = KnownPeripheral(identifier: peripheral.identifier, name: nil)
        #expect((0..<1100).count { _ in fixture.engine.say(.connectionEvent(known, .peerConnected)) } == 1024)
        fixture.manager.deliveryQueue.resume()
        #expect(fixture.takeTold().count { $0.hasPrefix("discovered") } == 4096)
        #expect(fixture.manager.backlog.isEmpty)
    }

    // MARK: On a host

    /// A service beside that of the lamp.
    private static var otherService: ServiceDefinition {
        var definition = Lamp.definition
        definition.uuid = "FFD0"
        return definition
    }

    @Test("drops commands, and the link stays")
    func droppedCommandsDoNotEndTheLink() throws {
        try World.run(seed: 91) { world in
            let pair = try await LampAndPhone(world)
            let blocked = TestPeripheral(
                HostPeripheral(pair.lampDevice.shared),
                accept: { if case .access = $0 { false } else { true } }
            )
            await blocked.events.next { if case .stateChanged(.poweredOn) = $0 { true } else { nil } }
            _ = try await blocked.publish(Self.otherService)
            let peripheral = await pair.connect()
            let value = try await pair.phone.characteristics(of: "FFD0", on: peripheral)[0]
            for number in UInt8(0)..<3 {
                let result = await outcome {
                    pair.phone.engine.writeWithoutResponse([number], to: value.valueHandle, of: peripheral, $0)
                }
                #expect(result.failure == nil)
            }
            // The version is the host's to serve.
            let version = try await pair.phone.characteristics(of: Lamp.service, on: peripheral)[2]
            #expect(try await pair.phone.read(version.valueHandle, of: peripheral).get() == Array("1.0".utf8))
        }
    }

    @Test("drops values, and the link stays")
    func droppedValuesDoNotEndTheLink() throws {
        try World.run(seed: 92) { world in
            let pair = try await LampAndPhone(world)
            let blocked = TestCentral(
                HostCentral(pair.phoneDevice.shared),
                accept: { if case .valueReceived = $0 { false } else { true } }
            )
            await blocked.events.next { if case .stateChanged(.poweredOn) = $0 { true } else { nil } }
            let peripheral = await blocked.find([Lamp.service]).identifier
            await blocked.connect(peripheral)
            let characteristics = try await blocked.characteristics(of: Lamp.service, on: peripheral)
            _ = await blocked.configure(.notification, of: characteristics[0], on: peripheral)
            let (central, handle, _) = await pair.lamp.configured()
            for number in UInt8(0)..<3 {
                let result = await outcome { pair.lamp.engine.update([number], of: handle, to: [central.link], $0) }
                #expect(result.failure == nil)
            }
            #expect(
                try await blocked.read(characteristics[2].valueHandle, of: peripheral).get() == Array("1.0".utf8)
            )
        }
    }

    @Test("has a client disconnected that changes its subscriptions again and again")
    func floodOfChangesEndsTheLink() throws {
        try World.run(seed: 93) { world in
            let pair = try await LampAndPhone(world)
            let blocked = TestPeripheral(
                HostPeripheral(pair.lampDevice.shared),
                accept: { if case .configured = $0 { false } else { true } }
            )
            await blocked.events.next { if case .stateChanged(.poweredOn) = $0 { true } else { nil } }
            _ = try await blocked.publish(Self.otherService)
            let peripheral = await pair.connect()
            let value = try await pair.phone.characteristics(of: "FFD0", on: peripheral)[0]
            _ = await pair.phone.configure(.notification, of: value, on: peripheral)
            #expect(await pair.phone.disconnected(peripheral).error != nil)
        }
    }
}
