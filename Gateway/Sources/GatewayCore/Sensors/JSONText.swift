/// Text of JSON (RFC 8259).
package enum JSONText {
    /// An object of one line. The values are JSON.
    package static func object(_ fields: [(String, String)]) -> String {
        "{" + fields.map { "\(string($0)): \($1)" }.joined(separator: ", ") + "}"
    }

    /// A string. Control characters, also those of terminals, are escaped.
    package static func string(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case "\u{0}"..."\u{1F}", "\u{7F}"..."\u{9F}", "\u{2028}", "\u{2029}", "\u{202A}"..."\u{202E}",
                "\u{2066}"..."\u{2069}":
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }

    /// A number; whole numbers have no fraction, and what is no number is null.
    package static func number(_ number: Double) -> String {
        guard number.isFinite else { return "null" }
        return Int64(exactly: number).map { "\($0)" } ?? "\(number)"
    }
}
