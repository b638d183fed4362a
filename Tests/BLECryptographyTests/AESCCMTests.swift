import BLECryptography
import BluetoothTypes
import Testing

@Suite("AES-CCM")
struct AESCCMTests {
    private let key = Array(0xC0...0xCF).map(UInt8.init)

    @Test(
        "Messages agree with the packet vectors 1, 2 and 7 of RFC 3610",
        arguments: [
            (
                "00000003020100a0a1a2a3a4a5", 8, 8...0x1E, 8,
                "588c979a61c663d2f066d0c2c0f989806d5f6b61dac38417e8d12cfdf926e0"
            ),
            (
                "00000004030201a0a1a2a3a4a5", 8, 8...0x1F, 8,
                "72c91a36e135f8cf291ca894085c87e3cc15c439c9e43a3ba091d56e10400916"
            ),
            (
                "00000009080706a0a1a2a3a4a5", 8, 8...0x1E, 10,
                "0135d1b2c95f41d5d1d4fec185d166b8094e999dfed96c048c56602c97acbb7490"
            ),
        ]
    )
    func messagesAgreeWithRFC3610(
        nonce: String,
        headerLength: Int,
        plaintext: ClosedRange<Int>,
        tagLength: Int,
        sealed: String
    ) throws {
        let cipher = try #require(AESCCM(key: key, tagLength: tagLength))
        let nonce = try #require([UInt8](hexadecimal: nonce))
        let header = (0..<headerLength).map(UInt8.init)
        let plaintext = plaintext.map(UInt8.init)
        let expected = try #require([UInt8](hexadecimal: sealed))
        #expect(cipher.seal(plaintext, nonce: nonce, additionalData: header) == expected)
        let ciphertext = Array(expected.dropLast(tagLength))
        let tag = Array(expected.suffix(tagLength))
        #expect(cipher.open(ciphertext, tag: tag, nonce: nonce, additionalData: header) == plaintext)
    }

    @Test("Each changed bit of the message, the tag, the nonce or the additional data is noticed")
    func eachChangedBitIsNoticed() throws {
        let cipher = try #require(AESCCM(key: key, tagLength: 4))
        let nonce = [UInt8](repeating: 7, count: 13)
        let sealed = try #require(
            cipher.seal(Array("Short Mini-Bus and more".utf8), nonce: nonce, additionalData: [0xEA])
        )
        let fields = [Array(sealed.dropLast(4)), Array(sealed.suffix(4)), nonce, [0xEA]]
        for field in fields.indices {
            for bit in 0..<fields[field].count * 8 {
                var changed = fields
                changed[field][bit / 8] ^= 1 << (bit % 8)
                #expect(cipher.open(changed[0], tag: changed[1], nonce: changed[2], additionalData: changed[3]) == nil)
            }
        }
    }

    @Test("Lengths out of range are refused")
    func lengthsOutOfRangeAreRefused() throws {
        #expect(AESCCM(key: Array(key.dropLast()), tagLength: 4) == nil)
        #expect(AESCCM(key: key, tagLength: 5) == nil)
        #expect(AESCCM(key: key, tagLength: 18) == nil)
        let cipher = try #require(AESCCM(key: key, tagLength: 4))
        #expect(cipher.seal([1], nonce: [UInt8](repeating: 0, count: 6)) == nil)
        #expect(cipher.seal([1], nonce: [UInt8](repeating: 0, count: 14)) == nil)
        #expect(cipher.seal([1], nonce: [UInt8](repeating: 0, count: 13), additionalData: key) == nil)
        #expect(cipher.seal([UInt8](repeating: 0, count: 65_536), nonce: [UInt8](repeating: 0, count: 13)) == nil)
        #expect(cipher.open([1], tag: [1, 2, 3], nonce: [UInt8](repeating: 0, count: 13)) == nil)
        #expect(cipher.seal([], nonce: [UInt8](repeating: 0, count: 13))?.count == 4)
    }
}
