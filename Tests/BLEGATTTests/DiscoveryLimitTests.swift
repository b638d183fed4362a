import BLEATT
import BLEByteCoding
import BluetoothTypes
import Testing

@testable import BLEGATT

/// A server that claims as many characteristics as there are handles.
private struct EndlessServer {
    /// The characteristics in each response.
    var perResponse: Int
    private(set) var requests = 0

    init(perResponse: Int) {
        self.perResponse = perResponse
    }

    mutating func answer(_ request: [UInt8]) -> [UInt8] {
        requests += 1
        let start = UInt16(request[1]) | UInt16(request[2]) << 8
        switch (request[0], request.suffix(2)) {
        case (0x10, [0x00, 0x28]): return [0x11, 6, 1, 0, 0xFF, 0xFF, 0x0F, 0x18]
        case (0x08, [0x03, 0x28]):
            let handles = (start..<min(start + UInt16(perResponse), 0xFFFE))
            return [0x09, 7]
                + handles.flatMap { handle in
                    [UInt8(handle & 0xFF), UInt8(handle >> 8), 0x02] + bytes(handle + 1) + [0x19, 0x2A]
                }
        case (0x04, _): return [0x05, 1] + bytes(start) + [0x01, 0x29]
        default: return [0x01, request[0]] + bytes(start) + [0x0A]
        }
    }

    private func bytes(_ handle: UInt16) -> [UInt8] { [UInt8(handle & 0xFF), UInt8(handle >> 8)] }
}

@Suite("Limits of discovery")
struct DiscoveryLimitTests {
    private static let tooMany = ClientError.tooManyAttributes(limit: DiscoveryLimits.attributes)

    @Test(
        "A server with 65,534 characteristics ends discovery with an error that names the limit",
        arguments: [(1, 23), (3, 23), (70, 517)]
    )
    func serverWithAllHandlesEndsDiscovery(perResponse: Int, mtu: Int) {
        var server = EndlessServer(perResponse: perResponse)
        let result = outcome(of: DiscoverAll(), mtu: mtu) { server.answer($0) }
        #expect(throws: Self.tooMany) { try result?.get() }
        #expect(result != nil)
        #expect(server.requests <= DiscoveryLimits.attributes / perResponse + 4)
        #expect(
            "\(Self.tooMany)" == "the peer has more than 2000 attributes and discovery was stopped; "
                + "use attributes by their handles, or discover single services"
        )
    }

    @Test("The limit of attributes applies to each procedure that iterates over handles")
    func eachWalkIsBounded() {
        var server = EndlessServer(perResponse: 1)
        #expect(throws: Self.tooMany) {
            try outcome(of: DiscoverCharacteristics(range: .all)) { server.answer($0) }?.get()
        }
        #expect(throws: Self.tooMany) {
            try outcome(of: DiscoverDescriptors(range: .all)) { server.answer($0) }?.get()
        }
        /// Answers with the first requested handle, as an entry of this form.
        func first(_ opcode: UInt8, _ rest: [UInt8], endsGroup: Bool = false) -> ([UInt8]) -> [UInt8] {
            { request in
                let handle = Array(request[1...2])
                return [opcode] + (opcode == 0x07 ? [] : [UInt8(2 + (endsGroup ? 2 : 0) + rest.count)]) + handle
                    + (endsGroup ? handle : []) + rest
            }
        }
        #expect(throws: Self.tooMany) {
            try outcome(of: DiscoverServices(), answer: first(0x11, [0x0F, 0x18], endsGroup: true))?.get()
        }
        #expect(throws: Self.tooMany) {
            try outcome(of: DiscoverServicesByUUID(uuid: "180F"), answer: first(0x07, [], endsGroup: true))?.get()
        }
        #expect(throws: Self.tooMany) {
            try outcome(of: FindIncludedServices(range: .all), answer: first(0x09, [1, 0, 2, 0, 0x0F, 0x18]))?.get()
        }
        #expect(throws: Self.tooMany) { try outcome(of: ReadUsingUUID(uuid: "2A19"), answer: first(0x09, [7]))?.get() }
    }

    @Test("The attributes of all parts of a database count together")
    func allPartsCountTogether() {
        // 1,000 services of one characteristic and one descriptor each: 3,000 attributes.
        let result = outcome(of: DiscoverAll()) { request in
            let start = UInt16(request[1]) | UInt16(request[2]) << 8
            func bytes(_ value: UInt16) -> [UInt8] { [UInt8(value & 0xFF), UInt8(value >> 8)] }
            switch (request[0], request.suffix(2)) {
            case (0x10, [0x00, 0x28]) where start <= 4 * 1000:
                return [0x11, 6] + bytes(start) + bytes(start + 3) + [0x0F, 0x18]
            case (0x08, [0x03, 0x28]) where start % 4 == 1:
                return [0x09, 7] + bytes(start + 1) + [0x02] + bytes(start + 2) + [0x19, 0x2A]
            case (0x04, _): return [0x05, 1] + bytes(start) + [0x01, 0x29]
            default: return [0x01, request[0]] + bytes(start) + [0x0A]
            }
        }
        #expect(throws: Self.tooMany) { try result?.get() }
    }

    @Test("The number of requests is bounded even if each part is below the limit of attributes")
    func requestsAreBounded() {
        var budget = DiscoveryBudget()
        for _ in 0..<DiscoveryLimits.requests { #expect(budget.takeRequest() == nil) }
        #expect(budget.takeRequest() == .tooManyRequests(limit: DiscoveryLimits.requests))
    }

    @Test("A bonded server with too many attributes is not cached, and its client continues to work")
    func validationStopsAtTheLimit() {
        let client = Client()
        client.validate(nil)
        var server = EndlessServer(perResponse: 3)
        var buffer = PacketBuffer()
        var opcode = client.nextRequest(mtu: 23, into: &buffer)
        while opcode != nil {
            let response = server.answer([UInt8](copying: buffer.bytes))
            buffer.reset()
            opcode = client.receive(response.rawSpan, mtu: 23, into: &buffer)
        }
        #expect(client.takeCaches().isEmpty)
        #expect(server.requests < 1000)
        let read = client.perform(ReadLongValue(handle: 3))
        buffer.reset()
        #expect(client.nextRequest(mtu: 23, into: &buffer) == .readRequest)
        buffer.reset()
        #expect(client.receive([0x0B, 7].rawSpan, mtu: 23, into: &buffer) == nil)
        #expect(read.outcome == .success([7]))
    }
}
