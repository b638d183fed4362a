import BLEATT
import BluetoothTypes
import Testing

private let start = Instant(nanoseconds: 0)

@Suite("The bearer")
struct BearerTests {
    private func receive(_ bytes: [UInt8], _ bearer: inout Bearer) -> Bearer.Inbound {
        bearer.receive(bytes.rawSpan)
    }

    @Test("One request is in flight at a time, and only its own response ends it")
    func oneRequestIsInFlightAtATime() throws {
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
    func oneRequestOfThePeerIsServedAtATime() {
        var bearer = Bearer()
        #expect(receive([0x0A, 3, 0], &bearer) == .request(.readRequest))
        #expect(receive([0x0A, 3, 0], &bearer) == .violation(.requestWhileBusy(opcode: 0x0A)))
        #expect(receive([0x52, 3, 0], &bearer) == .command(.writeCommand))
        bearer.responseWillBeSent()
        #expect(receive([0x0A, 3, 0], &bearer) == .request(.readRequest))
    }

    @Test("Unknown requests are reported as unsupported, unknown commands are ignored")
    func unknownRequestIsUnsupportedAndUnknownCommandIsIgnored() {
        var bearer = Bearer()
        #expect(receive([0x3F], &bearer) == .unsupportedRequest(opcode: 0x3F))
        #expect(receive([0x7F], &bearer) == .ignoredCommand(opcode: 0x7F))
        #expect(receive([0xFF], &bearer) == .ignoredCommand(opcode: 0xFF))
        #expect(receive([], &bearer) == .violation(.emptyPDU))
    }

    @Test("One indication can be in flight in each direction")
    func oneIndicationIsInFlightInEachDirection() throws {
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
    func bearerIsDeadAfterThirtySecondsWithoutAResponse(isRequest: Bool) throws {
        var bearer = Bearer()
        if isRequest {
            try bearer.requestWillBeSent(.readRequest, at: start)
        } else {
            try bearer.indicationWillBeSent(at: start)
        }
        #expect(bearer.deadline == start + .seconds(30))
        // The death is reported once.
        let deaths = [Duration.milliseconds(29_999), .seconds(30), .seconds(31)].map { bearer.advance(to: start + $0) }
        #expect(deaths == [false, true, false])
        #expect(receive([0x0B], &bearer) == .dead)
        #expect(throws: BearerError.dead) { try bearer.requestWillBeSent(.readRequest, at: start) }
        #expect(throws: BearerError.dead) { try bearer.indicationWillBeSent(at: start) }
    }

    @Test(
        "ATT_MTU is the smaller of both values, never below 23",
        arguments: [(517, 247, 247), (100, 517, 100), (517, 5, 23), (5, 517, 23)]
    )
    func mtuIsTheSmallerOfBothValuesAndNeverBelow23(offered: Int, peer: UInt16, effective: Int) {
        var bearer = Bearer(offeredMTU: offered)
        #expect(bearer.mtu == 23)
        #expect(bearer.exchangeMTU(peer: peer) == effective && bearer.mtu == effective)
    }

    @Test("A client exchanges MTUs again after the server has refused")
    func refusedExchangeIsRepeated() throws {
        var bearer = Bearer()
        for code: UInt8 in [0x05, 0x0F] {
            try bearer.requestWillBeSent(.exchangeMTURequest, at: start)
            #expect(receive([0x01, 0x02, 0, 0, code], &bearer) == .response(.errorResponse))
        }
        try bearer.requestWillBeSent(.exchangeMTURequest, at: start)
        #expect(receive([0x03, 0xF7, 0x00], &bearer) == .response(.exchangeMTUResponse))
        #expect(throws: BearerError.mtuExchanged) { try bearer.requestWillBeSent(.exchangeMTURequest, at: start) }
    }

    @Test("A client exchanges MTUs once")
    func clientExchangesMTUsOnce() throws {
        var bearer = Bearer()
        try bearer.requestWillBeSent(.exchangeMTURequest, at: start)
        #expect(receive([0x03, 0xF7, 0x00], &bearer) == .response(.exchangeMTUResponse))
        #expect(throws: BearerError.mtuExchanged) { try bearer.requestWillBeSent(.exchangeMTURequest, at: start) }
        #expect(bearer.awaitedRequest == nil && bearer.deadline == nil)
        try bearer.requestWillBeSent(.readRequest, at: start)
        #expect(bearer.awaitedRequest == .readRequest)
    }

    @Test(
        "A PDU that is not a request is not sent as one",
        arguments: ATTOpcode.allCases.filter { $0.kind != .request }
    )
    func pduThatIsNoRequestIsNotSentAsOne(opcode: ATTOpcode) {
        var bearer = Bearer()
        #expect(throws: BearerError.notARequest(opcode)) { try bearer.requestWillBeSent(opcode, at: start) }
        #expect(bearer.deadline == nil)
    }

    @Test("The earlier of two deadlines counts, and each transaction ends its own")
    func earlierOfTwoDeadlinesCounts() throws {
        var bearer = Bearer()
        try bearer.indicationWillBeSent(at: start)
        try bearer.requestWillBeSent(.readRequest, at: start + .seconds(5))
        #expect(bearer.deadline == start + .seconds(30))
        #expect(receive([0x1E], &bearer) == .confirmation)
        #expect(bearer.deadline == start + .seconds(35))
        let isOver = bearer.advance(to: start + .seconds(30))
        #expect(!isOver)
        try bearer.indicationWillBeSent(at: start + .seconds(30))
        #expect(receive([0x0B], &bearer) == .response(.readResponse))
        #expect(bearer.deadline == start + .seconds(60))
    }

    @Test(
        "Every request is ended by its own response only",
        arguments: ATTOpcode.allCases.filter { $0.kind == .request }
    )
    func everyRequestEndsWithItsOwnResponseOnly(request: ATTOpcode) throws {
        var bearer = Bearer()
        try bearer.requestWillBeSent(request, at: start)
        for opcode in ATTOpcode.allCases where opcode.kind == .response && opcode != request.response {
            let inbound = receive([opcode.rawValue, request.rawValue ^ 0x02, 0, 0, 1], &bearer)
            #expect(inbound == .violation(.unexpectedResponse(opcode: opcode.rawValue)))
        }
        #expect(receive([request.rawValue + 1], &bearer) == request.response.map { .response($0) })
    }

    @Test("PDUs longer than ATT_MTU: requests are refused, responses accepted, all others dropped")
    func oversizedRequestIsRefusedAndOtherOversizedPDUsAreDropped() throws {
        var bearer = Bearer()
        let long = [UInt8](repeating: 0, count: 23)
        #expect(receive([0x12] + long, &bearer) == .oversizedRequest(opcode: 0x12, length: 24))
        let request = [0x12] + long
        let whileReplyWaits = bearer.receive(request.rawSpan, isReplyUnsent: true)
        #expect(whileReplyWaits == .violation(.requestWhileBusy(opcode: 0x12)), "a refusal is a reply as well")
        #expect(receive([0x52] + long, &bearer) == .violation(.oversizedPDU(length: 24)))
        #expect(receive([0x1D] + long, &bearer) == .violation(.oversizedPDU(length: 24)))
        #expect(receive([0x1B] + long, &bearer) == .violation(.oversizedPDU(length: 24)))
        try bearer.requestWillBeSent(.readRequest, at: start)
        #expect(receive([0x0B] + long, &bearer) == .response(.readResponse))
        #expect(receive([0x12] + long.dropLast(), &bearer) == .request(.writeRequest), "ATT_MTU itself is allowed")
        #expect(receive([0x12] + long, &bearer) == .violation(.requestWhileBusy(opcode: 0x12)))
        bearer.exchangeMTU(peer: 24)
        #expect(receive([0x1B] + long, &bearer) == .notification(.handleValueNotification))
    }
}
