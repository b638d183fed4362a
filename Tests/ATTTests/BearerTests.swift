import ATT
import BluetoothTypes
import Testing

private let start = Instant(nanoseconds: 0)

@Suite("The bearer")
struct BearerTests {
    private func receive(_ bytes: [UInt8], _ bearer: inout Bearer) -> Bearer.Inbound {
        bearer.receive(bytes.rawSpan)
    }

    @Test("One request is in flight at a time, and only its own response ends it")
    func requests() throws {
        var bearer = Bearer()
        try bearer.requestWillBeSent(.readRequest, at: start)
        #expect(throws: BearerError.requestInFlight) { try bearer.requestWillBeSent(.writeRequest, at: start) }
        #expect(receive([0x13], &bearer) == .violation(.unexpectedResponse(opcode: 0x13)))
        #expect(receive([0x01, 0x12, 3, 0, 2], &bearer) == .violation(.unexpectedResponse(opcode: 0x01)))
        #expect(receive([0x01, 0x0A], &bearer) == .violation(.malformedErrorResponse))
        #expect(receive([0x0B, 1], &bearer) == .response(.readResponse))
        #expect(receive([0x0B, 1], &bearer) == .violation(.unexpectedResponse(opcode: 0x0B)))
        try bearer.requestWillBeSent(.readRequest, at: start)
        #expect(receive([0x01, 0x0A, 3, 0, 2], &bearer) == .response(.errorResponse))
        #expect(bearer.deadline == nil)
    }

    @Test("One request of the peer is served at a time")
    func serving() {
        var bearer = Bearer()
        #expect(receive([0x0A, 3, 0], &bearer) == .request(.readRequest))
        #expect(receive([0x0A, 3, 0], &bearer) == .violation(.requestWhileBusy(opcode: 0x0A)))
        #expect(receive([0x52, 3, 0], &bearer) == .command(.writeCommand))
        bearer.responseWillBeSent()
        #expect(receive([0x0A, 3, 0], &bearer) == .request(.readRequest))
    }

    @Test("Unknown requests are to be refused, unknown commands ignored")
    func unknown() {
        var bearer = Bearer()
        #expect(receive([0x3F], &bearer) == .unsupportedRequest(opcode: 0x3F))
        #expect(receive([0x7F], &bearer) == .ignoredCommand(opcode: 0x7F))
        #expect(receive([0xFF], &bearer) == .ignoredCommand(opcode: 0xFF))
        #expect(receive([], &bearer) == .violation(.emptyPDU))
    }

    @Test("One indication is in flight each way")
    func indications() throws {
        var bearer = Bearer()
        #expect(receive([0x1E], &bearer) == .violation(.unexpectedConfirmation))
        try bearer.indicationWillBeSent(at: start)
        #expect(throws: BearerError.indicationInFlight) { try bearer.indicationWillBeSent(at: start) }
        #expect(receive([0x1E], &bearer) == .confirmation)
        #expect(receive([0x1D, 3, 0], &bearer) == .indication)
        #expect(receive([0x1D, 3, 0], &bearer) == .violation(.indicationWhileBusy))
        bearer.confirmationWillBeSent()
        #expect(receive([0x1D, 3, 0], &bearer) == .indication)
        #expect(receive([0x1B, 3, 0], &bearer) == .notification(.handleValueNotification))
    }

    @Test("After thirty seconds without a response the bearer is dead", arguments: [true, false])
    func timeout(isRequest: Bool) throws {
        var bearer = Bearer()
        if isRequest {
            try bearer.requestWillBeSent(.readRequest, at: start)
        } else {
            try bearer.indicationWillBeSent(at: start)
        }
        #expect(bearer.deadline == start + .seconds(30))
        // It dies once.
        let deaths = [Duration.milliseconds(29_999), .seconds(30), .seconds(31)].map { bearer.advance(to: start + $0) }
        #expect(deaths == [false, true, false])
        #expect(receive([0x0B], &bearer) == .dead)
        #expect(throws: BearerError.dead) { try bearer.requestWillBeSent(.readRequest, at: start) }
        #expect(throws: BearerError.dead) { try bearer.indicationWillBeSent(at: start) }
    }

    @Test(
        "ATT_MTU is the lesser of both, never below 23",
        arguments: [(517, 247, 247), (100, 517, 100), (517, 5, 23), (5, 517, 23)]
    )
    func mtu(offered: Int, peer: UInt16, effective: Int) {
        var bearer = Bearer(offeredMTU: offered)
        #expect(bearer.mtu == 23)
        #expect(bearer.exchangeMTU(peer: peer) == effective && bearer.mtu == effective)
    }

    @Test("PDUs longer than ATT_MTU are dropped, but responses")
    func oversized() throws {
        var bearer = Bearer()
        let long = [UInt8](repeating: 0, count: 23)
        #expect(receive([0x12] + long, &bearer) == .violation(.oversizedPDU(length: 24)))
        #expect(receive([0x1B] + long, &bearer) == .violation(.oversizedPDU(length: 24)))
        try bearer.requestWillBeSent(.readRequest, at: start)
        #expect(receive([0x0B] + long, &bearer) == .response(.readResponse))
    }
}
