import BLEATT
import BLEByteCoding
import BluetoothTypes
import Testing

private let start = Instant(nanoseconds: 1_000)
private let requests = ATTOpcode.allCases.filter { $0.kind == .request }

@Suite("The order of PDUs on a bearer")
struct BearerOrderTests {
    private func receive(_ bytes: [UInt8], _ bearer: inout Bearer) -> Bearer.Inbound {
        bearer.receive(bytes.rawSpan)
    }

    @Test("Only a request's own response ends it", arguments: requests)
    func requestEndsWithItsOwnResponseOnly(request: ATTOpcode) throws {
        let response = try #require(request.response)
        var bearer = Bearer()
        try bearer.requestWillBeSent(request, at: start)
        for other in ATTOpcode.allCases where other.kind == .response && other != response && other != .errorResponse {
            #expect(receive([other.rawValue], &bearer) == .violation(.unexpectedResponse(opcode: other.rawValue)))
        }
        #expect(bearer.awaitedRequest == request && bearer.deadline == start + .seconds(30))
        #expect(receive([response.rawValue], &bearer) == .response(response))
        #expect(bearer.awaitedRequest == nil && bearer.deadline == nil)
    }

    @Test("Only an error that names the request ends it", arguments: requests)
    func requestEndsWithAnErrorThatNamesItOnly(request: ATTOpcode) throws {
        var bearer = Bearer()
        try bearer.requestWillBeSent(request, at: start)
        for named in UInt8.min...UInt8.max where named != request.rawValue {
            #expect(receive([0x01, named, 1, 0, 6], &bearer) == .violation(.unexpectedResponse(opcode: 0x01)))
        }
        for length in 1..<5 {
            let cut = Array([0x01, request.rawValue, 1, 0, 6].prefix(length))
            #expect(receive(cut, &bearer) == .violation(.malformedErrorResponse))
        }
        #expect(receive([0x01, request.rawValue, 1, 0, 6, 0], &bearer) == .violation(.malformedErrorResponse))
        #expect(bearer.awaitedRequest == request)
        #expect(receive([0x01, request.rawValue, 1, 0, 6], &bearer) == .response(.errorResponse))
        #expect(bearer.awaitedRequest == nil)
    }

    @Test("A request and an indication can be in flight together, each with its own timer")
    func requestAndIndicationInFlightHaveTheirOwnTimers() throws {
        var bearer = Bearer()
        try bearer.indicationWillBeSent(at: start)
        try bearer.requestWillBeSent(.readRequest, at: start + .seconds(10))
        #expect(bearer.deadline == start + .seconds(30))
        #expect(receive([0x1E], &bearer) == .confirmation)
        #expect(bearer.deadline == start + .seconds(40))
        try bearer.indicationWillBeSent(at: start + .seconds(20))
        #expect(bearer.deadline == start + .seconds(40))
        #expect(receive([0x0B], &bearer) == .response(.readResponse))
        #expect(bearer.deadline == start + .seconds(50))
        let isDead = bearer.advance(to: start + .seconds(49))
        #expect(!isDead && !bearer.isDead)
        let hasDied = bearer.advance(to: start + .seconds(50))
        #expect(hasDied && bearer.isDead && bearer.deadline == nil && bearer.awaitedRequest == nil)
    }

