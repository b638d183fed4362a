import BLEATT
import BLEByteCoding
import BluetoothTypes
import Testing

@testable import BLEGATT

/// A server whose last service is replaced by another one, which gets the same handles.
private final class ReplacementFixture {
    let fixture: ServerFixture
    private var last: PublishedService
    /// A bearer besides that of the fixed channel.
    private var bearer = ServerSession.BearerState(mtu: 64)

    /// - Parameters:
    ///   - firstValue: the characteristic of the first service.
    ///   - lastValue: the characteristic of the last service.
    ///   - cmac: computes the Database Hash; if it is nil, the GATT service is not published.
    init(
        firstValue: CharacteristicDefinition = characteristic(),
        lastValue: CharacteristicDefinition = characteristic(),
        cmac: Server.CMAC? = nil
    ) throws {
        fixture = try ServerFixture([firstValue], cmac: cmac)
        if cmac != nil { _ = try fixture.server.publish([.genericAttribute]) }
        last = try fixture.server.publish([ServiceDefinition(uuid: "A00B", characteristics: [lastValue])])[0]
        fixture.reconnect()
    }

    /// The value handle of the first service.
    var firstHandle: AttributeHandle { fixture.service.characteristics[0].valueHandle }
    /// The value handle of the last service.
    var lastHandle: AttributeHandle { last.characteristics[0].valueHandle }
    var firstOctets: [UInt8] { firstHandle.bytes }
    var lastOctets: [UInt8] { lastHandle.bytes }

    @discardableResult
    func removeLast() throws -> HandleRange {
        let range = try #require(fixture.server.remove(serviceAt: last.handle))
        fixture.session.servicesRemoved(in: range)
        return range
    }

    /// Publishes a service with a stored value of one byte, 5.
    func publishNext() throws {
        let definition = ServiceDefinition(uuid: "A00C", characteristics: [characteristic(value: .stored([5]))])
        last = try fixture.server.publish([definition])[0]
    }

    func replaceLast() throws {
        let handle = lastHandle
        try removeLast()
        try publishNext()
        #expect(lastHandle == handle, "the test needs the handle to be used again")
    }

    /// The value of the last service.
    var value: [UInt8]? { fixture.server.value(of: lastHandle) }

    /// Sends a request of the second bearer.
    func sendOnBearer(_ pdu: [UInt8]) -> [UInt8] {
        var buffer = PacketBuffer()
        _ = fixture.session.receive(pdu.rawSpan, on: &bearer, into: &buffer)
        return [UInt8](copying: buffer.bytes)
    }

    /// The request of the second bearer that waits for the app's answer to an access in a range.
    func awaitedAnswerOnBearer(in range: HandleRange) -> UInt64? { bearer.awaitedAnswer(in: range) }

    func completeOnBearer(_ identifier: UInt64, _ result: Result<[UInt8], ATTErrorCode>) -> [UInt8] {
        var buffer = PacketBuffer()
        _ = fixture.session.complete(identifier, with: result, on: &bearer, into: &buffer)
        return [UInt8](copying: buffer.bytes)
    }
}

private func characteristic(
    _ permissions: AttributePermissions = [.read, .write],
    value: CharacteristicDefinition.Value = .stored([1])
) -> CharacteristicDefinition {
    CharacteristicDefinition(
        uuid: "B001",
        properties: [.read, .write, .authenticatedSignedWrites],
        permissions: permissions,
        value: value
    )
}

@Suite("Include declarations of removed services")
struct RemovedIncludeTests {
    /// Read By Type Request for the include declarations over all handles.
    private static let includes: [UInt8] = [0x08, 1, 0, 0xFF, 0xFF, 0x02, 0x28]

