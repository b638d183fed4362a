import ESPHomeMessages
import NIOCore
import Testing

@testable import ESPHomeProtocol

/// Sessions of clients whose requests wait.
struct WaitingMessageTests {
    private static let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)
    private static let server = ServerInformation(name: "test", address: 1, version: "1")
    private static let ping: [UInt8] = [0, 0, 7]
    private static let pong = APISession.Effect.write(ByteBuffer(bytes: [0, 0, 8]))

    /// A session whose client has greeted.
    private func session() -> APISession {
        var session = APISession(server: Self.server, key: nil, now: Self.start)
        receive([0, 0, 1], &session)
        while session.next() != nil {}
        return session
    }

    private func receive(_ bytes: [UInt8], _ session: inout APISession) {
        session.receive(ByteBuffer(bytes: bytes), now: Self.start)
    }

    private func effects(_ session: inout APISession, _ handling: APISession.MessageHandling) -> [APISession.Effect] {
        var effects: [APISession.Effect] = []
        while let effect = session.next(handling) { effects.append(effect) }
        return effects
    }

    /// The frame of a request to read an attribute of device 5.
    private func read(_ handle: UInt8) -> [UInt8] { [0, 4, 73, 8, 5, 16, handle] }

    private func readEffects(_ handles: ClosedRange<UInt8>) -> [APISession.Effect] {
        handles.map { .request(.read(5, handle: UInt16($0), isDescriptor: false)) }
    }

    @Test func pingsOvertakeRequestsThatWait() {
        var session = session()
        receive(read(1) + Self.ping + read(2) + Self.ping, &session)
        #expect(effects(&session, .control) == [Self.pong, Self.pong])
        receive(read(3), &session)
        #expect(effects(&session, .all) == readEffects(1...3))
    }

    @Test func requestsThatWaitAreHandledBeforeARequestToDisconnect() {
        var session = session()
        receive(read(1) + read(2) + [0, 0, 5] + read(3), &session)
        let end: [APISession.Effect] = [.write(ByteBuffer(bytes: [0, 0, 6])), .close(.clientDisconnected)]
        #expect(effects(&session, .control) == readEffects(1...2) + end)
        #expect(effects(&session, .all).isEmpty)
    }

    @Test func responseToARequestThatWaitsIsSentBeforeTheEnd() {
        var session = session()
        // The list of entities, which is empty.
        receive([0, 0, 11, 0, 0, 6], &session)
        let end: [APISession.Effect] = [.write(ByteBuffer(bytes: [0, 0, 19])), .close(.clientDisconnected)]
        #expect(effects(&session, .control) == end)
    }

    @Test func requestsThatWaitAreHandledBeforeTheEndByAViolation() {
        var session = session()
        receive(read(1) + read(2) + [9, 0, 0], &session)
        let effects = effects(&session, .control)
        #expect(Array(effects.prefix(2)) == readEffects(1...2))
        #expect(effects.last == .close(.protocolError(.wrongIndicator(9))))
    }

    @Test func requestsBehindAMalformedOneThatWaitsAreNotHandled() {
        var session = session()
        receive(read(1) + [0, 1, 73, 8] + read(2) + [0, 0, 5], &session)
        let end = APISession.Effect.close(.protocolError(.undecodableMessage(.readRequest)))
        #expect(effects(&session, .control) == readEffects(1...1) + [end])
    }

    @Test func endWaitsWhileNothingIsHandled() {
        var session = session()
        receive(read(1) + read(2) + [0, 0, 5], &session)
        #expect(session.next(.control) == readEffects(1...1)[0])
        #expect(session.next(.nothing) == nil)
        let end: [APISession.Effect] = [.write(ByteBuffer(bytes: [0, 0, 6])), .close(.clientDisconnected)]
        #expect(effects(&session, .all) == readEffects(2...2) + end)
    }

    @Test func numberOfWaitingMessagesIsLimited() {
        var session = session()
        for _ in 0..<WaitingMessages.countLimit {
            #expect(session.hasRoomForWaitingMessages)
            receive(read(1), &session)
            #expect(effects(&session, .control).isEmpty)
        }
        #expect(!session.hasRoomForWaitingMessages)
        // The next ones wait as bytes.
        receive(Self.ping + read(2), &session)
        #expect(effects(&session, .control).isEmpty)
        #expect(session.receivedCapacity > 0)
        let all = effects(&session, .all)
        #expect(all.prefix(WaitingMessages.countLimit).allSatisfy { $0 == readEffects(1...1)[0] })
        #expect(Array(all.dropFirst(WaitingMessages.countLimit)) == [Self.pong] + readEffects(2...2))
        #expect(session.hasRoomForWaitingMessages)
    }

    @Test func sizeOfWaitingMessagesIsLimited() {
        var session = session()
        var request = ESPHomeBluetoothGATTWriteRequest()
        request.address = 5
        request.data = .init(repeating: 1, count: FrameLimits.maximumLength - 100)
        var frame = ByteBuffer()
        PlaintextFraming().encode(Message(.writeRequest, request), into: &frame)
        for _ in 0..<2 {
            #expect(session.hasRoomForWaitingMessages)
            session.receive(frame, now: Self.start)
            #expect(effects(&session, .control).isEmpty)
        }
        #expect(session.hasRoomForWaitingMessages)
        session.receive(frame, now: Self.start)
        #expect(effects(&session, .control).isEmpty)
        #expect(!session.hasRoomForWaitingMessages)
        #expect(effects(&session, .all).count == 3)
    }
}

/// The fields of requests to read an attribute.
struct AttributeFieldTests {
    private func message(_ payload: [UInt8]) -> Message { Message(.readRequest, payload: ByteBuffer(bytes: payload)) }

    private func decoded(_ payload: [UInt8]) -> ESPHomeBluetoothGATTReadRequest? {
        try? message(payload).decode(as: ESPHomeBluetoothGATTReadRequest.self)
    }

    @Test(
        arguments: [
            [], [8, 5], [16, 3], [8, 5, 16, 3], [16, 3, 8, 5], [8, 5, 8, 6, 16, 3, 16, 4], [8, 0x81, 0x80, 0x00],
            [8, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x3F, 16, 0xFF, 0xFF, 0x03], [16, 0x80, 0x80, 0x80, 0x80, 0x10],
            // Another field, a tag of two bytes, and a number of ten bytes.
            [8, 5, 16, 3, 24, 1], [8, 5, 34, 2, 1, 2], [0x88, 0x00, 5],
            [8, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01],
            // Malformed.
            [8], [8, 0x80], [0], [10, 5], [0xFF], [8, 5, 16],
        ] as [[UInt8]]
    )
    func fieldsAreThoseOfProtocolBuffers(payload: [UInt8]) {
        let expected = decoded(payload)
        let found = try? AttributeFields(message(payload))
        #expect(found?.address == expected?.address)
        #expect(found?.handle == expected?.handle)
    }

    @Test func randomFieldsAreThoseOfProtocolBuffers() {
        var generator = SplitMix(state: 1)
        for _ in 0..<5000 {
            let random = generator.next()
            // Mostly tags and small numbers.
            let payload = (0..<Int(random >> 60)).map { _ -> UInt8 in
                let number = generator.next()
                return number & 3 == 0 ? UInt8(truncatingIfNeeded: number >> 8) : [8, 16, 1][Int(number >> 8) % 3]
            }
            let expected = decoded(payload)
            let found = try? AttributeFields(message(payload))
            #expect(found?.address == expected?.address && found?.handle == expected?.handle, "\(payload)")
        }
    }
}
