import BLEATT
import BLEGATT
import BluetoothTesting
import BluetoothTypes
import Foundation
import Testing

@testable import CoreBluetooth

@Suite("Calls to a server that changes its database")
struct ChangedDatabaseTests {
    @Test("Calls that wait when the server changes their attributes are not sent, and end in an error")
    func waitingCallsAreNotSent() throws {
        let world = World(seed: 161, recordsCaptures: true)
        defer { world.close() }
        try world.run {
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            try await world.sleep(for: .seconds(3))
            let characteristics = try await pair.characteristics(of: peripheral)
            let (brightness, text) = (characteristics[0], characteristics[1].valueHandle)
            let backend = pair.phone.backend
            let ends = Mailroom<Result<Void, BackendError>>()
            for number in 1...5 as ClosedRange<UInt8> {
                backend.write([number], to: text, of: peripheral) { ends.post($0) }
            }
            backend.writeWithoutResponse([6], to: brightness.valueHandle, of: peripheral) { ends.post($0) }
            backend.setConfiguration(.notification, of: brightness, on: peripheral) { ends.post($0) }
            // The app of the lamp does not answer the first write.
            _ = await pair.lamp.access()
            pair.lamp.backend.removeService(at: pair.published.handle)
            _ = await pair.phone.changedServices(of: peripheral)
            for _ in 1...7 { #expect(await ends.next { $0 }.failure == .core(.invalidHandle)) }
            try await world.sleep(for: .seconds(5))
            let sent = try AttributeTrace(pair.phoneDevice.device.capture).sent
            let confirmation = try #require(sent.lastIndex { $0 == [0x1E] })
            #expect(sent.contains { $0.starts(with: [0x12, UInt8(truncatingIfNeeded: text.rawValue)]) })
            // Find Information Request, Write Request and Write Command.
            #expect(!sent[confirmation...].contains { [0x04, 0x12, 0x52].contains($0[0]) })
            #expect(!sent.contains { $0[0] == 0x52 })
        }
    }

    @Test("A call that the app makes before it knows of a change is refused, unless its attribute has not changed")
    func callBeforeTheChangeIsKnownIsRefused() throws {
        try World.run(seed: 162) { world in
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.phone.find([Lamp.service]).identifier
            pair.phone.backend.connect(peripheral, ConnectionRequest())
            let link = await pair.phone.connected(peripheral)
            try await world.sleep(for: .seconds(3))
            pair.lamp.backend.removeService(at: pair.published.handle)
            _ = await pair.phone.changedServices(of: peripheral)
            var definition = Lamp.definition
            definition.handle = pair.published.handle
            _ = try await pair.lamp.publish(definition)
            _ = await pair.phone.changedServices(of: peripheral)
            let (backend, version) = (pair.phone.backend, pair.handle(2))
            let earlier = ConnectedPeripheral(identifier: peripheral, link: link)
            #expect(await outcome { backend.read(version, of: earlier, $0) } == .failure(.core(.invalidHandle)))
            #expect(await pair.phone.read(version, of: peripheral) == .success(Array("1.0".utf8)))
            // The Device Name.
            #expect(await outcome { backend.read(0x0003, of: earlier, $0) }.failure == nil)
        }
    }

    // MARK: Discovery

    /// Types of which the lamp has no service, so that a discovery takes several connection events.
    private static let absentTypes = (0xE000...0xE009 as ClosedRange<UInt16>).map { BluetoothUUID($0) }

    /// The requests for services by their types that a device has sent.
    private func requests(of device: BackendDevice) throws -> [[UInt8]] {
        try AttributeTrace(device.device.capture).sent.filter { $0.first == 0x06 }
    }

    @Test("A discovery of services that a change interrupts is performed again, and finds the present services only")
    func interruptedDiscoveryIsPerformedAgain() throws {
        let world = World(seed: 163, recordsCaptures: true)
        defer { world.close() }
        try world.run {
            let pair = try await LampAndPhone(world)
            let former = try await pair.lamp.publish(ServiceDefinition(uuid: "FFD0"))
            let peripheral = await pair.connect()
            try await world.sleep(for: .seconds(3))
            let before = try requests(of: pair.phoneDevice).count
            let types: [BluetoothUUID] = ["FFD0"] + ChangedDatabaseTests.absentTypes + ["FFD1"]
            async let found = pair.phone.services(types, of: peripheral)
            // With the second request, the lamp has answered the first one.
            while try requests(of: pair.phoneDevice).count < before + 2 {
                try await world.sleep(for: .milliseconds(10))
            }
            pair.lamp.backend.removeService(at: former.handle)
            var definition = ServiceDefinition(uuid: "FFD1")
            definition.handle = former.handle
            let present = try await pair.lamp.publish(definition)
            let services = try await found
            #expect(services.map(\.uuid) == ["FFD1"])
            #expect(services.map(\.handle) == [present.handle])
        }
    }

    @Test("A discovery of services that changes interrupt again and again ends in an error")
    func discoveryThatIsAlwaysInterruptedEnds() throws {
        let world = World(seed: 164, recordsCaptures: true)
        defer { world.close() }
        try world.run {
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            try await world.sleep(for: .seconds(3))
            let ended = Mailroom<Result<[DiscoveredService], BackendError>>()
            let types = [Lamp.service] + ChangedDatabaseTests.absentTypes
            pair.phone.backend.discoverServices(types, of: peripheral) { ended.post($0) }
            var published: PublishedService?
            while ended.waiting.isEmpty {
                let count = try requests(of: pair.phoneDevice).count
                while ended.waiting.isEmpty, try requests(of: pair.phoneDevice).count < count + 6 {
                    try await world.sleep(for: .milliseconds(20))
                }
                if let service = published {
                    pair.lamp.backend.removeService(at: service.handle)
                    published = nil
                } else {
                    published = try await pair.lamp.publish(ServiceDefinition(uuid: "FFD0"))
                }
            }
            #expect(ended.waiting.map { $0.failure } == [.core(.invalidHandle)])
            let first: [UInt8] = [0x06, 0x01, 0x00, 0xFF, 0xFF, 0x00, 0x28, 0xE0, 0xFF]
            #expect(try requests(of: pair.phoneDevice).count { $0 == first } == HostCentral.discoveryLimit)
        }
    }

    // MARK: Changes

    @Test("A change counts for calls before it, in its range, and the oldest ones for all attributes")
    func changesCountForCallsBeforeThem() {
        var changes = DatabaseChanges()
        let range = HandleRange(start: 0x0010, end: 0x001F)
        #expect(!changes.affect(range, after: 0))
        changes.add(range, number: 3)
        #expect(changes.affect(HandleRange(start: 0x001F, end: 0x0020), after: 2))
        #expect(!changes.affect(HandleRange(only: 0x0020), after: 2))
        #expect(!changes.affect(range, after: 3))
        for number in 4..<4 + UInt64(DatabaseChanges.limit) { changes.add(HandleRange(only: 0x0030), number: number) }
        #expect(changes.affect(HandleRange(only: 0x0020), after: 2))
        #expect(!changes.affect(HandleRange(only: 0x0020), after: 3))
        #expect(changes.affect(HandleRange(only: 0x0030), after: 3))
    }
}
