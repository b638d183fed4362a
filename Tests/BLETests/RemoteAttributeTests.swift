import BLE
import BluetoothTesting
import Testing

private let thermometer = ServiceDefinition(
    uuid: "181A",
    characteristics: [
        CharacteristicDefinition(
            uuid: "2A6E",
            properties: [.read, .write, .writeWithoutResponse, .notify],
            permissions: [.read, .write],
            value: .stored([0xD0, 0x07]),
            descriptors: [
                DescriptorDefinition(uuid: "2901", value: .stored(Array("indoors".utf8)), permissions: [.read, .write])
            ]
        )
    ]
)

private let battery = ServiceDefinition(
    uuid: "180F",
    characteristics: [
        CharacteristicDefinition(uuid: "2A19", properties: .read, permissions: .read, value: .stored([99]))
    ]
)

/// A peripheral that serves `services`, and a connection to it.
private struct Fixture {
    let world: World
    let server: Adapter
    let services: [PublishedService]
    let peer: RemotePeripheral

    static func run(
        _ services: [ServiceDefinition] = [battery, thermometer],
        _ body: @escaping @Sendable (Fixture) async throws -> Void
    ) throws {
        try World.run { world in
            let server = try await world.device("server").openAdapter { $0.security.justWorks = .always }
            let central = try await world.device("central").openAdapter { $0.security.justWorks = .always }
            let published = try await server.peripheral.publish(services)
            let advertising = try await server.peripheral.startAdvertising(AdvertisementConfiguration())
            let peer = try await central.central.connect(to: server.information.identityAddress)
            try await body(Fixture(world: world, server: server, services: published, peer: peer))
            await advertising.stop()
        }
    }
}

