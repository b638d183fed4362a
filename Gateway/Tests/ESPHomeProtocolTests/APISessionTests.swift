import ESPHomeMessages
import NIOCore
import Testing

@testable import ESPHomeProtocol

struct APISessionTests {
    private static let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)
    private static let server = ServerInformation(name: "test", address: 0xAABB_CCDD_EE01, version: "1")

    private func session(_ key: NoiseKey? = nil) -> APISession {
        APISession(server: Self.server, key: key, now: Self.start)
    }

    private func effects(_ session: inout APISession, _ bytes: [UInt8]) -> [APISession.Effect] {
        session.receive(ByteBuffer(bytes: bytes), now: Self.start)
        return remaining(&session)
    }

    private func remaining(_ session: inout APISession) -> [APISession.Effect] {
        var effects: [APISession.Effect] = []
        while let effect = session.next() { effects.append(effect) }
        return effects
    }

    private func frame(_ message: Message) -> [UInt8] {
        var buffer = ByteBuffer()
        PlaintextFraming().encode(message, into: &buffer)
        return Array(buffer.readableBytesView)
    }

    /// The frame of a Hello from "me".
    private let hello: [UInt8] = [0, 4, 1, 10, 2, 0x6D, 0x65]

    private func encrypted(_ content: [UInt8]) -> [UInt8] {
        [1, UInt8(content.count >> 8), UInt8(content.count & 0xFF)] + content
    }

    private func write(_ bytes: [UInt8]) -> APISession.Effect { .write(ByteBuffer(bytes: bytes)) }

    /// Returns the messages of the effects, which are frames without encryption.
    private func messages(_ effects: [APISession.Effect]) throws -> [Message] {
        var messages: [Message] = []
        for case .write(var buffer) in effects {
            while let message = try PlaintextFraming().decode(from: &buffer) { messages.append(message) }
        }
        return messages
    }

    // MARK: Without encryption

    @Test func helloIsAnswered() throws {
        var session = session()
        let answers = try messages(effects(&session, hello))
        #expect(answers.map(\.type) == [.helloResponse])
        let response = try answers[0].decode(as: ESPHomeHelloResponse.self)
        #expect(response.name == "test")
        #expect(response.apiVersionMajor == 1)
        #expect(session.clientInformation == "me")
        #expect(session.isReady)
    }

    @Test(
        arguments: [
            (0, 0, false), (1, 10, false), (1, 11, false), (1, 12, true), (2, 0, true),
        ] as [(UInt32, UInt32, Bool)]
    )
    func versionOfTheClientIsKept(major: UInt32, minor: UInt32, hasShortUUIDs: Bool) {
        var session = session()
        var request = ESPHomeHelloRequest()
        request.apiVersionMajor = major
        request.apiVersionMinor = minor
        _ = effects(&session, frame(Message(.helloRequest, request)))
        #expect(session.clientVersion == APIVersion(major: major, minor: minor))
        #expect(session.clientVersion.hasShortUUIDs == hasShortUUIDs)
    }

    @Test(
        arguments: [
            ("me", "me"),
            ("Zürich 🏠", "Zürich 🏠"),
            ("\u{1B}[31mred", "\\u{1B}[31mred"),
            ("a\nb\u{9B}2J", "a\\u{A}b\\u{9B}2J"),
            ("a\u{202E}b\u{2066}", "a\\u{202E}b\\u{2066}"),
            ("\\u{1B}", "\\\\u{1B}"),
            (String(repeating: "x", count: 500), String(repeating: "x", count: 127) + "…"),
            // One character of many scalars.
            ("e" + String(repeating: "\u{301}", count: 500), "e" + String(repeating: "\u{301}", count: 126) + "…"),
        ]
    )
    func clientInformationIsPrintable(text: String, expected: String) {
        var session = session()
        var request = ESPHomeHelloRequest()
        request.clientInfo = text
        _ = effects(&session, frame(Message(.helloRequest, request)))
        #expect(Array(session.clientInformation.unicodeScalars) == Array(expected.unicodeScalars))
    }

    @Test func bytesThatArriveOneByOneAreHandled() throws {
        var session = session()
        var answers: [APISession.Effect] = []
        for byte in hello + [0, 0, 7] { answers += effects(&session, [byte]) }
        #expect(try messages(answers).map(\.type) == [.helloResponse, .pingResponse])
    }

    @Test func requestsOfOnePacketAreAnsweredInOrder() throws {
        var session = session()
        let bytes = hello + [0, 0, 3] + [0, 0, 9] + [0, 0, 11] + [0, 0, 20] + [0, 0, 7]
        let answers = try messages(effects(&session, bytes))
        let types: [MessageType] = [
            .helloResponse, .authenticationResponse, .deviceInfoResponse, .listEntitiesDoneResponse, .pingResponse,
        ]
        #expect(answers.map(\.type) == types)
        #expect(try answers[1].decode(as: ESPHomeAuthenticationResponse.self).invalidPassword == false)
        let device = try answers[2].decode(as: ESPHomeDeviceInfoResponse.self)
        #expect(device.macAddress == "AA:BB:CC:DD:EE:01")
        #expect(device.bluetoothProxyFeatureFlags == 0xFF)
        #expect(!device.apiEncryptionSupported)
    }

    @Test func requestBeforeHelloEndsTheSession() {
        var session = session()
        #expect(effects(&session, [0, 0, 9]) == [.close(.protocolError(.requestBeforeHello(.deviceInfoRequest)))])
        #expect(effects(&session, hello).isEmpty)
    }

    @Test func disconnectIsAnswered() {
        var session = session()
        _ = effects(&session, hello)
        #expect(effects(&session, [0, 0, 5]) == [write([0, 0, 6]), .close(.clientDisconnected)])
    }

    @Test func unknownMessageIsIgnored() {
        var session = session()
        _ = effects(&session, hello)
        #expect(effects(&session, [0, 1, 0xC8, 0x01, 5]).isEmpty)
        #expect(session.ignoredMessageCount == 1)
    }

    @Test func encryptedClientIsRefused() {
        var session = session()
        let answer = [0x00] + Array("Bad indicator byte".utf8)
        #expect(effects(&session, [1, 0, 0]) == [write(answer), .close(.clientWithEncryption)])
    }

    @Test func payloadThatIsNoMessageEndsTheSession() {
        var session = session()
        _ = effects(&session, hello)
        #expect(effects(&session, [0, 1, 73, 0xFF]) == [.close(.protocolError(.undecodableMessage(.readRequest)))])
    }

    @Test func handleOfMoreThan16BitsEndsTheSession() {
        var session = session()
        _ = effects(&session, hello)
        let request = [0, 4, 73, 16, 0x80, 0x80, 0x04] as [UInt8]
        #expect(effects(&session, request) == [.close(.protocolError(.undecodableMessage(.readRequest)))])
    }

    // MARK: Requests

    @Test(
        arguments: [
            (.deviceRequest, [8, 5, 16, 5, 24, 1, 32, 1], .connect(5, isRandom: true, usesCache: false)),
            (.deviceRequest, [8, 5, 16, 4, 24, 1], .connect(5, isRandom: false, usesCache: true)),
            (.deviceRequest, [8, 5], .connect(5, isRandom: nil, usesCache: false)),
            (.deviceRequest, [8, 5, 16, 1], .disconnect(5)),
            (.deviceRequest, [8, 5, 16, 2], .pair(5)),
            (.deviceRequest, [8, 5, 16, 3], .unpair(5)),
            (.deviceRequest, [8, 5, 16, 6], .clearCache(5)),
            (.subscribeAdvertisementsRequest, [8, 1], .subscribeAdvertisements),
            (.unsubscribeAdvertisementsRequest, [], .unsubscribeAdvertisements),
            (.subscribeConnectionsFreeRequest, [], .subscribeConnectionsFree),
            (.scannerSetModeRequest, [8, 1], .setScannerMode(isActive: true)),
            (.scannerSetModeRequest, [], .setScannerMode(isActive: false)),
            (.getServicesRequest, [8, 5], .getServices(5)),
            (.readRequest, [8, 5, 16, 3], .read(5, handle: 3, isDescriptor: false)),
            (.readDescriptorRequest, [8, 5, 16, 3], .read(5, handle: 3, isDescriptor: true)),
            (
                .writeRequest, [8, 5, 16, 3, 24, 1, 34, 1, 9],
                .write(5, handle: 3, [9], withResponse: true, isDescriptor: false)
            ),
            (.writeRequest, [8, 5, 16, 3], .write(5, handle: 3, [], withResponse: false, isDescriptor: false)),
            (
                .writeDescriptorRequest, [8, 5, 16, 3, 26, 2, 1, 0],
                .write(5, handle: 3, [1, 0], withResponse: true, isDescriptor: true)
            ),
            (.notifyRequest, [8, 5, 16, 3, 24, 1], .notify(5, handle: 3, isEnabled: true)),
            (
                .setConnectionParametersRequest, [8, 5, 16, 6, 24, 7, 32, 0, 40, 100],
                .setConnectionParameters(
                    5,
                    RequestedConnectionParameters(minimumInterval: 6, maximumInterval: 7, latency: 0, timeout: 100)
                )
            ),
        ] as [(MessageType, [UInt8], BluetoothRequest)]
    )
    func requestIsDecoded(type: MessageType, payload: [UInt8], request: BluetoothRequest) {
        var session = session()
        _ = effects(&session, hello)
        let bytes = frame(Message(type, payload: ByteBuffer(bytes: payload)))
        #expect(effects(&session, bytes) == [.request(request)])
    }

    // MARK: With encryption

    @Test func handshakeIsAnswered() throws {
        var session = session(NoiseVectors.key)
        let serverHello = encrypted([1] + Array("test".utf8) + [0] + Array("aabbccddee01".utf8) + [0])
        #expect(effects(&session, [1, 0, 0]) == [write(serverHello)])
        let answers = effects(&session, encrypted([0] + NoiseVectors.request))
        #expect(answers.count == 1)
        guard case .write(let bytes)? = answers.first else {
            Issue.record("\(answers)")
            return
        }
        #expect(Array(bytes.readableBytesView.prefix(4)) == [1, 0, 49, 0])
        #expect(bytes.readableBytes == 52)
        #expect(!session.isReady)
    }

    @Test func clientWithAnotherKeyIsToldSo() {
        var session = session(NoiseKey(bytes: [UInt8](repeating: 1, count: 32)))
        let answers = effects(&session, [1, 0, 0] + encrypted([0] + NoiseVectors.request))
        let rejection = encrypted([1] + Array("Handshake MAC failure".utf8))
        #expect(Array(answers.dropFirst()) == [write(rejection), .close(.protocolError(.wrongKey))])
    }

    @Test func clientWithoutEncryptionIsToldSo() {
        var session = session(NoiseVectors.key)
        let rejection = encrypted([1] + Array("Bad indicator byte".utf8))
        #expect(effects(&session, hello) == [write(rejection), .close(.clientWithoutEncryption)])
    }

    @Test(
        arguments: [
            [1, 0, 0, 1, 0, 0],
            [1, 0, 0, 1, 0, 1, 1],
            [1, 0, 0, 1, 0, 2, 0, 0],
            [1, 0, 0, 0],
            [1, 0x80, 0x01],
            [2, 0, 0],
        ] as [[UInt8]]
    )
    func malformedHandshakeEndsTheSession(bytes: [UInt8]) throws {
        var session = session(NoiseVectors.key)
        let last = try #require(effects(&session, bytes).last)
        guard case .close(.protocolError) = last else {
            Issue.record("\(last)")
            return
        }
        #expect(session.deadline == nil)
    }

    @Test func frameThatCannotBeDecryptedEndsTheSession() {
        var session = session(NoiseVectors.key)
        _ = effects(&session, [1, 0, 0] + encrypted([0] + NoiseVectors.request))
        let garbage = encrypted([UInt8](repeating: 7, count: 20))
        #expect(effects(&session, garbage) == [.close(.protocolError(.failedDecryption))])
    }

    @Test(arguments: [0, 1, 2, 3, 4] as [UInt64])
    func randomBytesEndTheSession(seed: UInt64) {
        var generator = SplitMix(state: seed)
        for key in [nil, NoiseVectors.key] {
            for _ in 0..<200 {
                var session = session(key)
                let bytes = (0..<64).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
                for byte in bytes { _ = effects(&session, [byte]) }
                // Whatever was received, time ends a session that has not greeted.
                session.advance(to: Self.start + .seconds(10))
                _ = remaining(&session)
                #expect(session.deadline == nil || session.isReady)
            }
        }
    }

    // MARK: Memory

    /// Each read ends within a frame, so the buffer is never empty.
    @Test func bufferOfReceivedBytesDoesNotGrow() {
        var session = session()
        _ = effects(&session, hello)
        let frame = frame(Message(MessageType(rawValue: 200), payload: ByteBuffer(repeating: 0, count: 1000)))
        _ = effects(&session, Array(frame.prefix(500)))
        for _ in 0..<1000 {
            #expect(effects(&session, Array(frame.dropFirst(500) + frame.prefix(500))).isEmpty)
        }
        #expect(session.ignoredMessageCount == 1000)
        #expect(session.receivedCapacity <= 8192)
        _ = effects(&session, Array(frame.dropFirst(500)))
        #expect(session.receivedCapacity == 0)
    }

    @Test func framesWaitWhileTheyAreNotHandled() throws {
        var session = session()
        session.receive(ByteBuffer(bytes: hello), now: Self.start)
        #expect(session.next(.nothing) == nil)
        session.advance(to: Self.start + .seconds(10))
        #expect(session.next(.nothing) == .close(.handshakeTimedOut))
    }

    // MARK: Time

    @Test func handshakeHasATimeLimit() {
        var session = session(NoiseVectors.key)
        #expect(session.deadline == Self.start + .seconds(10))
        session.advance(to: Self.start + .seconds(9))
        #expect(remaining(&session).isEmpty)
        session.advance(to: Self.start + .seconds(10))
        #expect(remaining(&session) == [.close(.handshakeTimedOut)])
    }

    @Test func silentClientIsPingedAndThenDisconnected() {
        var session = session()
        _ = effects(&session, hello)
        #expect(session.deadline == Self.start + .seconds(60))
        session.advance(to: Self.start + .seconds(60))
        #expect(remaining(&session) == [write([0, 0, 7])])
        #expect(session.deadline == Self.start + .seconds(150))
        session.advance(to: Self.start + .seconds(150))
        #expect(remaining(&session) == [.close(.unresponsive)])
    }

    @Test func answerToPingKeepsTheSession() {
        var session = session()
        _ = effects(&session, hello)
        session.advance(to: Self.start + .seconds(60))
        _ = remaining(&session)
        session.receive(ByteBuffer(bytes: [0, 0, 8]), now: Self.start + .seconds(61))
        #expect(remaining(&session).isEmpty)
        #expect(session.deadline == Self.start + .seconds(121))
    }

    @Test func excusedSilenceDoesNotCount() {
        var session = session()
        _ = effects(&session, hello)
        session.advance(to: Self.start + .seconds(60))
        _ = remaining(&session)
        session.excuseSilence(until: Self.start + .seconds(150))
        session.advance(to: Self.start + .seconds(150))
        #expect(remaining(&session).isEmpty)
        #expect(session.deadline == Self.start + .seconds(210))
    }

    @Test func serverAsksTheClientToDisconnect() {
        var session = session()
        _ = effects(&session, hello)
        session.end(.serverStopped)
        #expect(remaining(&session) == [write([0, 0, 5]), .close(.serverStopped)])
    }

    @Test func payloadThatIsTooLongIsNotSent() {
        var session = session()
        var buffer = ByteBuffer()
        let payload = ByteBuffer(repeating: 0, count: FrameLimits.maximumSentPayload + 1)
        #expect(!session.frame(Message(.readResponse, payload: payload), into: &buffer))
        #expect(buffer.readableBytes == 0)
    }
}

/// A generator of the same numbers in each run.
struct SplitMix {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var number = state
        number = (number ^ number >> 30) &* 0xBF58_476D_1CE4_E5B9
        number = (number ^ number >> 27) &* 0x94D0_49BB_1331_11EB
        return number ^ number >> 31
    }
}
