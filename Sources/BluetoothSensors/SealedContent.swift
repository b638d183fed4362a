import Crypto
import CryptoExtras

/// The encrypted content of an advertisement, with what is needed to decrypt it: AES-CCM with a tag of 4 bytes.
///
/// CCM is implemented here as RFC 3610 defines it, on the block cipher of swift-crypto, because swift-crypto has no
/// public AES-CCM.
struct SealedContent {
    /// 11 to 13 bytes.
    var nonce: [UInt8]
    /// At most 16 bytes here: the formats use none or one byte.
    var additionalData: [UInt8]
    var ciphertext: [UInt8]
    /// 4 bytes.
    var tag: [UInt8]

    /// Returns the plaintext if the key and the tag match, or else nil.
    func open(with key: BindKey) -> [UInt8]? {
        guard (7...13).contains(nonce.count), tag.count == 4, additionalData.count < 15, ciphertext.count < 0x1_0000
        else { return nil }
        let blockKey = SymmetricKey(data: key.bytes)
        guard let (plaintext, keyStream) = decrypt(blockKey), let code = authenticate(plaintext, blockKey) else {
            return nil
        }
        var difference: UInt8 = 0
        for index in 0..<4 { difference |= code[index] ^ keyStream[index] ^ tag[index] }
        return difference == 0 ? plaintext : nil
    }

    /// Decrypts in counter mode. Returns the plaintext, and the first block of the key stream, which encrypts the tag.
    private func decrypt(_ key: SymmetricKey) -> (plaintext: [UInt8], first: [UInt8])? {
        var plaintext = ciphertext
        let first = counterBlock(0)
        guard let firstStream = encrypted(first, key) else { return nil }
        var start = 0
        var counter = 1
        while start < plaintext.count {
            guard let stream = encrypted(counterBlock(counter), key) else { return nil }
            for offset in 0..<min(16, plaintext.count - start) { plaintext[start + offset] ^= stream[offset] }
            start += 16
            counter += 1
        }
        return (plaintext, firstStream)
    }

    /// Returns CBC-MAC of the header, the additional data and the plaintext.
    private func authenticate(_ plaintext: [UInt8], _ key: SymmetricKey) -> [UInt8]? {
        var blocks: [UInt8] = [(additionalData.isEmpty ? 0 : 0x40) | 0x08 | lengthFieldFlag] + nonce
        blocks += lengthField(plaintext.count)
        if !additionalData.isEmpty {
            blocks += [0, UInt8(additionalData.count)] + additionalData
            pad(&blocks)
        }
        blocks += plaintext
        pad(&blocks)
        var code = [UInt8](repeating: 0, count: 16)
        for start in stride(from: 0, to: blocks.count, by: 16) {
            for offset in 0..<16 { code[offset] ^= blocks[start + offset] }
            guard let next = encrypted(code, key) else { return nil }
            code = next
        }
        return code
    }

    private var lengthFieldFlag: UInt8 { UInt8(14 - nonce.count) }

    private func counterBlock(_ counter: Int) -> [UInt8] { [lengthFieldFlag] + nonce + lengthField(counter) }

    /// A number below 0x10000 in the bytes that the nonce leaves, most significant first.
    private func lengthField(_ number: Int) -> [UInt8] {
        [UInt8](repeating: 0, count: 13 - nonce.count)
            + [UInt8(truncatingIfNeeded: number >> 8), UInt8(truncatingIfNeeded: number)]
    }

    private func pad(_ blocks: inout [UInt8]) {
        while blocks.count % 16 != 0 { blocks.append(0) }
    }

    private func encrypted(_ block: [UInt8], _ key: SymmetricKey) -> [UInt8]? {
        var block = block
        guard (try? AES.permute(&block, key: key)) != nil else { return nil }
        return block
    }
}
