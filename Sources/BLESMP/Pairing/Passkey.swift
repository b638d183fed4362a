/// A passkey of six digits (Vol 3, Part H, 2.3.5.3 and 2.3.5.6.3).
enum Passkey {
    static let maximum: UInt32 = 999_999
    /// The number of bits that LE Secure Connections verifies, one after the other.
    static let bitCount: UInt8 = 20
}
