import BLEATT
import BLEByteCoding
import BluetoothTypes
import Testing

@testable import BLEGATT

/// A server with one client, whose requests are written as bytes.
final class ServerFixture {
    let server: Server
    private(set) var session: ServerSession
    let service: PublishedService
    private var takenOutputs: [ServerOutput] = []

    init(
        _ characteristics: [CharacteristicDefinition],
        limits: ServerSession.Limits = .init(),
        cmac: Server.CMAC? = nil
    ) throws {
        server = Server(cmac: cmac)
        service = try server.publish([ServiceDefinition(uuid: "A00A", characteristics: characteristics)])[0]
        session = ServerSession(server: server, limits: limits)
        session.reportsEvents = true
    }

    /// All outputs since the first connection.
    var outputs: [ServerOutput] {
        while let output = session.takeOutput() { takenOutputs.append(output) }
        return takenOutputs
    }

    var events: [ServerEvent] {
        outputs.compactMap { if case .event(let event) = $0 { event } else { nil } }
    }

    /// The client reconnects.
    func reconnect() {
        _ = outputs
        session = ServerSession(server: server)
        session.reportsEvents = true
    }

    /// The value handle of a characteristic, least significant byte first.
    func handle(_ index: Int) -> [UInt8] {
        let handle = service.characteristics[index].valueHandle.rawValue
        return [UInt8(truncatingIfNeeded: handle), UInt8(truncatingIfNeeded: handle >> 8)]
    }

    func configurationHandle(_ index: Int) throws -> [UInt8] {
        let handle = try #require(service.characteristics[index].clientConfigurationHandle).rawValue
        return [UInt8(truncatingIfNeeded: handle), UInt8(truncatingIfNeeded: handle >> 8)]
    }

    func send(_ pdu: [UInt8]) -> (action: ServerAction, response: [UInt8]) {
        var buffer = PacketBuffer()
        let action = session.receive(pdu.rawSpan, into: &buffer)
        return (action, [UInt8](copying: buffer.bytes))
    }

    func authorize(_ identifier: UInt64, _ isAuthorized: Bool) -> (ServerAction, [UInt8]) {
        var buffer = PacketBuffer()
        let action = session.complete(identifier, isAuthorized: isAuthorized, into: &buffer)
        return (action, [UInt8](copying: buffer.bytes))
    }

    func complete(_ identifier: UInt64, _ result: Result<[UInt8], ATTErrorCode>) -> (ServerAction, [UInt8]) {
        var buffer = PacketBuffer()
        let action = session.complete(identifier, with: result, into: &buffer)
        return (action, [UInt8](copying: buffer.bytes))
    }
}

private func stored(
    _ uuid: BluetoothUUID = "B001",
    _ properties: CharacteristicProperties = [.read, .write],
    _ permissions: AttributePermissions = [.read, .write],
    _ value: [UInt8] = [1, 2, 3],
    maximumLength: Int = 512
) -> CharacteristicDefinition {
    CharacteristicDefinition(
        uuid: uuid,
        properties: properties,
        permissions: permissions,
        value: .stored(value, maximumLength: maximumLength)
    )
}

private func handled(_ uuid: BluetoothUUID = "B002") -> CharacteristicDefinition {
    CharacteristicDefinition(
        uuid: uuid,
        properties: [.read, .write],
        permissions: [.read, .write],
        value: .handled
    )
}

