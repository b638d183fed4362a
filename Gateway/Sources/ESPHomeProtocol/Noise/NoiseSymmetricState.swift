import Crypto

/// The hash, the chaining key and the cipher of a Noise handshake with SHA-256 and ChaCha20-Poly1305 (The Noise
/// Protocol Framework, revision 34, 5.2).
struct NoiseSymmetricState {
    private var hash: [UInt8]
    private var chainingKey: [UInt8]
    private var cipher: NoiseCipher?

    /// - Parameter protocolName: a name of more than 32 bytes.
    init(protocolName: String, prologue: [UInt8]) {
        hash = Array(SHA256.hash(data: Array(protocolName.utf8)))
        chainingKey = hash
        mixHash(prologue)
    }

    mutating func mixHash(_ bytes: [UInt8]) {
        hash = Array(SHA256.hash(data: hash + bytes))
    }

    mutating func mixKey(_ material: [UInt8]) {
        let (chainingKey, key, _) = Self.derive(chainingKey, material)
        self.chainingKey = chainingKey
        cipher = NoiseCipher(key: key)
    }

    mutating func mixKeyAndHash(_ material: [UInt8]) {
        let (chainingKey, hashed, key) = Self.derive(chainingKey, material)
        self.chainingKey = chainingKey
        mixHash(hashed)
        cipher = NoiseCipher(key: key)
    }

    /// Encrypts `plaintext` with the hash as associated data. A key must have been mixed before.
    mutating func encryptAndHash(_ plaintext: [UInt8]) -> [UInt8] {
        let ciphertext = Array(cipher!.encrypt(plaintext, authenticating: hash))
        mixHash(ciphertext)
        return ciphertext
    }

    /// Decrypts `ciphertext` with the hash as associated data; nil if it was not encrypted with this key.
    mutating func decryptAndHash(_ ciphertext: [UInt8]) -> [UInt8]? {
        guard let plaintext = cipher?.decrypt(ciphertext, authenticating: hash) else { return nil }
        mixHash(ciphertext)
        return Array(plaintext)
    }

    /// Returns the ciphers of the session: the initiator's, and the responder's.
    func split() -> (initiator: NoiseCipher, responder: NoiseCipher) {
        let (first, second, _) = Self.derive(chainingKey, [])
        return (NoiseCipher(key: first), NoiseCipher(key: second))
    }

    /// HKDF with three outputs (4.3).
    private static func derive(_ chainingKey: [UInt8], _ material: [UInt8]) -> ([UInt8], [UInt8], [UInt8]) {
        func authenticate(_ bytes: [UInt8], _ key: [UInt8]) -> [UInt8] {
            Array(HMAC<SHA256>.authenticationCode(for: bytes, using: SymmetricKey(data: key)))
        }
        let temporary = authenticate(material, chainingKey)
        let first = authenticate([1], temporary)
        let second = authenticate(first + [2], temporary)
        return (first, second, authenticate(second + [3], temporary))
    }
}