    @Test("A removed service is included by no other, and no handle changes")
    func removedServiceIsNotIncluded() throws {
        let fixture = try ServerFixture([characteristic()], cmac: Conversation.digest)
        let server = fixture.server
        let services = try server.publish([
            ServiceDefinition(uuid: "A00B", includes: [.index(1), .index(2)], characteristics: [characteristic()]),
            ServiceDefinition(uuid: "A00C"), ServiceDefinition(uuid: "A00D"),
        ])
        #expect(services.map(\.handle) == [4, 9, 10])
        #expect(fixture.send(Self.includes).response.count == 2 + 2 * 8)
        #expect(server.changedRange(removingServiceAt: 9) == HandleRange(start: 5, end: 9))
        #expect(server.remove(serviceAt: 9) == HandleRange(start: 9, end: 9))
        #expect(fixture.send(Self.includes).response == [0x09, 8, 6, 0, 10, 0, 10, 0, 0x0D, 0xA0])
        #expect(server.changedRange(removingServiceAt: 10) == HandleRange(start: 6, end: 10))
        #expect(server.remove(serviceAt: 10) == HandleRange(start: 10, end: 10))
        #expect(server.changedRange(removingServiceAt: 10) == nil)
        #expect(fixture.send(Self.includes).response == [0x01, 0x08, 1, 0, 0x0A])
        #expect(server.value(of: 8) == [1])

        // The hash is that of a server that never had the two services.
        let other = Server(cmac: Conversation.digest)
        var definition = characteristic()
        _ = try other.publish([ServiceDefinition(uuid: "A00A", characteristics: [definition])])
        definition.handle = 7
        _ = try other.publish([ServiceDefinition(uuid: "A00B", characteristics: [definition])])
        #expect(server.databaseHash == other.databaseHash)

        #expect(try server.publish([ServiceDefinition(uuid: "A00E")])[0].handle == 9)
        #expect(fixture.send(Self.includes).response == [0x01, 0x08, 1, 0, 0x0A], "the handle is used again")
    }
}

@Suite("Handles of removed services")
struct RemovedServiceHandleTests {
    @Test("Once no handles are left after the last service, services get the lowest free handles that are enough")
    func handlesOfRemovedServicesAreUsedAgain() throws {
        let server = Server()
        let empty = ServiceDefinition(uuid: "A00C")
        let small = ServiceDefinition(uuid: "A00D", characteristics: [characteristic()])
        let large = ServiceDefinition(uuid: "A00E", characteristics: [characteristic(), characteristic()])
        let services = try server.publish([empty, small, empty, large])
        #expect(services.map(\.handle) == [1, 2, 5, 6])
        #expect(try server.publish([ServiceDefinition(uuid: "A00F", handle: 0xFFFE)])[0].handle == 0xFFFE)
        for service in services where service.handle != 5 { _ = server.remove(serviceAt: service.handle) }
        // The first does not fit before the service at 5. The second and the third do.
        let published = try server.publish([large, small, empty])
        #expect(published.map(\.handle) == [6, 1, 0xFFFF])
        #expect(published.map(\.endHandle) == [10, 3, 0xFFFF])
        #expect(try server.publish([empty, empty]).map(\.handle) == [4, 11])
        let value = published[1].characteristics[0].valueHandle
        #expect(value == 3 && server.value(of: value) == [1])
        _ = try server.publish([ServiceDefinition(uuid: "A00B", handle: 12, endHandle: 0xFFFD)])
        #expect(throws: DatabaseError.handlesExhausted) { try server.publish([empty]) }
    }

    @Test("Services that are published and removed in turn never use up the handles")
    func publishingInTurnNeverExhaustsTheHandles() throws {
        let server = Server()
        let definition = ServiceDefinition(uuid: "A00C", characteristics: [characteristic()])
        var last = try server.publish([ServiceDefinition(uuid: "A00D", handle: 0xFFF0)])[0]
        for _ in 0..<20 {
            let next = try server.publish([definition])[0]
            #expect(server.remove(serviceAt: last.handle) != nil)
            last = next
        }
    }
}

/// What a client sent before a service was removed never reaches an attribute that gets the same handle later.
@Suite("Requests that outlive a removed service")
struct RemovedServiceTests {
    @Test("A write that waits for authorization is not performed on the attribute that replaces its own")
    func authorizedWriteDoesNotReachTheNextAttribute() throws {
        let replacement = try ReplacementFixture(lastValue: characteristic([.read, .writeAuthorized]))
        let (fixture, handle) = (replacement.fixture, replacement.lastOctets)
        fixture.session.asksForAuthorization = true
        guard case .authorize(let question) = fixture.send([0x12] + handle + [9]).action else {
            Issue.record("the app was not asked")
            return
        }
        try replacement.replaceLast()
        #expect(fixture.authorize(question.identifier, true).1 == [0x01, 0x12] + handle + [0x01])
        #expect(replacement.value == [5])
        #expect(fixture.send([0x12] + handle + [9]).response == [0x13], "the next request means the new attribute")
        #expect(replacement.value == [9])
    }