    @Test("A refused transaction does not change the timer of the one in flight")
    func refusedTransactionKeepsTheTimer() throws {
        var bearer = Bearer()
        try bearer.requestWillBeSent(.readRequest, at: start)
        #expect(throws: BearerError.requestInFlight) {
            try bearer.requestWillBeSent(.writeRequest, at: start + .seconds(9))
        }
        #expect(bearer.awaitedRequest == .readRequest && bearer.deadline == start + .seconds(30))
        try bearer.indicationWillBeSent(at: start)
        #expect(throws: BearerError.indicationInFlight) { try bearer.indicationWillBeSent(at: start + .seconds(9)) }
        #expect(receive([0x0B], &bearer) == .response(.readResponse))
        #expect(bearer.deadline == start + .seconds(30))
    }

    @Test("Without a transaction in flight, the bearer never times out")
    func idleBearerNeverTimesOut() {
        var bearer = Bearer()
        let hasDied = bearer.advance(to: Instant(nanoseconds: .max))
        #expect(!hasDied && !bearer.isDead && bearer.deadline == nil)
        #expect(receive([0x0A, 3, 0], &bearer) == .request(.readRequest))
        let hasDiedServing = bearer.advance(to: Instant(nanoseconds: .max))
        #expect(!hasDiedServing, "the peer's request is the peer's to time")
    }

    @Test("A deadline at the end of the clock does not wrap around")
    func deadlineAtTheEndOfTheClockDoesNotWrapAround() throws {
        var bearer = Bearer()
        try bearer.requestWillBeSent(.readRequest, at: Instant(nanoseconds: .max - 1))
        #expect(bearer.deadline == Instant(nanoseconds: .max))
        let hasDied = bearer.advance(to: Instant(nanoseconds: .max - 1))
        #expect(!hasDied)
    }

    @Test("A dead bearer drops every PDU", arguments: ATTOpcode.allCases)
    func deadBearerDropsEveryPDU(opcode: ATTOpcode) throws {
        var bearer = Bearer()
        try bearer.requestWillBeSent(.readRequest, at: start)
        let hasDied = bearer.advance(to: start + .seconds(31))
        #expect(hasDied)
        #expect(receive([opcode.rawValue], &bearer) == .dead)
        #expect(receive([], &bearer) == .dead)
    }

    @Test("An unexpected response does not prevent the peer's request from being served")
    func unexpectedResponseDoesNotBlockRequests() throws {
        var bearer = Bearer()
        try bearer.requestWillBeSent(.readRequest, at: start)
        #expect(receive([0x12, 3, 0, 1], &bearer) == .request(.writeRequest))
        #expect(receive([0x1D, 3, 0, 1], &bearer) == .indication)
        #expect(receive([0x23, 3, 0, 0, 0, 4, 0, 0, 0], &bearer) == .notification(.multipleHandleValueNotification))
        #expect(receive([0x52, 3, 0, 1], &bearer) == .command(.writeCommand))
        #expect(receive([0x13], &bearer) == .violation(.unexpectedResponse(opcode: 0x13)))
        #expect(receive([0x0B], &bearer) == .response(.readResponse))
        #expect(receive([0x0A, 3, 0], &bearer) == .violation(.requestWhileBusy(opcode: 0x0A)))
        bearer.responseWillBeSent()
        #expect(receive([0x0A, 3, 0], &bearer) == .request(.readRequest))
    }

    @Test("Every opcode, with and without parameters, is classified", arguments: UInt8.min...UInt8.max)
    func everyOpcodeIsClassified(value: UInt8) {
        for tail in [0, 1, 22] {
            var bearer = Bearer()
            let inbound = receive([value] + [UInt8](repeating: 0, count: tail), &bearer)
            switch ATTOpcode(rawValue: value)?.kind {
            case .request?: #expect(inbound == ATTOpcode(rawValue: value).map { .request($0) })
            case .response?: #expect(inbound == .violation(.unexpectedResponse(opcode: value)))
            case .command?: #expect(inbound == ATTOpcode(rawValue: value).map { .command($0) })
            case .notification?: #expect(inbound == ATTOpcode(rawValue: value).map { .notification($0) })
            case .indication?: #expect(inbound == .indication)
            case .confirmation?: #expect(inbound == .violation(.unexpectedConfirmation))
            case nil where value & 0x40 != 0: #expect(inbound == .ignoredCommand(opcode: value))
            case nil: #expect(inbound == .unsupportedRequest(opcode: value))
            }
        }
    }

    @Test("After an exchange, PDUs may be as long as ATT_MTU and no longer", arguments: [23, 64, 247, 517])
    func pdusAreLimitedToTheExchangedMTU(mtu: Int) {
        var bearer = Bearer(offeredMTU: mtu)
        #expect(bearer.exchangeMTU(peer: .max) == mtu && bearer.mtu == mtu)
        let tail = [UInt8](repeating: 0, count: mtu - 1)
        #expect(receive([0x1B] + tail, &bearer) == .notification(.handleValueNotification))
        #expect(receive([0x1B, 0] + tail, &bearer) == .violation(.oversizedPDU(length: mtu + 1)))
        #expect(receive([0x12, 0] + tail, &bearer) == .oversizedRequest(opcode: 0x12, length: mtu + 1))
        #expect(receive([0x12] + tail, &bearer) == .request(.writeRequest), "what was refused is not being served")
    }

    @Test("Only an MTU request of this host counts as its exchange")
    func onlyOwnMTURequestCountsAsExchange() throws {
        var bearer = Bearer()
        #expect(receive([0x02, 0xF7, 0x00], &bearer) == .request(.exchangeMTURequest))
        try bearer.requestWillBeSent(.readRequest, at: start)
        #expect(!bearer.hasExchangedMTU)
        #expect(receive([0x0B], &bearer) == .response(.readResponse))
        try bearer.requestWillBeSent(.exchangeMTURequest, at: start)
        #expect(bearer.hasExchangedMTU)
        #expect(receive([0x03, 0xF7, 0x00], &bearer) == .response(.exchangeMTUResponse))
        #expect(bearer.mtu == 23, "the owner decodes the response and says what the peer offers")
    }
}