@Suite("What discovery returns, in calls of a connection")
struct RemoteAttributeTests {
    @Test("A characteristic is found by UUID, then read, written and subscribed to")
    func characteristicIsFoundReadWrittenAndSubscribedTo() throws {
        try Fixture.run { fixture in
            let peer = fixture.peer
            let temperature = try await peer.characteristic("2A6E", in: "181A")
            #expect(temperature.valueHandle == fixture.services[1].characteristics[0].valueHandle)
            #expect(temperature.descriptors.isEmpty)
            #expect(try await peer.read(temperature) == [0xD0, 0x07])
            let long = (0..<512).map { UInt8(truncatingIfNeeded: $0) }
            for kind in [WriteKind.withResponse, .reliable] {
                try await peer.write(long, to: temperature, kind: kind)
                #expect(try await peer.read(temperature) == long)
                try await peer.write([1], to: temperature)
            }
            try await peer.write(long, to: temperature, kind: .withoutResponse)
            #expect(try await peer.read(temperature) == long)
            // The MTU has room for 514 bytes, but an attribute value has at most 512.
            let tooLong = "a write without response carries at most 512 bytes on this link, not 513"
            await #expect(throws: BLEError.invalidArgument(tooLong)) {
                try await peer.write(long + [0], to: temperature, kind: .withoutResponse)
            }
            try await peer.write([2], to: temperature, kind: .withoutResponse)
            #expect(try await peer.read(temperature) == [2])
            let subscription = try await peer.subscribe(to: temperature)
            try await fixture.server.peripheral.notify([3], of: temperature.valueHandle)
            var values = subscription.makeAsyncIterator()
            #expect(try await values.next()?.value == [3])
        }
    }

    @Test("A descriptor is found by UUID, then read and written")
    func descriptorIsFoundReadAndWritten() throws {
        try Fixture.run { fixture in
            let peer = fixture.peer
            let temperature = try await peer.characteristic("2A6E", in: "181A")
            let description = try await peer.descriptor("2901", of: temperature)
            #expect(try await peer.read(description) == Array("indoors".utf8))
            try await peer.write(Array("outdoors".utf8), to: description)
            #expect(try await peer.read(description) == Array("outdoors".utf8))
        }
    }

    @Test("Several characteristics are read with one request, and written all or none")
    func severalCharacteristicsAreReadAndWritten() throws {
        try Fixture.run { fixture in
            let peer = fixture.peer
            let temperature = try await peer.characteristic("2A6E", in: "181A")
            let level = try await peer.characteristic("2A19", in: "180F")
            #expect(try await peer.readMultiple([temperature, level]) == [[0xD0, 0x07], [99]])
            let description = try await peer.descriptor("2901", of: temperature)
            try await peer.writeReliably([ReliableWrite([1], to: temperature), ReliableWrite([2], to: description)])
            #expect(try await peer.read(temperature) == [1])
            #expect(try await peer.read(description) == [2])
            await #expect(throws: BLEError.attribute(.writeNotPermitted, handle: level.valueHandle)) {
                try await peer.writeReliably([ReliableWrite([5], to: temperature), ReliableWrite([6], to: level)])
            }
            #expect(try await peer.read(temperature) == [1])
        }
    }

    @Test("Values for which the response has no room are read one by one")
    func valuesBeyondTheResponseAreReadOneByOne() throws {
        // The response has 517 bytes. The second value is cut, and the others are missing.
        let values = [300, 250, 0, 7].enumerated().map { [UInt8](repeating: UInt8($0.offset), count: $0.element) }
        let service = ServiceDefinition(
            uuid: "A900",
            characteristics: values.map {
                CharacteristicDefinition(uuid: "A901", properties: .read, permissions: .read, value: .stored($0))
            }
        )
        try Fixture.run([service]) { fixture in
            let handles = fixture.services[0].characteristics.map(\.valueHandle)
            let all = try await fixture.peer.readMultiple(handles)
            let one = try await fixture.peer.readMultiple([handles[0]])
            let none = try await fixture.peer.readMultiple([AttributeHandle]())
            #expect(all == values && one == [values[0]] && none.isEmpty)
        }
    }

    @Test("Arguments that no request can have are errors of the caller, not of the peer")
    func argumentsThatNoRequestCanHaveAreInvalid() throws {
        try Fixture.run { fixture in
            let peer = fixture.peer
            let handle = fixture.services[1].characteristics[0].valueHandle
            let tooMany = BLEError.invalidArgument("one request reads at most 258 values on this link, not 259")
            await #expect(throws: tooMany) {
                _ = try await peer.readMultiple([AttributeHandle](repeating: handle, count: 259))
            }
            await #expect(throws: BLEError.invalidArgument("there is no value to write")) {
                try await peer.writeReliably([])
            }
            let long = ReliableWrite([UInt8](repeating: 1, count: 513), to: handle)
            await #expect(throws: BLEError.invalidArgument("a value has at most 512 bytes, not 513")) {
                try await peer.writeReliably([ReliableWrite([1], to: handle), long])
            }
            let value = try await peer.read(handle)
            #expect(value == [0xD0, 0x07])
        }
    }

    @Test("A characteristic that only a later service of the UUID has is found")
    func characteristicOfLaterServiceIsFound() throws {
        let empty = ServiceDefinition(uuid: "181A")
        try Fixture.run([empty, thermometer]) { fixture in
            let temperature = try await fixture.peer.characteristic("2A6E", in: "181A")
            #expect(temperature.valueHandle == fixture.services[1].characteristics[0].valueHandle)
        }
    }

    @Test("A missing service, characteristic or descriptor is an error that names it and the peer")
    func missingAttributeIsAnErrorThatNamesIt() throws {
        try Fixture.run { fixture in
            let peer = fixture.peer
            await #expect(throws: BLEError.notFound(.service("180D"), peer: peer.address)) {
                _ = try await peer.characteristic("2A37", in: "180D")
            }
            let missing = MissingAttribute.characteristic("2A37", service: "181A")
            await #expect(throws: BLEError.notFound(missing, peer: peer.address)) {
                _ = try await peer.characteristic("2A37", in: "181A")
            }
            #expect(
                "\(BLEError.notFound(missing, peer: peer.address))"
                    == "\(peer.address) has no characteristic 2A37 in service 181A"
            )
            let level = try await peer.characteristic("2A19", in: "180F")
            let description = MissingAttribute.descriptor("2901", characteristic: "2A19")
            await #expect(throws: BLEError.notFound(description, peer: peer.address)) {
                _ = try await peer.descriptor("2901", of: level)
            }
        }
    }

    @Test("A characteristic of a removed service is refused; the call by UUID finds it again once it is served")
    func characteristicOfRemovedServiceIsRefused() throws {
        try Fixture.run { fixture in
            let peer = fixture.peer
            let stale = try await peer.characteristic("2A6E", in: "181A")
            let changed = try await peer.characteristic(.serviceChanged, in: .genericAttributeService)
            let changes = try await peer.subscribe(to: changed)
            await fixture.server.peripheral.remove(fixture.services[1])
            var values = changes.makeAsyncIterator()
            _ = try await values.next()
            await #expect(throws: BLEError.attribute(.invalidHandle, handle: stale.valueHandle)) {
                _ = try await peer.read(stale)
            }
            await #expect(throws: BLEError.attribute(.invalidHandle, handle: stale.valueHandle)) {
                try await peer.write([1], to: stale)
            }
            await #expect(throws: BLEError.notFound(.service("181A"), peer: peer.address)) {
                _ = try await peer.characteristic("2A6E", in: "181A")
            }
            let other = ServiceDefinition(uuid: "1809", handle: stale.handle)
            _ = try await fixture.server.peripheral.publish([other, thermometer])
            let found = try await peer.characteristic("2A6E", in: "181A")
            #expect(found.valueHandle != stale.valueHandle)
            #expect(try await peer.read(found) == [0xD0, 0x07])
        }
    }

    @Test("Without a bond too, the end of a subscription writes nothing to a handle that Service Changed has reported")
    func endOfSubscriptionWritesNothingToChangedHandle() throws {
        try Fixture.run { fixture in
            let peer = fixture.peer
            let temperature = try await peer.characteristic("2A6E", in: "181A")
            let values = try await peer.subscribe(to: temperature)
            let changed = try await peer.characteristic(.serviceChanged, in: .genericAttributeService)
            let changes = try await peer.subscribe(to: changed)
            await fixture.server.peripheral.remove(fixture.services[1])
            // The new value has the handle of the former configuration.
            let replacement = ServiceDefinition(
                uuid: "1809",
                handle: fixture.services[1].handle,
                characteristics: [
                    CharacteristicDefinition(
                        uuid: "2A1C",
                        handle: temperature.valueHandle,
                        properties: [.read, .write],
                        permissions: [.read, .write],
                        value: .stored([7])
                    )
                ]
            )
            let published = try await fixture.server.peripheral.publish([replacement])
            let value = published[0].characteristics[0].valueHandle
            #expect(value == fixture.services[1].characteristics[0].clientConfigurationHandle)
            var reports = changes.makeAsyncIterator()
            for _ in 1...2 { _ = try await reports.next() }
            await values.cancel()
            #expect(try await peer.read(value) == [7])
        }
    }

    @Test("For a bonded peer, the cache answers the call by UUID until the peer's services change")
    func cacheAnswersUntilServicesChange() throws {
        try Fixture.run { fixture in
            let peer = fixture.peer
            try await peer.pair()
            let stale = try await peer.characteristic("2A6E", in: "181A")
            #expect(try await peer.characteristic("2A6E", in: "181A") == stale)
            await fixture.server.peripheral.remove(fixture.services[1])
            try await fixture.world.sleep(for: .seconds(5))
            await #expect(throws: BLEError.notFound(.service("181A"), peer: peer.address)) {
                _ = try await peer.characteristic("2A6E", in: "181A")
            }
            await #expect(throws: BLEError.self) { _ = try await peer.read(stale) }
        }
    }
}
