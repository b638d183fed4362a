import Crypto
import NIOCore

@testable import ESPHomeProtocol

/// The client's side of a session: it makes correct frames, which the target then changes, and reads what the server
/// writes. It fails if it cannot read it.
struct FuzzedClient {
    private enum State {
        case plaintext
        /// Waits for the server's hello.
        case hello
        /// Waits for the server's message of the handshake.
        case handshake
        case encrypted(SessionCiphers)
        /// The server has refused this client, or the client has sent bytes that are no frames.
        case refused
    }

    private static let publicKeyLength = 32

    private var state: State
    private var handshake = NoiseSymmetricState(
        protocolName: "Noise_NNpsk0_25519_ChaChaPoly_SHA256",
        prologue: NoiseResponder.prologue
    )
    private let ephemeralKey = Curve25519.KeyAgreement.PrivateKey()
    private let key: NoiseKey?

    init(key: NoiseKey?) {
        self.key = key
        state = key == nil ? .plaintext : .hello
    }

    /// Whether messages can be sent.
    var isOpen: Bool {
        switch state {
        case .plaintext, .encrypted: true
        case .hello, .handshake, .refused: false
        }
    }

    /// The frames of the hello and of the handshake; nothing without encryption.
    mutating func greeting() -> [UInt8] {
        guard let key else { return [] }
        handshake.mixKeyAndHash(key.bytes)
        let publicKey = Array(ephemeralKey.publicKey.rawRepresentation)
        handshake.mixHash(publicKey)
        handshake.mixKey(publicKey)
        let message = [0] + publicKey + handshake.encryptAndHash([])
        return frame([]) + frame(message)
    }

    /// The frame of a message.
    mutating func frame(_ message: Message) -> [UInt8] {
        if case .encrypted(var ciphers) = state {
            let content = Array(ciphers.encrypt(message))
            state = .encrypted(ciphers)
            return frame(content)
        }
        var buffer = ByteBuffer()
        PlaintextFraming().encode(message, into: &buffer)
        return Array(buffer.readableBytesView)
    }

    private func frame(_ content: [UInt8]) -> [UInt8] {
        var buffer = ByteBuffer()
        EncryptedFraming.encode(content, into: &buffer)
        return Array(buffer.readableBytesView)
    }

    /// Reads the bytes of one write of the server.
    ///
    /// - Returns: the messages.
    mutating func read(_ bytes: ByteBuffer) -> [Message] {
        var bytes = bytes
        var messages: [Message] = []
        while bytes.readableBytes > 0, let message = readFrame(from: &bytes) { messages.append(message) }
        return messages
    }

    private mutating func readFrame(from bytes: inout ByteBuffer) -> Message? {
        switch state {
        case .plaintext:
            if bytes == ByteBuffer(bytes: [0x00] + Array("Bad indicator byte".utf8)) {
                state = .refused
                bytes.clear()
                return nil
            }
            guard let message = try? PlaintextFraming().decode(from: &bytes) else {
                fatalError("the server wrote a frame that cannot be read")
            }
            return message
        case .refused:
            fatalError("the server wrote after it had refused the client")
        case .hello, .handshake, .encrypted:
            guard let content = try? EncryptedFraming.decode(from: &bytes) else {
                fatalError("the server wrote an encrypted frame that cannot be read")
            }
            return take(content)
        }
    }

    private mutating func take(_ content: [UInt8]) -> Message? {
        switch (state, content.first) {
        case (.hello, 0x01), (.handshake, 0x01):
            // The server's hello and its refusal have the same first byte; only the hello ends with an address and 0.
            state = content.last == 0 ? .handshake : .refused
        case (.handshake, 0x00):
            let response = content.dropFirst()
            let peerKey = Array(response.prefix(Self.publicKeyLength))
            handshake.mixHash(peerKey)
            handshake.mixKey(peerKey)
            let publicKey = try? Curve25519.KeyAgreement.PublicKey(rawRepresentation: peerKey)
            let secret = publicKey.flatMap { try? ephemeralKey.sharedSecretFromKeyAgreement(with: $0) }
            guard let secret else { fatalError("the server sent an invalid key") }
            handshake.mixKey(secret.withUnsafeBytes { Array($0) })
            guard handshake.decryptAndHash(Array(response.dropFirst(Self.publicKeyLength))) != nil else {
                // The bytes of the script contained a handshake of their own.
                state = .refused
                return nil
            }
            let (initiator, responder) = handshake.split()
            state = .encrypted(SessionCiphers(decrypting: responder, encrypting: initiator))
        case (.encrypted(var ciphers), _):
            guard let message = try? ciphers.decrypt(content) else {
                fatalError("the server wrote a message that cannot be decrypted")
            }
            state = .encrypted(ciphers)
            return message
        default: fatalError("the server wrote an unexpected frame of \(content.count) bytes")
        }
        return nil
    }
}
