import Crypto
import CryptoExtras

/// What a controller encrypts with. Numbers are as the specification writes them, the most significant octet first.
enum Cipher {
    /// The security function e: AES-128 of one block (Vol 3, Part H, 2.2.1).
    static func encrypt(key: UInt128, _ plaintext: UInt128) -> UInt128 {
        var block = octets(plaintext)
        // A key and a block of 16 octets are what it takes, so that nothing is thrown.
        try? AES.permute(&block, key: SymmetricKey(data: octets(key)))
        return block.reduce(0) { $0 << 8 | UInt128($1) }
    }

    /// The random address hash function ah (Vol 3, Part H, 2.2.2).
    ///
    /// - Parameter prand: 24 bits.
    /// - Returns: 24 bits.
    static func ah(irk: UInt128, prand: UInt32) -> UInt32 {
        UInt32(truncatingIfNeeded: encrypt(key: irk, UInt128(prand & 0xFF_FFFF))) & 0xFF_FFFF
    }

    private static func octets(_ number: UInt128) -> [UInt8] {
        (0..<16).map { UInt8(truncatingIfNeeded: number >> UInt128(120 - 8 * $0)) }
    }
}
