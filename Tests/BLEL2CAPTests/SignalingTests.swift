import BLEByteCoding
import BLEL2CAP
import BluetoothTypes
import Testing

private func receive(
    _ payload: [UInt8],
    on channel: inout SignalingChannel
) -> (action: SignalingChannel.Action, sent: [UInt8]) {
    var buffer = PacketBuffer()
    let action = channel.receive(payload.rawSpan, into: &buffer)
    return (action, [UInt8](copying: buffer.bytes))
}

private let start = Instant(nanoseconds: 0)
private let parameters = ConnectionParameterUpdateRequest(intervalMin: 24, intervalMax: 40, latency: 0, timeout: 200)
private let request: [UInt8] = [0x12, 0x01, 0x08, 0x00, 24, 0, 40, 0, 0, 0, 200, 0]

@Suite("LE signaling")
struct SignalingTests {
    @Test("A peripheral's parameter update request is given to the central, and answered with its identifier")
    func parameterUpdateRequestIsGivenToTheCentral() {
        var channel = SignalingChannel(role: .central)
        let (action, sent) = receive(request, on: &channel)
        #expect(action == .parameterUpdateRequested(parameters, identifier: 1))
        #expect(sent.isEmpty)
        #expect(
            PacketBuffer.bytes { channel.answer(.accepted, identifier: 1, into: &$0) } == [
                0x13, 0x01, 0x02, 0x00, 0, 0,
            ]
        )
    }

    @Test(
        "Parameters out of range are rejected without asking the host",
        arguments: [
            [0x12, 7, 8, 0, 5, 0, 40, 0, 0, 0, 200, 0],  // interval below 7.5 ms
            [0x12, 7, 8, 0, 41, 0, 40, 0, 0, 0, 200, 0],  // minimum above maximum
            [0x12, 7, 8, 0, 24, 0, 0x81, 0x0C, 0, 0, 200, 0],  // interval above 4 s
            [0x12, 7, 8, 0, 24, 0, 40, 0, 0xF4, 1, 0x80, 0x0C],  // latency 500
            [0x12, 7, 8, 0, 24, 0, 40, 0, 0, 0, 9, 0],  // timeout below 100 ms
            [0x12, 7, 8, 0, 24, 0, 40, 0, 99, 0, 200, 0],  // timeout within the latency
        ] as [[UInt8]]
    )
    func parametersOutOfRangeAreRejectedWithoutAskingTheHost(payload: [UInt8]) {
        var channel = SignalingChannel(role: .central)
        let (action, sent) = receive(payload, on: &channel)
        #expect(action == .send)
        #expect(sent == [0x13, 7, 2, 0, 1, 0])
    }

    @Test("A central's parameter update request, and any unknown command, is not understood")
    func unexpectedCommandIsNotUnderstood() {
        var peripheral = SignalingChannel(role: .peripheral)
        #expect(receive(request, on: &peripheral).sent == [0x01, 0x01, 0x02, 0x00, 0x00, 0x00])
        var central = SignalingChannel(role: .central)
        #expect(receive([0x7E, 0x33, 0x00, 0x00], on: &central).sent == [0x01, 0x33, 0x02, 0x00, 0x00, 0x00])
        #expect(receive([0x02, 0x04, 0x00, 0x00], on: &central).action == .send)
    }

    @Test("A response without a request is not answered")
    func responseWithoutARequestIsNotAnswered() {
        var channel = SignalingChannel(role: .peripheral)
        for code: UInt8 in [0x01, 0x07, 0x13, 0x15, 0x18, 0x1A] {
            let (action, sent) = receive([code, 0x05, 0x02, 0x00, 0x00, 0x00], on: &channel)
            #expect(action == .none && sent.isEmpty)
        }
    }

    @Test("A command longer than the signaling MTU is rejected with that MTU")
    func commandLongerThanTheSignalingMTUIsRejectedWithThatMTU() {
        var channel = SignalingChannel(role: .central)
        let (action, sent) = receive([0x12, 9, 20, 0] + Array(repeating: 0, count: 20), on: &channel)
        #expect(action == .send)
        #expect(sent == [0x01, 9, 4, 0, 1, 0, 23, 0])
    }

    @Test(
        "A response that is too long, and a long request without an identifier, are discarded",
        arguments: [[0x15, 7], [0x18, 7], [0x01, 7], [0x16, 7], [0x14, 0]] as [[UInt8]]
    )
    func longResponseIsDiscarded(codeAndIdentifier: [UInt8]) {
        var channel = SignalingChannel(role: .central)
        let (action, sent) = receive(codeAndIdentifier + [20, 0] + Array(repeating: 0, count: 20), on: &channel)
        #expect(action == .malformed(.invalidValue(24, field: "signaling length")))
        #expect(sent.isEmpty)
    }

    @Test("Each truncation of a request is malformed and unanswered", arguments: 0..<12)
    func truncatedRequestIsMalformedAndUnanswered(length: Int) {
        var channel = SignalingChannel(role: .central)
        let (action, sent) = receive(Array(request.prefix(length)), on: &channel)
        guard case .malformed = action else {
            Issue.record("\(action) for \(length) bytes")
            return
        }
        #expect(sent.isEmpty)
    }

    @Test("A request with data of a wrong length is rejected; such a response is not answered", arguments: [0, 7, 9])
    func requestWithDataOfAWrongLengthIsRejected(length: Int) {
        var channel = SignalingChannel(role: .central)
        let data = [UInt8](repeating: 0, count: length)
        let (action, sent) = receive([0x12, 5, UInt8(length), 0] + data, on: &channel)
        guard case .rejected = action else {
            Issue.record("\(action)")
            return
        }
        #expect(sent == [0x01, 5, 2, 0, 0, 0])
        #expect(receive([0x13, 5, UInt8(length), 0] + data, on: &channel).sent.isEmpty)
    }

    @Test("A request with a second command behind it is rejected and not executed; such a response is not answered")
    func requestWithASecondCommandIsRejected() {
        var channel = SignalingChannel(role: .central)
        let second: [UInt8] = [0x7E, 0x34, 0, 0]
        let (action, sent) = receive(request + second, on: &channel)
        #expect(action == .rejected(.trailingBytes(count: 4)))
        #expect(sent == [0x01, 1, 2, 0, 0, 0])
        for code: UInt8 in [0x01, 0x07, 0x13, 0x15, 0x16, 0x18, 0x1A] {
            let (action, sent) = receive([code, 5, 2, 0, 0, 0] + second, on: &channel)
            #expect(action == .malformed(.trailingBytes(count: 4)))
            #expect(sent.isEmpty)
        }
        #expect(receive([0x7E, 0, 0, 0, 1], on: &channel).sent.isEmpty, "there is no identifier 0")
    }

    @Test("An identifier of zero is malformed")
    func identifierOfZeroIsMalformed() {
        var channel = SignalingChannel(role: .central)
        #expect(
            receive([0x12, 0] + request.dropFirst(2), on: &channel).action
                == .malformed(.invalidValue(0, field: "signaling identifier"))
        )
    }

    @Test("Our request is matched with its response, and a second one waits for it")
    func ownRequestIsMatchedWithItsResponseAndASecondOneWaits() throws {
        var channel = SignalingChannel(role: .peripheral)
        var buffer = PacketBuffer()
        try channel.requestParameterUpdate(parameters, at: start, into: &buffer)
        #expect([UInt8](copying: buffer.bytes) == request)
        #expect(throws: SignalingChannel.RequestError.requestPending) {
            try channel.requestParameterUpdate(parameters, at: start, into: &buffer)
        }
        #expect(receive([0x13, 0x02, 2, 0, 0, 0], on: &channel).action == .none)
        #expect(receive([0x13, 0x01, 2, 0, 1, 0], on: &channel).action == .parameterUpdateFinished(.rejected))
        buffer.reset()
        try channel.requestParameterUpdate(parameters, at: start, into: &buffer)
        #expect(receive([0x01, 0x02, 2, 0, 0, 0], on: &channel).action == .parameterUpdateFinished(nil))
        #expect(channel.deadline == nil)
    }

    @Test("A request without response ends after thirty seconds")
    func requestWithoutAResponseEndsAfterThirtySeconds() throws {
        var channel = SignalingChannel(role: .peripheral)
        var buffer = PacketBuffer()
        try channel.requestParameterUpdate(parameters, at: start, into: &buffer)
        #expect(channel.advance(to: start + .seconds(29)) == .none)
        #expect(channel.deadline == start + .seconds(30))
        #expect(channel.advance(to: start + .seconds(30)) == .parameterUpdateTimedOut)
    }

    @Test("A central sends no request to itself, and impossible requests are refused")
    func requestOfACentralOrWithInvalidParametersIsRefused() {
        var buffer = PacketBuffer()
        var central = SignalingChannel(role: .central)
        #expect(throws: SignalingChannel.RequestError.onlyPeripheralsRequest) {
            try central.requestParameterUpdate(parameters, at: start, into: &buffer)
        }
        var peripheral = SignalingChannel(role: .peripheral)
        var wrong = parameters
        wrong.timeout = 9
        #expect(throws: SignalingChannel.RequestError.invalidParameters) {
            try peripheral.requestParameterUpdate(wrong, at: start, into: &buffer)
        }
        #expect(buffer.isEmpty)
    }

    @Test("Identifiers run from 1 to 255 and are never zero")
    func identifiersRunFrom1To255AndAreNeverZero() throws {
        var channel = SignalingChannel(role: .peripheral)
        var seen: [UInt8] = []
        for _ in 0..<256 {
            var buffer = PacketBuffer()
            try channel.requestParameterUpdate(parameters, at: start, into: &buffer)
            let identifier = try #require(buffer.bytes[checked: 1])
            seen.append(identifier)
            _ = receive([0x13, identifier, 2, 0, 0, 0], on: &channel)
        }
        #expect(seen == Array(1...255) + [1])
    }
}
