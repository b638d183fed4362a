import BLEGATT
import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("Enhanced bearers that a client opens")
struct EnhancedBearerServerTests {
    /// Reads Device Name, which is at handle 3, from offset 0.
    private static let readName: [UInt8] = [0x0A, 3, 0]
    private static let name: [UInt8] = [0x0B] + Array("swift-ble".utf8)

    @Test func unencryptedLinkGetsNoBearer() throws {
        let fixture = try EnhancedBearerFixture(isEncrypted: false)
        #expect(fixture.peerOpens() == [0x18, 1, 10, 0, 0, 0, 0, 0, 0, 0, 0x05, 0, 0, 0])
        #expect(try fixture.bearerMTUs.isEmpty)
    }

    @Test func hostWithoutTheOptionRefusesTheSPSM() throws {
        let fixture = try EnhancedBearerFixture(limit: 0)
        #expect(fixture.peerOpens() == [0x18, 1, 10, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0])
    }

    @Test func channelOfTheOtherVariantIsRefused() throws {
        let fixture = try EnhancedBearerFixture()
        let response = fixture.send([0x14, 1, 10, 0, 0x27, 0, 0x41, 0, 100, 0, 100, 0, 10, 0], on: 5, answers: 5)
        #expect(response == [[0x15, 1, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0]])
    }

