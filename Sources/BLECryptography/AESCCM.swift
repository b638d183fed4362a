import BLESMP
import Crypto
import CryptoExtras

/// AES-128 in counter mode with CBC-MAC (RFC 3610), for messages of at most 65,535 bytes.
///
/// It is implemented on the block cipher of swift-crypto, which has no public AES-CCM.
package struct AESCCM {
    private let key: SymmetricKey
    private let tagLength: Int

    /// - Parameters:
    ///   - key: 16 bytes.
    ///   - tagLength: the length of the tag in bytes: 4, 6, 8, 10, 12, 14 or 16.
    /// - Returns: nil for other lengths.
    package init?(key: [UInt8], tagLength: Int) {
        guard key.count == 16, (4...16).contains(tagLength), tagLength % 2 == 0 else { return nil }
        self.key = SymmetricKey(data: key)
        self.tagLength = tagLength
    }

    /// Encrypts a message and appends its tag.
    ///
    /// - Parameters:
    ///   - nonce: 7 to 13 bytes that are never used again with this key.
    ///   - additionalData: at most 14 bytes that the tag authenticates too.
    /// - Returns: nil for other lengths.
    package func seal(_ plaintext: [UInt8], nonce: [UInt8], additionalData: [UInt8] = []) -> [UInt8]? {
        guard hasValidLengths(plaintext.count, nonce, additionalData) else { return nil }
        var result = plaintext
        applyKeyStream(to: &result, nonce)
        return result + tag(of: plaintext, nonce, additionalData)
    }

    /// Verifies and decrypts a message.
    ///
    /// - Parameters:
    ///   - ciphertext: the encrypted message, without its tag.
    ///   - tag: the tag of the message.
    ///   - nonce: the nonce of the encryption.
    ///   - additionalData: the additional data of the encryption.
    /// - Returns: nil if the tag does not match, or for other lengths than those of ``seal(_:nonce:additionalData:)``.
    package func open(
        _ ciphertext: [UInt8],
        tag: [UInt8],
        nonce: [UInt8],
        additionalData: [UInt8] = []
    ) -> [UInt8]? {
        guard tag.count == tagLength, hasValidLengths(ciphertext.count, nonce, additionalData) else { return nil }
        var plaintext = ciphertext
        applyKeyStream(to: &plaintext, nonce)
        let expected = self.tag(of: plaintext, nonce, additionalData)
        // All bytes are compared, so that the time does not depend on the first difference.
        let difference = zip(expected, tag).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) }
        return difference == 0 ? plaintext : nil
    }

    private func hasValidLengths(_ length: Int, _ nonce: [UInt8], _ additionalData: [UInt8]) -> Bool {
        length <= Int(UInt16.max) && (7...13).contains(nonce.count) && additionalData.count <= 14
    }

    /// Encrypts or decrypts in counter mode.
    private func applyKeyStream(to bytes: inout [UInt8], _ nonce: [UInt8]) {
        for (index, start) in stride(from: 0, to: bytes.count, by: 16).enumerated() {
            let stream = encrypted(counterBlock(index + 1, nonce))
            for offset in 0..<min(16, bytes.count - start) { bytes[start + offset] ^= stream[offset] }
        }
    }

    /// The CBC-MAC of the lengths, the additional data and the plaintext, encrypted with the first block of the key
    /// stream.
    private func tag(of plaintext: [UInt8], _ nonce: [UInt8], _ additionalData: [UInt8]) -> [UInt8] {
        let tagFlag = UInt8((tagLength - 2) / 2) << 3
        let dataFlag: UInt8 = additionalData.isEmpty ? 0 : 0x40
        var blocks = [dataFlag | tagFlag | lengthFieldFlag(nonce)] + nonce + lengthField(plaintext.count, nonce)
        if !additionalData.isEmpty {
            blocks += [0, UInt8(additionalData.count)] + additionalData
            pad(&blocks)
        }
        blocks += plaintext
        pad(&blocks)
        var code = [UInt8](repeating: 0, count: 16)
        for start in stride(from: 0, to: blocks.count, by: 16) {
            for offset in 0..<16 { code[offset] ^= blocks[start + offset] }
            code = encrypted(code)
        }
        return zip(code, encrypted(counterBlock(0, nonce))).prefix(tagLength).map { $0 ^ $1 }
    }

    private func lengthFieldFlag(_ nonce: [UInt8]) -> UInt8 { UInt8(14 - nonce.count) }

    private func counterBlock(_ counter: Int, _ nonce: [UInt8]) -> [UInt8] {
        [lengthFieldFlag(nonce)] + nonce + lengthField(counter, nonce)
    }

    /// A number in the bytes that the nonce leaves, the most significant first.
    private func lengthField(_ number: Int, _ nonce: [UInt8]) -> [UInt8] {
        var field: [UInt8] = []
        field.append(mostSignificantFirst: number, count: 15 - nonce.count)
        return field
    }

    private func pad(_ blocks: inout [UInt8]) {
        while blocks.count % 16 != 0 { blocks.append(0) }
    }

    private func encrypted(_ block: [UInt8]) -> [UInt8] {
        var block = block
        // The key and the block have 16 bytes, so this does not throw.
        try? AES.permute(&block, key: key)
        return block
    }
}