@Suite("GATT server")
struct ServerTests {
    @Test(
        "An access is refused if it lacks a requirement, and allowed with it",
        arguments: [
            (AttributePermissions([.write]), LinkSecurity(), 0x02),
            ([.readEncrypted], LinkSecurity(), 0x05),
            ([.readEncrypted], LinkSecurity(hasKey: true), 0x0F),
            ([.readEncrypted], LinkSecurity(isEncrypted: true, keySize: 16), 0x00),
            ([.readEncrypted], LinkSecurity(isEncrypted: true, keySize: 15), 0x0C),
            ([.readAuthenticated], LinkSecurity(hasKey: true), 0x0F),
            ([.readAuthenticated], LinkSecurity(isEncrypted: true), 0x05),
            ([.readAuthenticated], LinkSecurity(isEncrypted: true, isAuthenticated: true, keySize: 16), 0x00),
            ([.readSecureConnections], LinkSecurity(hasKey: true), 0x0F),
            ([.readSecureConnections], LinkSecurity(isEncrypted: true, isAuthenticated: true, keySize: 16), 0x05),
            ([.readSecureConnections], LinkSecurity(isEncrypted: true, isSecureConnections: true, keySize: 16), 0x05),
            (
                [.readSecureConnections],
                LinkSecurity(isEncrypted: true, isAuthenticated: true, isSecureConnections: true, keySize: 15), 0x0C
            ),
            (
                [.readSecureConnections],
                LinkSecurity(isEncrypted: true, isAuthenticated: true, isSecureConnections: true, keySize: 16), 0x00
            ),
            ([.read], LinkSecurity(isKeyTooShort: true), 0x00),
            ([.readEncrypted], LinkSecurity(isKeyTooShort: true), 0x0C),
            ([.readAuthenticated], LinkSecurity(hasKey: true, isKeyTooShort: true), 0x0C),
            ([.read, .readAuthorized], LinkSecurity(), 0x08),
            ([.read, .readAuthorized], LinkSecurity(isAuthorized: true), 0x00),
        ] as [(AttributePermissions, LinkSecurity, UInt8)]
    )
    func accessThatLacksARequirementIsRefused(permissions: AttributePermissions, security: LinkSecurity, error: UInt8)
        throws
    {
        let fixture = try ServerFixture([stored("B001", .read, permissions)])
        fixture.session.security = security
        let handle = fixture.handle(0)
        let expected: [UInt8] = error == 0 ? [0x0B, 1, 2, 3] : [0x01, 0x0A] + handle + [error]
        #expect(fixture.send([0x0A] + handle).response == expected)
    }