    @Test func bearersBeyondTheLimitAreRefused() throws {
        let fixture = try EnhancedBearerFixture(limit: 3)
        // MTU 517, MPS 519, 7 credits, some connections refused: insufficient resources available.
        let response: [UInt8] = [
            0x18, 1, 16, 0, 0x05, 0x02, 0x07, 0x02, 7, 0, 0x04, 0, 0x40, 0, 0x41, 0, 0x42, 0, 0, 0,
        ]
        #expect(fixture.peerOpens(4) == response)
        #expect(try fixture.bearerMTUs == [100, 100, 100])
        #expect(
            fixture.peerOpens(1, identifier: 2, firstSource: 0x50)
                == [0x18, 2, 10, 0, 0x05, 0x02, 0x07, 0x02, 0, 0, 0x04, 0, 0, 0]
        )
    }

    @Test func serverReportsEnhancedBearersOnlyWithTheOption() throws {
        for (limit, features) in [(0, 0), (1, 1)] as [(Int, UInt8)] {
            let fixture = try EnhancedBearerFixture(limit: limit)
            let response = fixture.security.exchange([0x08, 1, 0, 0xFF, 0xFF, 0x3A, 0x2B])
            #expect(response.first?.last == features)
        }
    }

    @Test func requestsOnEachBearerAreServedWithItsOwnMTU() throws {
        let fixture = try EnhancedBearerFixture { $0.deviceName = String(repeating: "x", count: 150) }
        _ = fixture.peerOpens(2, mtu: 64)
        #expect(try fixture.bearerMTUs == [64, 64])
        #expect(fixture.exchange(Self.readName, on: 0) == [[0x0B] + [UInt8](repeating: 0x78, count: 63)])
        #expect(fixture.exchange(Self.readName, on: 1) == [[0x0B] + [UInt8](repeating: 0x78, count: 63)])
        #expect(fixture.security.exchange(Self.readName) == [[0x0B] + [UInt8](repeating: 0x78, count: 22)])
    }

    @Test func bearerIsReconfiguredToALongerMTU() throws {
        let fixture = try EnhancedBearerFixture { $0.deviceName = String(repeating: "x", count: 150) }
        _ = fixture.peerOpens(1, mtu: 64)
        let response = fixture.send([0x19, 9, 6, 0, 120, 0, 122, 0, 0x41, 0], on: 5, answers: 5)
        #expect(response == [[0x1A, 9, 2, 0, 0, 0]])
        #expect(try fixture.bearerMTUs == [120])
        #expect(fixture.exchange(Self.readName) == [[0x0B] + [UInt8](repeating: 0x78, count: 119)])
    }

    @Test func exchangeOfMTUsIsNotSupportedOnAnEnhancedBearer() throws {
        let fixture = try EnhancedBearerFixture()
        _ = fixture.peerOpens()
        #expect(fixture.exchange([0x02, 0x17, 0]) == [[0x01, 0x02, 0, 0, 0x06]])
        #expect(fixture.exchange(Self.readName) == [Self.name])
    }

    @Test func signedWriteOnAnEnhancedBearerIsIgnored() throws {
        let fixture = try EnhancedBearerFixture()
        _ = fixture.peerOpens()
        let handle = UInt8(fixture.valueHandle.rawValue)
        #expect(fixture.exchange([0xD2, handle, 0, 1] + [UInt8](repeating: 0, count: 12)).isEmpty)
        #expect(fixture.accesses.isEmpty)
        #expect(fixture.exchange(Self.readName) == [Self.name])
    }

    @Test func requestsOfTwoBearersWaitForTheAppAtTheSameTime() throws {
        let fixture = try EnhancedBearerFixture()
        _ = fixture.peerOpens(2)
        let (link, handle) = (fixture.link, UInt8(fixture.valueHandle.rawValue))
        for bearer in 0..<2 { #expect(fixture.exchange([0x0A, handle, 0], on: bearer).isEmpty) }
        #expect(fixture.security.exchange([0x0A, handle, 0]).isEmpty)
        let requests = fixture.accesses.map(\.identifier)
        try #require(requests.count == 3)
        fixture.security.controller.forgetData()
        try fixture.run { host in
            for (number, request) in requests.enumerated().reversed() {
                host.answer(request, on: link, with: .success([UInt8(number)]))
            }
        }
        #expect(fixture.sent(on: 0) == [[0x0B, 0]])
        #expect(fixture.sent(on: 1) == [[0x0B, 1]])
        #expect(fixture.sentOnFixedChannel == [[0x0B, 2]])
    }

    @Test func preparedWritesBelongToTheirBearer() throws {
        let fixture = try EnhancedBearerFixture()
        _ = fixture.peerOpens(2)
        let handle = UInt8(fixture.valueHandle.rawValue)
        for bearer in 0..<2 {
            let part: [UInt8] = [handle, 0, 0, 0, UInt8(bearer)]
            #expect(fixture.exchange([0x16] + part, on: bearer) == [[0x17] + part])
        }
        // The first bearer cancels its own part only.
        #expect(fixture.exchange([0x18, 0x00], on: 0) == [[0x19]])
        #expect(fixture.security.exchange([0x18, 0x01]) == [[0x19]])
        #expect(fixture.accesses.isEmpty)
        #expect(fixture.exchange([0x18, 0x01], on: 1).isEmpty)
        let writes = fixture.accesses.map(\.kind)
        #expect(writes == [.execute([AttributeWrite(handle: fixture.valueHandle, offset: 0, value: [1])])])
    }

    @Test func violationEndsItsBearerOnly() throws {
        let fixture = try EnhancedBearerFixture()
        _ = fixture.peerOpens(2)
        // A response without a request: the host requests the end of this channel.
        fixture.send([2, 0, 0x0B, 1], on: 0x40)
        #expect(fixture.signaling.map { Array($0.dropFirst(2)) } == [[4, 0, 0x41, 0, 0x40, 0]])
        #expect(try fixture.bearerMTUs == [100])
        #expect(fixture.exchange(Self.readName, on: 1) == [Self.name])
        #expect(fixture.security.exchange(Self.readName) == [Self.name])
    }

    @Test func secondRequestBeforeTheResponseEndsItsBearerOnly() throws {
        let fixture = try EnhancedBearerFixture()
        _ = fixture.peerOpens(2)
        let read: [UInt8] = [0x0A, UInt8(fixture.valueHandle.rawValue), 0]
        _ = fixture.exchange(read)
        _ = fixture.exchange(read)
        #expect(try fixture.bearerMTUs == [100])
        let (link, requests) = (fixture.link, fixture.accesses.map(\.identifier))
        try #require(requests.count == 1)
        // The app's answer finds no bearer.
        fixture.security.controller.forgetData()
        try fixture.run { $0.answer(requests[0], on: link, with: .success([1])) }
        #expect(fixture.security.controller.data.isEmpty)
        #expect(fixture.exchange(Self.readName, on: 1) == [Self.name])
    }

    @Test func peerThatEndsABearerMayOpenAnother() throws {
        let fixture = try EnhancedBearerFixture(limit: 1)
        _ = fixture.peerOpens()
        let response = fixture.send([0x06, 5, 4, 0, 0x40, 0, 0x41, 0], on: 5, answers: 5)
        #expect(response == [[0x07, 5, 4, 0, 0x40, 0, 0x41, 0]])
        #expect(try fixture.bearerMTUs.isEmpty)
        _ = fixture.peerOpens(identifier: 6)
        #expect(try fixture.bearerMTUs == [100])
    }

    @Test func peerThatTakesNoResponsesCannotMakeTheHostQueueThem() throws {
        let fixture = try EnhancedBearerFixture()
        // No credits beyond the first: the second response stays in the host.
        fixture.send([0x17, 1, 10, 0, 0x27, 0, 100, 0, 102, 0, 1, 0, 0x41, 0], on: 5)
        #expect(fixture.exchange(Self.readName) == [Self.name])
        #expect(fixture.exchange(Self.readName).isEmpty)
        #expect(try fixture.bearerMTUs == [100])
        #expect(fixture.exchange(Self.readName).isEmpty)
        #expect(try fixture.bearerMTUs.isEmpty)
    }

    @Test func requestsOfEndedBearersAreBounded() throws {
        let fixture = try EnhancedBearerFixture(limit: 1)
        let read: [UInt8] = [0x0A, UInt8(fixture.valueHandle.rawValue), 0]
        for number in 0..<EnhancedBearers.orphanLimit {
            let identifier = UInt8(2 * number + 1)
            #expect(fixture.peerOpens(identifier: identifier)?[10] == 0)
            _ = fixture.exchange(read, on: number)
            fixture.send([0x06, identifier + 1, 4, 0, 0x40 + UInt8(number), 0, 0x41, 0], on: 5)
        }
        _ = fixture.peerOpens(identifier: 0xF0)
        #expect(try fixture.bearerMTUs.isEmpty)
        let (link, requests) = (fixture.link, fixture.accesses.map(\.identifier))
        #expect(requests.count == EnhancedBearers.orphanLimit)
        try fixture.run { host in
            for request in requests { host.answer(request, on: link, with: .success([1])) }
        }
        _ = fixture.peerOpens(identifier: 0xF1, firstSource: 0x50)
        #expect(try fixture.bearerMTUs == [100])
    }

    @Test func clientWithSeveralBearersIsRefusedOnceOnEachAndMadeAwareByTheHash() throws {
        let fixture = try EnhancedBearerFixture()
        // Client Supported Features: robust caching and enhanced bearers.
        let table = fixture.security.exchange([0x08, 1, 0, 0xFF, 0xFF, 0x29, 0x2B])
        let features = try #require(table.first?.dropFirst(2).first)
        #expect(fixture.security.exchange([0x12, features, 0, 0x03]) == [[0x13]])
        _ = fixture.peerOpens(2)
        _ = try fixture.run { try $0.publish([ServiceDefinition(uuid: "180D")]) }
        let outOfSync: [UInt8] = [0x01, 0x0A, 0, 0, 0x12]
        #expect(fixture.exchange(Self.readName, on: 0) == [outOfSync])
        #expect(fixture.exchange(Self.readName, on: 1) == [outOfSync])
        #expect(fixture.security.exchange(Self.readName) == [outOfSync])
        #expect(fixture.exchange(Self.readName, on: 0) == [Self.name])
        let command: [UInt8] = [0x52, UInt8(fixture.valueHandle.rawValue), 0, 1]
        _ = fixture.exchange(command, on: 0)
        #expect(fixture.accesses.isEmpty, "a command of a client that is not aware of the change")
        #expect(fixture.exchange([0x08, 1, 0, 0xFF, 0xFF, 0x2A, 0x2B], on: 1).first?.count == 20)
        #expect(fixture.exchange(Self.readName, on: 0) == [Self.name])
        _ = fixture.exchange(command, on: 0)
        #expect(fixture.accesses.count == 1)
    }

    @Test func linkThatEndsEndsItsBearers() throws {
        let fixture = try EnhancedBearerFixture()
        _ = fixture.peerOpens(2)
        _ = fixture.exchange([0x0A, UInt8(fixture.valueHandle.rawValue), 0])
        fixture.security.disconnected(.connectionTimeout)
        let inspection = try fixture.run { $0.inspect() }
        #expect(inspection.channels == 0 && inspection.channelObservers == 0 && inspection.transactions == 0)
        #expect(try fixture.run { $0.contradiction() } == nil)
    }
}
