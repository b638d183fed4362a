import Crypto
import ESPHomeMessages
import NIOCore
import Testing

@testable import ESPHomeProtocol

/// Encrypted sessions of clients whose hello has content.
struct NoiseHelloTests {
    /// The client's side of the handshake.
    private struct Initiator {
        private var state: NoiseSymmetricState
        private let privateKey = Curve25519.KeyAgreement.PrivateKey()

        /// - Parameter prologue: the prologue as the client knows it.
        init(prologue: [UInt8]) {
            state = NoiseSymmetricState(protocolName: "Noise_NNpsk0_25519_ChaChaPoly_SHA256", prologue: prologue)
        }

        mutating func request() -> [UInt8] {
            state.mixKeyAndHash(NoiseVectors.key.bytes)
            let publicKey = Array(privateKey.publicKey.rawRepresentation)
            state.mixHash(publicKey)
            state.mixKey(publicKey)
            return publicKey + state.encryptAndHash([])
        }

        /// Reads the responder's message.
        ///
        /// - Returns: the cipher of the client's messages; nil if the responder does not know the key or the prologue.
        mutating func cipher(after response: [UInt8]) throws -> NoiseCipher? {
            let peerKey = Array(response.prefix(32))
            state.mixHash(peerKey)
            state.mixKey(peerKey)
            let publicKey = try Curve25519.KeyAgreement.PublicKey(rawRepresentation: peerKey)
            let secret = try privateKey.sharedSecretFromKeyAgreement(with: publicKey)
            state.mixKey(secret.withUnsafeBytes { Array($0) })
            return state.decryptAndHash(Array(response.dropFirst(32))) == nil ? nil : state.split().initiator
        }
    }

    private static let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)

    private var session: APISession {
        let server = ServerInformation(name: "test", address: 0xAABB_CCDD_EE01, version: "1")
        return APISession(server: server, key: NoiseVectors.key, now: Self.start)
    }

    private func frame(_ content: [UInt8]) -> [UInt8] {
        [1, UInt8(content.count >> 8), UInt8(content.count & 0xFF)] + content
    }

    private func effects(_ session: inout APISession, _ bytes: [UInt8]) -> [APISession.Effect] {
        session.receive(ByteBuffer(bytes: bytes), now: Self.start)
        var effects: [APISession.Effect] = []
        while let effect = session.next() { effects.append(effect) }
        return effects
    }

    /// The prologue as the protocol defines it.
    private func prologue(_ content: [UInt8]) -> [UInt8] {
        Array("NoiseAPIInit".utf8) + [UInt8(content.count >> 8), UInt8(content.count & 0xFF)] + content
    }

    @Test(arguments: [0, 1, 300, FrameLimits.maximumLength])
    func contentOfTheHelloIsPartOfTheHandshake(length: Int) throws {
        let content = [UInt8](repeating: 7, count: length)
        var session = session
        var initiator = Initiator(prologue: prologue(content))
        let answers = effects(&session, frame(content) + frame([0] + initiator.request()))
        try #require(answers.count == 2)
        guard case .write(let bytes) = answers[1] else {
            Issue.record("\(answers[1])")
            return
        }
        // A frame begins with three bytes, and the message of the handshake with one for its status.
        let found = try initiator.cipher(after: Array(bytes.readableBytesView.dropFirst(4)))
        var cipher = try #require(found)
        let hello = Array(cipher.encrypt([0, 1, 0, 0]))
        #expect(effects(&session, frame(hello)).count == 1)
        #expect(session.isReady)
    }

    @Test func helloThatWasChangedOnTheWayEndsTheSession() throws {
        var session = session
        var initiator = Initiator(prologue: prologue([1]))
        let answers = effects(&session, frame([2]) + frame([0] + initiator.request()))
        #expect(answers.last == .close(.protocolError(.wrongKey)))
    }

    @Test func contentBeyondTheLimitOfFramesEndsTheSession() {
        var session = session
        let length = FrameLimits.maximumLength + 1
        let answers = effects(&session, [1, UInt8(length >> 8), UInt8(length & 0xFF)])
        #expect(answers.last == .close(.protocolError(.oversizedFrame(length))))
    }
}