    @Test("A part that waits for authorization is not queued for the attribute that replaces its own")
    func authorizedPartDoesNotReachTheNextAttribute() throws {
        let replacement = try ReplacementFixture(lastValue: characteristic([.read, .writeAuthorized]))
        let (fixture, handle) = (replacement.fixture, replacement.lastOctets)
        fixture.session.asksForAuthorization = true
        guard case .authorize(let question) = fixture.send([0x16] + handle + [0, 0, 9]).action else {
            Issue.record("the app was not asked")
            return
        }
        try replacement.replaceLast()
        #expect(fixture.authorize(question.identifier, true).1 == [0x01, 0x16] + handle + [0x01])
        #expect(fixture.send([0x18, 1]).response == [0x19])
        #expect(replacement.value == [5])
    }

    @Test(
        "A read that waits for the app does not read the attribute that replaces its own",
        arguments: [
            ([0x0A, 6, 0], [0x01, 0x0A, 6, 0, 0x01]), ([0x0C, 6, 0, 0, 0], [0x01, 0x0C, 6, 0, 0x01]),
            ([0x0E, 3, 0, 6, 0], [0x01, 0x0E, 6, 0, 0x01]), ([0x20, 6, 0, 3, 0], [0x01, 0x20, 6, 0, 0x01]),
            ([0x08, 4, 0, 0xFF, 0xFF, 0x01, 0xB0], [0x01, 0x08, 4, 0, 0x0A]),
            ([0x08, 1, 0, 0xFF, 0xFF, 0x01, 0xB0], [0x09, 3, 3, 0, 1]),
        ] as [([UInt8], [UInt8])]
    )
    func pendingReadDoesNotReachTheNextAttribute(request: [UInt8], response: [UInt8]) throws {
        let replacement = try ReplacementFixture(lastValue: characteristic(value: .handled))
        #expect(replacement.firstHandle == 3 && replacement.lastHandle == 6)
        let fixture = replacement.fixture
        guard case .access(let question) = fixture.send(request).action else {
            Issue.record("the app was not asked")
            return
        }
        try replacement.replaceLast()
        #expect(fixture.complete(question.identifier, .success([7])).1 == response)
    }

    @Test("A signed write that waits for its verification does not reach the attribute that replaces its own")
    func signedWriteDoesNotReachTheNextAttribute() throws {
        let replacement = try ReplacementFixture(lastValue: characteristic([.read, .writeSigned]))
        let (fixture, handle) = (replacement.fixture, replacement.lastOctets)
        let signature = [UInt8](repeating: 1, count: 12)
        guard case .verify(let write) = fixture.send([0xD2] + handle + [9] + signature).action else {
            Issue.record("the signature was not to be verified")
            return
        }
        try replacement.replaceLast()
        #expect(fixture.session.receiveVerified(write, .authenticated) == .nothing)
        #expect(replacement.value == [5])
    }

