/// A decimal float of IEEE 11073-20601: a signed mantissa times a power of ten. With the exponent 0, some
/// mantissas are no numbers.
///
/// | type | exponent | mantissa | NaN | NRes | +INFINITY | -INFINITY | reserved |
/// |---|---|---|---|---|---|---|---|
/// | SFLOAT (medfloat16) | 4 bits | 12 bits | 0x7FF | 0x800 | 0x7FE | 0x802 | 0x801 |
/// | FLOAT (medfloat32) | 8 bits | 24 bits | 0x7FFFFF | 0x800000 | 0x7FFFFE | 0x800002 | 0x800001 |
enum MedicalFloat: Hashable {
    case finite(Double)
    /// A value that is no number, with its text.
    case special(String)

    /// Decodes an SFLOAT. `shift` is added to the exponent.
    init(short bits: UInt16, shift: Int = 0) {
        let exponent = Int(Int16(bitPattern: bits) >> 12)
        self.init(mantissa: Int(bits & 0xFFF), width: 12, exponent: exponent, shift: shift)
    }

    /// Decodes a FLOAT. `shift` is added to the exponent.
    init(_ bits: UInt32, shift: Int = 0) {
        let exponent = Int(Int32(bitPattern: bits) >> 24)
        self.init(mantissa: Int(bits & 0xFF_FFFF), width: 24, exponent: exponent, shift: shift)
    }

    private init(mantissa: Int, width: Int, exponent: Int, shift: Int) {
        let half = 1 << (width - 1)
        switch (mantissa, exponent) {
        case (half - 1, 0): self = .special("not a number")
        case (half, 0): self = .special("not at this resolution")
        case (half - 2, 0): self = .special("+infinity")
        case (half + 2, 0): self = .special("-infinity")
        case (half + 1, 0): self = .special("reserved")
        default:
            let signed = mantissa < half ? mantissa : mantissa - 2 * half
            self = .finite(Double("\(signed)e\(exponent + shift)") ?? .nan)
        }
    }
}
