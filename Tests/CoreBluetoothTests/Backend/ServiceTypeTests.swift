import BLE
import BLEATT
import BLEByteCoding
import BLEGATT
import BluetoothTesting
import BluetoothTypes
import Testing

@testable import CoreBluetooth

@Suite("Discovering services by their types")
struct ServiceTypeTests {
    /// The request for services of a type in all handles, from its parameter Attribute Value on.
    private static func request(_ value: [UInt8]) -> [UInt8] { [0x06, 0x01, 0x00, 0xFF, 0xFF, 0x00, 0x28] + value }

    /// Discovers services of some types with a phone.
    ///
    /// - Returns: the requests that begin at the first handle, and the types of the services that were found.
    private static func discover(_ types: [BluetoothUUID]) throws -> (requests: [[UInt8]], found: [BluetoothUUID]) {
        let world = World(seed: 131, recordsCaptures: true)
        defer { world.close() }
        return try world.run {
            let pair = try await LampAndPhone(world)
            let peripheral = await pair.connect()
            // The host has sent its own requests by then.
            try await world.sleep(for: .seconds(5))
            let device = pair.phoneDevice.device
            let before = try AttributeTrace(device.capture).sent.count
            let found = try await pair.phone.services(types, of: peripheral)
            let sent = try AttributeTrace(device.capture).sent.dropFirst(before)
            return (sent.filter { $0.starts(with: Self.request([])) }, found.map(\.uuid))
        }
    }

    /// Many servers compare the bytes of the request with their declarations, most of which have 16 bits.
    @Test(
        arguments: [
            ["FFE0"], ["0000FFE0"], ["0000FFE0-0000-1000-8000-00805F9B34FB"],
            ["FFE0", "0000FFE0-0000-1000-8000-00805F9B34FB", "FFE0"],
        ] as [[BluetoothUUID]]
    )
    func typeIsSentOnceInItsShortestForm(types: [BluetoothUUID]) throws {
        let (requests, found) = try Self.discover(types)
        #expect(requests == [Self.request([0xE0, 0xFF])])
        #expect(found == [Lamp.service])
    }

    @Test(arguments: ["AAAA", "0000AAAA"] as [BluetoothUUID])
    func typeThatIsNotFoundIsLookedForInItsLongForm(type: BluetoothUUID) throws {
        let (requests, found) = try Self.discover([type])
        let long: [UInt8] = [
            0xFB, 0x34, 0x9B, 0x5F, 0x80, 0x00, 0x00, 0x80, 0x00, 0x10, 0x00, 0x00, 0xAA, 0xAA, 0x00, 0x00,
        ]
        #expect(requests == [Self.request([0xAA, 0xAA]), Self.request(long)])
        #expect(found.isEmpty)
    }

    @Test func typeWithoutAShortFormIsLookedForOnce() throws {
        let (requests, found) = try Self.discover(["1E9B1A5C-55A3-4F52-8A54-0CD1B8A7B1F0"])
        #expect(requests.count == 1)
        #expect(found.isEmpty)
    }

    @Test("A service that a discovery finds twice is listed once", arguments: [true, false])
    func serviceThatIsFoundTwiceIsListedOnce(isFirst: Bool) {
        let fixture = CentralFixture()
        let peripheral = fixture.connectedPeripheral()
        if !isFirst { _ = fixture.discover(peripheral) }
        let type = CBUUID(string: "180D")
        peripheral.discoverServices([type, type])
        let (type16, service) = ("180D" as BluetoothUUID, CentralFixture.service)
        fixture.answer(.discoverServices([type16, type16]), .success([service, service]))
        #expect(peripheral.services?.count == 1)
    }
}

@Suite("Refusals of one form of a service's type")
struct RefusedServiceTypeTests {
    /// A response with one service, in the handles from 0x0010 to the last one.
    private static let found: [UInt8] = [0x07, 0x10, 0x00, 0xFF, 0xFF]

    private static func error(_ code: ATTErrorCode) -> [UInt8] { [0x01, 0x06, 0x01, 0x00, code.rawValue] }

    /// Discovers the services of type 180F.
    ///
    /// - Parameters:
    ///   - short: the server's answers to requests for the 16-bit form.
    ///   - long: its answer to the first request for the 128-bit form.
    /// - Returns: the outcome, and the number of requests.
    private static func discover(
        short: [UInt8]...,
        long: [UInt8]
    ) -> (outcome: Result<[DiscoveredService], ClientError>?, requestCount: Int) {
        var procedure = DiscoverServicesInAnyWidth(uuid: "180F")
        var answers = short
        var requestCount = 0
        var buffer = PacketBuffer()
        var opcode = procedure.advance(mtu: 23, into: &buffer)
        while opcode != nil, requestCount < 10 {
            requestCount += 1
            // The opcode, two handles and the type precede the UUID.
            let isShort = buffer.bytes.byteCount == 7 + 2
            let answer = isShort && !answers.isEmpty ? answers.removeFirst() : long
            buffer.reset()
            if let error = try? ErrorResponse(decoding: answer.rawSpan) {
                opcode = procedure.advance(by: error, mtu: 23, into: &buffer)
            } else {
                opcode = procedure.advance(by: answer.rawSpan, mtu: 23, into: &buffer)
            }
        }
        return (procedure.outcome, requestCount)
    }

    private static func failure(_ code: ATTErrorCode) -> ClientError {
        .attribute(code, handle: 0x0001, request: .findByTypeValueRequest)
    }

    @Test(arguments: [ATTErrorCode.unlikelyError, .invalidPDU, .requestNotSupported])
    func longFormIsTriedIfTheShortFormIsRefused(code: ATTErrorCode) throws {
        let (outcome, requestCount) = Self.discover(short: Self.error(code), long: Self.found)
        #expect(try outcome?.get().map(\.handle) == [0x0010])
        #expect(requestCount == 2)
    }

    /// The last answer is malformed.
    @Test(arguments: [[0x01, 0x06, 0x01, 0x00, 0x0A], [0x01, 0x06, 0x01, 0x00, 0x06], [0x07]] as [[UInt8]])
    func firstErrorIsReportedIfTheLongFormFindsNothing(answer: [UInt8]) {
        let (outcome, requestCount) = Self.discover(short: Self.error(.unlikelyError), long: answer)
        #expect(throws: Self.failure(.unlikelyError)) { try outcome?.get() }
        #expect(requestCount == 2)
    }

    @Test func refusalOfTheLongFormIsReportedIfTheShortFormFindsNothing() {
        let long = Self.error(.unlikelyError)
        let (outcome, requestCount) = Self.discover(short: Self.error(.attributeNotFound), long: long)
        #expect(throws: Self.failure(.unlikelyError)) { try outcome?.get() }
        #expect(requestCount == 2)
    }

    @Test(arguments: [ATTErrorCode.insufficientEncryption, .databaseOutOfSync])
    func longFormIsNotTriedAfterAnErrorThatDoesNotDependOnTheForm(code: ATTErrorCode) {
        let (outcome, requestCount) = Self.discover(short: Self.error(code), long: Self.found)
        #expect(throws: Self.failure(code)) { try outcome?.get() }
        #expect(requestCount == 1)
    }

    @Test func longFormIsNotTriedAfterServicesWereFound() {
        let first: [UInt8] = [0x07, 0x10, 0x00, 0x1F, 0x00]
        let (outcome, requestCount) = Self.discover(short: first, Self.error(.unlikelyError), long: Self.found)
        #expect(throws: Self.failure(.unlikelyError)) { try outcome?.get() }
        #expect(requestCount == 2)
    }
}