    @Test("Offsets and lengths are checked")
    func offsetsAndLengthsAreChecked() throws {
        let fixture = try ServerFixture([stored(maximumLength: 4)])
        let handle = fixture.handle(0)
        #expect(fixture.send([0x0C] + handle + [3, 0]).response == [0x0D])
        #expect(fixture.send([0x0C] + handle + [4, 0]).response == [0x01, 0x0C] + handle + [0x07])
        #expect(fixture.send([0x12] + handle + [1, 2, 3, 4, 5]).response == [0x01, 0x12] + handle + [0x0D])
        #expect(fixture.send([0x12] + handle + [9]).response == [0x13])
        #expect(fixture.server.value(of: fixture.service.characteristics[0].valueHandle) == [9])
        #expect(
            fixture.events == [
                .read(fixture.service.characteristics[0].valueHandle, offset: 3),
                .written(
                    .init(handle: fixture.service.characteristics[0].valueHandle, offset: 0, value: [9]),
                    isCommand: false
                ),
            ]
        )
    }

    @Test(
        "Malformed and unknown requests get the protocol's own errors",
        arguments: [
            ([0x0A, 0x01], [0x01, 0x0A, 0, 0, 0x04]), ([0x0A], [0x01, 0x0A, 0, 0, 0x04]),
            ([0x10, 1, 0, 0xFF, 0xFF, 0x03, 0x28], [0x01, 0x10, 1, 0, 0x10]),
            ([0x08, 0, 0, 5, 0, 0x03, 0x28], [0x01, 0x08, 0, 0, 0x01]),
            ([0x04, 5, 0, 1, 0], [0x01, 0x04, 5, 0, 0x01]),
            ([0x04, 0x40, 0, 0xFF, 0xFF], [0x01, 0x04, 0x40, 0, 0x0A]),
            ([0x18, 0x02], [0x01, 0x18, 0, 0, 0x04]), ([0x0E, 1, 0], [0x01, 0x0E, 0, 0, 0x04]),
            ([0x12], [0x01, 0x12, 0, 0, 0x04]), ([0x16, 1, 0], [0x01, 0x16, 0, 0, 0x04]),
        ] as [([UInt8], [UInt8])]
    )
    func malformedOrUnknownRequestGetsTheErrorOfTheProtocol(request: [UInt8], response: [UInt8]) throws {
        #expect(try ServerFixture([stored()]).send(request).response == response)
    }

    @Test("Prepared writes take effect together or not at all")
    func preparedWritesTakeEffectTogetherOrNotAtAll() throws {
        let fixture = try ServerFixture([
            stored(), stored("B003", [.read, .write], [.read, .write], [1], maximumLength: 2),
        ])
        let (first, second) = (fixture.handle(0), fixture.handle(1))
        let values = fixture.service.characteristics.map(\.valueHandle)
        #expect(fixture.send([0x16] + first + [0, 0, 7, 8]).response == [0x17] + first + [0, 0, 7, 8])
        #expect(fixture.send([0x16] + first + [2, 0, 9]).action == .respond)
        #expect(fixture.send([0x16] + second + [0, 0, 1, 2, 3]).action == .respond)
        #expect(fixture.send([0x18, 1]).response == [0x01, 0x18] + second + [0x0D])
        #expect(fixture.server.value(of: values[0]) == [1, 2, 3])
        // The queue is empty after the error.
        #expect(fixture.send([0x18, 1]).response == [0x19])
        #expect(fixture.server.value(of: values[0]) == [1, 2, 3])
        _ = fixture.send([0x16] + first + [0, 0, 7, 8])
        #expect(fixture.send([0x18, 0]).response == [0x19])
        #expect(fixture.server.value(of: values[0]) == [1, 2, 3])
        _ = fixture.send([0x16] + first + [0, 0, 7, 8])
        _ = fixture.send([0x16] + first + [2, 0, 9])
        #expect(fixture.send([0x18, 1]).response == [0x19])
        #expect(fixture.server.value(of: values[0]) == [7, 8, 9])
    }

    @Test("A queue whose writes set and clear a client feature is refused before anything is written")
    func queueThatClearsAClientFeatureIsRefusedAsAWhole() throws {
        let fixture = try ServerFixture([stored()])
        let standard = try fixture.server.publish([.genericAttribute])[0]
        let features = try #require(standard.characteristics.first { $0.uuid == .clientSupportedFeatures }).valueHandle
        fixture.reconnect()
        let low = UInt8(truncatingIfNeeded: features.rawValue)
        _ = fixture.send([0x16] + fixture.handle(0) + [0, 0, 9])
        _ = fixture.send([0x16, low, 0, 0, 0, 1])
        _ = fixture.send([0x16, low, 0, 0, 0, 0])
        #expect(fixture.send([0x18, 1]).response == [0x01, 0x18, low, 0, 0x13])
        #expect(fixture.server.value(of: fixture.service.characteristics[0].valueHandle) == [1, 2, 3])
        #expect(fixture.send([0x0A, low, 0]).response == [0x0B, 0])
    }

    @Test("The queue of prepared writes is bounded in parts and in bytes")
    func queueOfPreparedWritesIsBounded() throws {
        var limits = ServerSession.Limits()
        limits.preparedWrites = 3
        limits.preparedBytes = 10
        let fixture = try ServerFixture([stored()], limits: limits)
        let handle = fixture.handle(0)
        let full = [0x01, 0x16] + handle + [0x09]
        for _ in 0..<3 { #expect(fixture.send([0x16] + handle + [0, 0, 1]).action == .respond) }
        #expect(fixture.send([0x16] + handle + [0, 0, 1]).response == full)
        _ = fixture.send([0x18, 0])
        #expect(fixture.send([0x16] + handle + [0, 0] + Array(repeating: 1, count: 11)).response == full)
    }

    @Test("A client can configure what the characteristic supports, and nothing else")
    func clientConfiguresWhatTheCharacteristicSupportsOnly() throws {
        let fixture = try ServerFixture([stored("B001", [.read, .notify])])
        let handle = try fixture.configurationHandle(0)
        let value = fixture.service.characteristics[0].valueHandle
        #expect(fixture.send([0x0A] + handle).response == [0x0B, 0, 0])
        #expect(fixture.send([0x12] + handle + [2, 0]).response == [0x01, 0x12] + handle + [0x13])
        #expect(fixture.send([0x12] + handle + [1]).response == [0x01, 0x12] + handle + [0x0D])
        #expect(fixture.session.configuration(of: value) == [])
        #expect(fixture.send([0x12] + handle + [1, 0]).response == [0x13])
        #expect(fixture.send([0x12] + handle + [1, 0]).response == [0x13])
        #expect(fixture.session.configuration(of: value) == .notification)
        #expect(fixture.send([0x0A] + handle).response == [0x0B, 1, 0])
        #expect(
            fixture.events.filter { if case .configured = $0 { true } else { false } } == [
                .configured(value, from: [], to: .notification)
            ]
        )
        let other = ServerSession(server: fixture.server)
        #expect(other.configuration(of: value) == [], "each client has a configuration of its own")
    }

    @Test("The app answers accesses to its values; late answers are ignored")
    func appAnswersAccessesAndLateAnswersAreIgnored() throws {
        let fixture = try ServerFixture([handled(), handled()])
        let (first, second) = (fixture.handle(0), fixture.handle(1))
        guard case .access(let read) = fixture.send([0x0A] + first).action else {
            Issue.record("the app was not asked")
            return
        }
        #expect(read.kind == .read(fixture.service.characteristics[0].valueHandle, offset: 0))
        #expect(fixture.send([0x0A] + second).action == .nothing, "one request at a time")
        let handle = fixture.service.characteristics[0].valueHandle
        #expect(fixture.session.awaitedAnswer(in: HandleRange(start: 1, end: handle)) == read.identifier)
        let later = HandleRange(start: AttributeHandle(handle.rawValue + 1), end: .last)
        #expect(fixture.session.awaitedAnswer(in: later) == nil)
        #expect(fixture.complete(read.identifier + 1, .success([1])).0 == .nothing)
        #expect(fixture.complete(read.identifier, .success([5, 6])).1 == [0x0B, 5, 6])
        #expect(fixture.session.awaitedAnswer(in: .all) == nil)
        #expect(fixture.complete(read.identifier, .success([5, 6])).0 == .nothing)
        guard case .access(let write) = fixture.send([0x12] + first + [9]).action else {
            Issue.record("the app was not asked")
            return
        }
        #expect(fixture.complete(write.identifier, .failure(.init(rawValue: 0x80))).1 == [0x01, 0x12] + first + [0x80])
        // A request for several such values asks the app for each.
        guard case .access(let one) = fixture.send([0x08, 1, 0, 0xFF, 0xFF, 0x02, 0xB0]).action,
            case .access(let two) = fixture.complete(one.identifier, .success([1, 1])).0
        else {
            Issue.record("the app was not asked twice")
            return
        }
        #expect(
            fixture.complete(two.identifier, .success([2, 2])).1 == [0x09, 4] + first + [1, 1] + second + [2, 2]
        )
        guard case .access(let command) = fixture.send([0x52] + first + [3]).action else {
            Issue.record("the app was not told of the command")
            return
        }
        #expect(
            command.kind
                == .write(
                    .init(handle: fixture.service.characteristics[0].valueHandle, offset: 0, value: [3]),
                    isCommand: true
                )
        )
        #expect(fixture.complete(command.identifier, .success([])).0 == .nothing)
        // An attribute value has at most 512 bytes (Vol 3, Part F, 3.2.9).
        let value = [UInt8](repeating: 1, count: 512)
        guard case .access = fixture.send([0x52] + first + value).action else {
            Issue.record("the app was not told of the long command")
            return
        }
        #expect(fixture.send([0x52] + first + value + [1]).action == .nothing)
    }

    @Test("A value that the server sends by itself has at most 512 bytes", arguments: [(23, 20), (517, 512)])
    func sentValueHasAtMost512Bytes(mtu: Int, length: Int) throws {
        let fixture = try ServerFixture([stored()])
        fixture.session.mtu = mtu
        let handle = fixture.service.characteristics[0].valueHandle
        let value = [UInt8](repeating: 1, count: 600)
        var notification = PacketBuffer()
        fixture.session.notify(value.rawSpan, of: handle, into: &notification)
        #expect([UInt8](copying: notification.bytes) == [0x1B] + fixture.handle(0) + Array(value.prefix(length)))
        var indication = PacketBuffer()
        fixture.session.indicate(value.rawSpan, of: handle, into: &indication)
        #expect([UInt8](copying: indication.bytes) == [0x1D] + fixture.handle(0) + Array(value.prefix(length)))
    }

    @Test("The app's value has at most 512 bytes")
    func valueOfTheAppHasAtMost512Bytes() throws {
        let fixture = try ServerFixture([handled()])
        fixture.session.mtu = 517
        let handle = fixture.handle(0)
        let value = [UInt8](repeating: 1, count: 600)
        let reads: [(opcode: UInt8, offset: [UInt8], length: Int)] = [
            (0x0A, [], 512), (0x0C, [0xF4, 0x01], 12), (0x0C, [0x00, 0x02], 0),
        ]
        for (opcode, offset, length) in reads {
            guard case .access(let read) = fixture.send([opcode] + handle + offset).action else {
                Issue.record("the app was not asked")
                return
            }
            #expect(fixture.complete(read.identifier, .success(value)).1 == [opcode + 1] + value.prefix(length))
        }
        let (action, response) = fixture.send([0x0C] + handle + [0x01, 0x02])
        #expect(action == .respond && response == [0x01, 0x0C] + handle + [0x07], "the app is not asked")
    }

    @Test("Only the first GATT service has a function, until it is removed")
    func onlyTheFirstGATTServiceHasAFunction() throws {
        let server = try ServerFixture([stored()], cmac: Conversation.digest).server
        let first = try server.publish([.genericAttribute])[0]
        let second = try server.publish([.genericAttribute])[0]
        func handle(_ uuid: BluetoothUUID, of service: PublishedService) throws -> AttributeHandle {
            try #require(service.characteristics.first { $0.uuid == uuid }).valueHandle
        }
        #expect(server.isInCoreService(first.handle) && !server.isInCoreService(second.handle))
        let hash = try #require(server.databaseHash)
        let octets = (0..<16).map { UInt8(truncatingIfNeeded: hash >> ($0 * 8)) }
        #expect(try server.value(of: handle(.databaseHash, of: first)) == octets)
        #expect(try server.serviceChanged == handle(.serviceChanged, of: first))
        #expect(server.remove(serviceAt: second.handle) != nil)
        #expect(try server.serviceChanged == handle(.serviceChanged, of: first))
        #expect(try server.value(of: handle(.databaseHash, of: first)) != octets, "the hash follows each change")
        #expect(server.remove(serviceAt: first.handle) != nil)
        #expect(server.serviceChanged == nil && !server.isInCoreService(first.handle))
        let next = try server.publish([.genericAttribute])[0]
        #expect(try server.serviceChanged == handle(.serviceChanged, of: next))
    }

    @Test("A client with robust caching that missed a change gets the error once")
    func clientThatMissedAChangeGetsOutOfSyncOnce() throws {
        let fixture = try ServerFixture([stored()])
        let standard = try fixture.server.publish([.genericAttribute])[0]
        let features = try #require(standard.characteristics.first { $0.uuid == .clientSupportedFeatures }).valueHandle
        fixture.reconnect()
        let low = UInt8(truncatingIfNeeded: features.rawValue)
        #expect(fixture.send([0x12, low, 0, 0x01]).response == [0x13])
        #expect(
            fixture.send([0x12, low, 0, 0x00]).response == [0x01, 0x12, low, 0, 0x13],
            "a feature is not taken back"
        )
        _ = try fixture.server.publish([ServiceDefinition(uuid: "A00B")])
        let handle = fixture.handle(0)
        #expect(fixture.send([0x52] + handle + [9]).action == .nothing)
        #expect(
            fixture.server.value(of: fixture.service.characteristics[0].valueHandle) == [1, 2, 3],
            "a command is ignored"
        )
        #expect(fixture.send([0x0A] + handle).response == [0x01, 0x0A, 0, 0, 0x12])
        #expect(fixture.send([0x0A] + handle).response == [0x0B, 1, 2, 3])
    }
}

