/// The value of one hexadecimal digit in either case, or nil.
package func hexadecimalValue(of character: UInt8) -> UInt8? {
    switch character {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
    default: nil
    }
}

/// The hexadecimal digits of a number, the most significant first.
///
/// - Parameter count: the least number of digits; shorter numbers begin with zeros.
package func hexadecimalDigits(
    _ value: some FixedWidthInteger & UnsignedInteger,
    count: Int,
    uppercase: Bool = true
) -> String {
    let digits = String(value, radix: 16, uppercase: uppercase)
    return String(repeating: "0", count: max(0, count - digits.utf8.count)) + digits
}

extension Array where Element == UInt8 {
    /// Parses pairs of hexadecimal digits in either case. Returns nil for other text or an odd number of digits.
    public init?(hexadecimal text: some StringProtocol) {
        let characters = text.utf8
        guard characters.count.isMultiple(of: 2) else { return nil }
        self.init()
        reserveCapacity(characters.count / 2)
        var high: UInt8?
        for character in characters {
            guard let digit = hexadecimalValue(of: character) else { return nil }
            if let first = high {
                append(first << 4 | digit)
                high = nil
            } else {
                high = digit
            }
        }
    }

    /// The bytes as lower-case hexadecimal digits without separators.
    public var hexadecimal: String {
        var text = ""
        text.reserveCapacity(count * 2)
        for byte in self {
            text.unicodeScalars.append(hexadecimalDigit(byte >> 4))
            text.unicodeScalars.append(hexadecimalDigit(byte & 0x0F))
        }
        return text
    }
}

private func hexadecimalDigit(_ value: UInt8) -> Unicode.Scalar {
    Unicode.Scalar(value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10)
}
