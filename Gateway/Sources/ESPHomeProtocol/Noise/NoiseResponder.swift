import Crypto

/// The responder of a handshake by Noise_NNpsk0_25519_ChaChaPoly_SHA256.
///
/// Both sides prove that they know the pre-shared key, and agree on keys that are used once.
struct NoiseResponder {
    /// The prologue if the client's hello is empty.
    static let prologue: [UInt8] = makePrologue([])
    private static let publicKeyLength = 32

    private let key: NoiseKey
    private let prologue: [UInt8]
    private let ephemeralKey: Curve25519.KeyAgreement.PrivateKey

    /// - Parameters:
    ///   - prologue: what both sides must have in common before the handshake.
    ///   - ephemeralKey: a key that is used once.
    init(
        key: NoiseKey,
        prologue: [UInt8] = NoiseResponder.prologue,
        ephemeralKey: Curve25519.KeyAgreement.PrivateKey = .init()
    ) {
        self.key = key
        self.prologue = prologue
        self.ephemeralKey = ephemeralKey
    }

    /// Returns the prologue after a client's hello: the name of the protocol, the length of the hello's content in 16
    /// bits, and the content. The handshake fails if the content was changed on the way.
    ///
    /// - Parameter content: at most 65,535 bytes.
    static func makePrologue(_ content: [UInt8]) -> [UInt8] {
        let length = UInt16(content.count)
        return Array("NoiseAPIInit".utf8) + [UInt8(length >> 8), UInt8(length & 0xFF)] + content
    }

    /// Answers the initiator's message.
    ///
    /// - Returns: the response, and the ciphers of the session.
    /// - Throws: ``ProtocolError/wrongKey`` if the message was not made with the pre-shared key,
    ///   ``ProtocolError/malformedHandshake(_:)``.
    func respond(
        to message: [UInt8]
    ) throws(ProtocolError) -> (response: [UInt8], decrypting: NoiseCipher, encrypting: NoiseCipher) {
        guard message.count >= Self.publicKeyLength + NoiseCipher.tagLength else {
            throw .malformedHandshake("the message has \(message.count) bytes")
        }
        var state = NoiseSymmetricState(
            protocolName: "Noise_NNpsk0_25519_ChaChaPoly_SHA256",
            prologue: prologue
        )
        // -> psk, e
        state.mixKeyAndHash(key.bytes)
        let peerKey = Array(message.prefix(Self.publicKeyLength))
        state.mixHash(peerKey)
        state.mixKey(peerKey)
        guard state.decryptAndHash(Array(message.dropFirst(Self.publicKeyLength))) != nil else { throw .wrongKey }

        // <- e, ee
        let ownKey = Array(ephemeralKey.publicKey.rawRepresentation)
        state.mixHash(ownKey)
        state.mixKey(ownKey)
        guard
            let publicKey = try? Curve25519.KeyAgreement.PublicKey(rawRepresentation: peerKey),
            let secret = try? ephemeralKey.sharedSecretFromKeyAgreement(with: publicKey)
        else { throw .malformedHandshake("the public key is invalid") }
        state.mixKey(secret.withUnsafeBytes { Array($0) })
        let response = ownKey + state.encryptAndHash([])
        let (initiator, responder) = state.split()
        return (response, initiator, responder)
    }
}
