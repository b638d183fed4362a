import Crypto
import Foundation

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

    mutating func encrypt(_ plaintext: [UInt8], authenticating data: [UInt8] = []) -> Data {
        // Neither fails: the nonce has the right length.
        let nonce = try! ChaChaPoly.Nonce(data: nextNonce())
        let box = try! ChaChaPoly.seal(plaintext, using: key, nonce: nonce, authenticating: data)
        // Without the nonce, which precedes them: the ciphertext and the tag.
        return box.combined.dropFirst(Self.nonceLength)
    }

    /// Decrypts a packet; nil if it is not the next one or was changed.
    mutating func decrypt(_ ciphertext: [UInt8], authenticating data: [UInt8] = []) -> Data? {
        guard ciphertext.count >= Self.tagLength else { return nil }
        // A box that is made of its three parts copies them twice, and the nonce byte by byte.
        var combined = nextNonce(reserving: ciphertext.count)
        combined.append(contentsOf: ciphertext)
        let box = try? ChaChaPoly.SealedBox(combined: combined)
        return box.flatMap { try? ChaChaPoly.open($0, using: key, authenticating: data) }
    }

    /// 32 bits of zeros and the counter, least significant byte first.
    ///
    /// - Parameter count: the number of bytes that the caller will append.
    private mutating func nextNonce(reserving count: Int = 0) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.nonceLength + count)
        for _ in 0..<4 { bytes.append(0) }
        for index in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: counter >> UInt64(8 * index))) }
        counter += 1
        return bytes
    }
}