@Suite("The attribute database")
struct DatabaseTests {
    @Test("The hash's input is that of the specification's example (Vol 3, Part G, Appendix B)")
    func hashInputIsThatOfTheExampleInTheSpecification() throws {
        var database = AttributeDatabase()
        func plain(_ uuid: BluetoothUUID, _ properties: CharacteristicProperties) -> CharacteristicDefinition {
            CharacteristicDefinition(
                uuid: uuid,
                properties: properties,
                permissions: [.read, .write],
                value: .stored([])
            )
        }
        _ = try database.publish([
            ServiceDefinition(
                uuid: "1800",
                characteristics: [plain("2A00", [.read, .write]), plain("2A01", [.read, .write])]
            ),
            ServiceDefinition(
                uuid: "1801",
                characteristics: [plain("2A05", .indicate), plain("2B29", [.read, .write]), plain("2B2A", .read)]
            ),
            ServiceDefinition(
                uuid: "1808",
                includes: [.handle(0x0014)],
                characteristics: [
                    CharacteristicDefinition(
                        uuid: "2A18",
                        properties: [.read, .indicate, .extendedProperties],
                        permissions: .read,
                        value: .stored([]),
                        descriptors: [
                            .init(uuid: .clientCharacteristicConfiguration, value: .stored([0, 0])),
                            .init(uuid: .characteristicExtendedProperties, value: .stored([0, 0])),
                        ]
                    )
                ]
            ),
            ServiceDefinition(uuid: "180F", isPrimary: false, characteristics: [plain("2A19", .read)]),
        ])
        #expect(
            database.hashInput.hexadecimal
                == "010000280018020003280a0300002a04000328"
                + "0a0500012a06000028011807000328200800052a090002290a0003280a0b00292b0c000328020d002a2b"
                + "0e00002808180f000228140016000f1810000328a21100182a12000229130000290000140001280f1815000328021600192a"
        )
    }

    @Test(
        "Extended Properties say whether clients may write the User Description, with any security",
        arguments: [
            (.read, 0x01), (.write, 0x03), (.writeEncrypted, 0x03), ([.read, .writeAuthenticated], 0x03),
            (.writeSecureConnections, 0x03), (.writeAuthorized, 0x03), (.writeSigned, 0x03),
        ] as [(AttributePermissions, UInt8)]
    )
    func extendedPropertiesSayWhetherTheUserDescriptionIsWritable(
        permissions: AttributePermissions,
        properties: UInt8
    ) throws {
        var database = AttributeDatabase()
        let description = DescriptorDefinition(
            uuid: .characteristicUserDescription,
            value: .stored([]),
            permissions: permissions
        )
        let characteristic = CharacteristicDefinition(
            uuid: "B001",
            properties: [.read, .extendedProperties],
            permissions: .read,
            value: .stored([]),
            descriptors: [description]
        )
        let service = try database.publish([ServiceDefinition(uuid: "A001", characteristics: [characteristic])])[0]
        let handle = try #require(service.characteristics[0].descriptorHandles.first)
        #expect(database.attribute(handle)?.type == .characteristicExtendedProperties)
        #expect(database.attribute(handle)?.storedValue == [properties, 0])
    }

    @Test("Handles are assigned in order, explicit ones kept, and impossible ones are errors")
    func handlesAreAssignedInOrderAndImpossibleOnesAreErrors() throws {
        var database = AttributeDatabase()
        let services = try database.publish([
            ServiceDefinition(
                uuid: "A001",
                handle: 0x10,
                characteristics: [stored(), stored("B002", [.read, .notify])]
            ),
            ServiceDefinition(uuid: "A002"),
        ])
        #expect(services.map(\.handle) == [0x10, 0x16] && services.map(\.endHandle) == [0x15, 0x16])
        #expect(services[0].characteristics[1].clientConfigurationHandle == 0x15)
        #expect(throws: DatabaseError.handleNotFree(0x12)) {
            try database.publish([ServiceDefinition(uuid: "A003", handle: 0x12)])
        }
        #expect(throws: DatabaseError.handlesExhausted) {
            try database.publish([ServiceDefinition(uuid: "A003", handle: 0xFFFF, characteristics: [stored()])])
        }
        #expect(throws: DatabaseError.noSuchInclude("A003")) {
            try database.publish([ServiceDefinition(uuid: "A003", includes: [.index(7)])])
        }
        #expect(throws: DatabaseError.valueTooLong("B001", length: 513)) {
            try database.publish([
                ServiceDefinition(
                    uuid: "A003",
                    characteristics: [stored("B001", .read, .read, Array(repeating: 0, count: 513))]
                )
            ])
        }
        #expect(database.remove(serviceAt: 0x10) == HandleRange(start: 0x10, end: 0x15))
        #expect(database.remove(serviceAt: 0x10) == nil)
        #expect(try database.publish([ServiceDefinition(uuid: "A004")]).map(\.handle) == [0x17])
    }
}