    @Test("A prepared write is refused if its service was replaced, also with a part for the new attribute after it")
    func preparedWriteDoesNotReachTheNextAttribute() throws {
        let replacement = try ReplacementFixture()
        let (fixture, handle) = (replacement.fixture, replacement.lastOctets)
        let laterParts: [[UInt8]] = [[], [1, 0, 8], [0, 0, 8]]
        for part in laterParts {
            #expect(fixture.send([0x16] + replacement.firstOctets + [0, 0, 7]).response.first == 0x17)
            #expect(fixture.send([0x16] + handle + [0, 0, 9]).response.first == 0x17)
            #expect(replacement.sendOnBearer([0x16] + handle + [0, 0, 9]).first == 0x17)
            try replacement.replaceLast()
            if !part.isEmpty { #expect(fixture.send([0x16] + handle + part).response.first == 0x17) }
            #expect(fixture.send([0x18, 1]).response == [0x01, 0x18] + handle + [0x01])
            #expect(replacement.sendOnBearer([0x18, 1]) == [0x01, 0x18] + handle + [0x01])
            #expect(fixture.send([0x18, 1]).response == [0x19], "the queue is empty after the error")
            #expect(replacement.value == [5] && fixture.server.value(of: replacement.firstHandle) == [1])
        }
    }

    @Test("A client that has read the Database Hash cannot execute writes that it prepared before the change")
    func preparedWriteOfAClientThatReadTheHashDoesNotReachTheNextAttribute() throws {
        let replacement = try ReplacementFixture(cmac: Conversation.digest)
        let (fixture, handle) = (replacement.fixture, replacement.lastOctets)
        // Client Supported Features: robust caching.
        let table = fixture.send([0x08, 1, 0, 0xFF, 0xFF, 0x29, 0x2B]).response
        let features = [UInt8](table.dropFirst(2).prefix(2))
        #expect(fixture.send([0x12] + features + [1]).response == [0x13])
        #expect(fixture.send([0x16] + handle + [0, 0, 9]).response == [0x17] + handle + [0, 0, 9])
        try replacement.replaceLast()
        #expect(fixture.send([0x08, 1, 0, 0xFF, 0xFF, 0x2A, 0x2B]).response.first == 0x09)
        #expect(fixture.send([0x18, 1]).response == [0x01, 0x18] + handle + [0x01])
        #expect(replacement.value == [5])
    }

    @Test("Parts are written together if only some were prepared after a change that kept the services of the others")
    func partsOfSeveralRevisionsAreWrittenTogether() throws {
        let replacement = try ReplacementFixture()
        let fixture = replacement.fixture
        #expect(fixture.send([0x16] + replacement.firstOctets + [0, 0, 7]).response.first == 0x17)
        try replacement.replaceLast()
        #expect(fixture.send([0x16] + replacement.lastOctets + [0, 0, 9]).response.first == 0x17)
        #expect(fixture.send([0x16] + replacement.firstOctets + [1, 0, 8]).response.first == 0x17)
        #expect(fixture.send([0x18, 1]).response == [0x19])
        #expect(replacement.value == [9] && fixture.server.value(of: replacement.firstHandle) == [7, 8])
    }

    @Test("A queue that waits for the app is refused if the service of any of its values is removed")
    func pendingQueueIsRefusedIfAnyOfItsServicesIsRemoved() throws {
        let replacement = try ReplacementFixture(firstValue: characteristic(value: .handled))
        let (fixture, handle) = (replacement.fixture, replacement.lastOctets)
        #expect(fixture.send([0x16] + replacement.firstOctets + [0, 0, 7]).response.first == 0x17)
        #expect(fixture.send([0x16] + handle + [0, 0, 9]).response.first == 0x17)
        guard case .access(let question) = fixture.send([0x18, 1]).action else {
            Issue.record("the app was not asked")
            return
        }
        #expect(question.kind == .execute([AttributeWrite(handle: replacement.firstHandle, offset: 0, value: [7])]))
        let range = try replacement.removeLast()
        #expect(fixture.session.awaitedAnswer(in: range) == question.identifier)
        #expect(fixture.complete(question.identifier, .failure(.unlikelyError)).1 == [0x01, 0x18] + handle + [0x01])
        #expect(fixture.complete(question.identifier, .success([])).0 == .nothing, "the app's answer comes too late")
        #expect(fixture.send([0x18, 1]).response == [0x19], "the queue is empty after the error")
    }

    @Test("A queue of a bearer that waits for the app does not reach the attribute that replaces its own")
    func pendingQueueOfABearerDoesNotReachTheNextAttribute() throws {
        let replacement = try ReplacementFixture(firstValue: characteristic(value: .handled))
        let handle = replacement.lastOctets
        #expect(replacement.sendOnBearer([0x16] + replacement.firstOctets + [0, 0, 7]).first == 0x17)
        #expect(replacement.sendOnBearer([0x16] + handle + [0, 0, 9]).first == 0x17)
        #expect(replacement.sendOnBearer([0x18, 1]) == [], "the app is asked")
        let range = try replacement.removeLast()
        let identifier = try #require(replacement.awaitedAnswerOnBearer(in: range))
        try replacement.publishNext()
        #expect(replacement.completeOnBearer(identifier, .success([])) == [0x01, 0x18] + handle + [0x01])
        #expect(replacement.value == [5])
    }
}
