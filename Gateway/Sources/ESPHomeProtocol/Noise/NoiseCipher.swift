import Crypto

/// ChaCha20-Poly1305 with a counter as nonce, which encrypts or decrypts the packets of one direction.
struct NoiseCipher {
    /// The number of bytes by which a ciphertext is longer.
    static let tagLength = 16
    private static let nonceLength = 12

    private let key: SymmetricKey
    private var counter: UInt64 = 0

    init(key: [UInt8]) {
        self.key = SymmetricKey(data: key)
    }

    mutating func encrypt(_ plaintext: [UInt8], authenticating data: [UInt8] = []) -> [UInt8] {
        // Sealing fails only for a nonce of another length.
        let box = try! ChaChaPoly.seal(plaintext, using: key, nonce: nextNonce(), authenticating: data)
        // Without the nonce, which precedes them: the ciphertext and the tag, in one copy.
        return Array(box.combined.dropFirst(Self.nonceLength))
    }

    /// Decrypts a packet; nil if it is not the next one or was changed.
    mutating func decrypt(_ ciphertext: [UInt8], authenticating data: [UInt8] = []) -> [UInt8]? {
        guard ciphertext.count >= Self.tagLength else { return nil }
        let end = ciphertext.count - Self.tagLength
        let box = try? ChaChaPoly.SealedBox(
            nonce: nextNonce(),
            ciphertext: ciphertext[..<end],
            tag: ciphertext[end...]
        )
        return box.flatMap { try? Array(ChaChaPoly.open($0, using: key, authenticating: data)) }
    }

    /// 32 bits of zeros and the counter, least significant byte first.
    private mutating func nextNonce() -> ChaChaPoly.Nonce {
        let bytes = [0, 0, 0, 0] + withUnsafeBytes(of: counter.littleEndian) { Array($0) }
        counter += 1
        return try! ChaChaPoly.Nonce(data: bytes)
    }
}
