import BLECryptography

/// The encrypted content of an advertisement, with what is needed to decrypt it: AES-CCM with a tag of 4 bytes.
struct SealedContent {
    /// 11 to 13 bytes.
    var nonce: [UInt8]
    /// The formats use none or one byte.
    var additionalData: [UInt8]
    var ciphertext: [UInt8]
    /// 4 bytes.
    var tag: [UInt8]

    /// Returns the plaintext if the key and the tag match, or else nil.
    func open(with key: BindKey) -> [UInt8]? {
        AESCCM(key: key.bytes, tagLength: 4)?.open(ciphertext, tag: tag, nonce: nonce, additionalData: additionalData)
    }
}
