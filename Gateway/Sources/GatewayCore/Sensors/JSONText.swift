/// Text of JSON (RFC 8259).
package enum JSONText {
    /// An object of one line. The values are JSON.
    package static func object(_ fields: [(String, String)]) -> String {
        var result = "{"
        for (index, field) in fields.enumerated() {
            if index > 0 { result += ", " }
            append(field.0, to: &result)
            result += ": "
            result += field.1
        }
        result += "}"
        return result
    }

    /// A string. Control characters, also those of terminals, are escaped.
    package static func string(_ text: String) -> String {
        var result = ""
        append(text, to: &result)
        return result
    }

    private static func append(_ text: String, to result: inout String) {
        result += "\""
        defer { result += "\"" }
        // Almost all texts are of ASCII without such characters.
        if text.utf8.allSatisfy({ (0x20..<0x7F).contains($0) && $0 != 0x22 && $0 != 0x5C }) {
            result += text
            return
        }
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
    }

    /// Returns a JSON number: without a fraction if it is whole, `null` if it is not finite.
    package static func number(_ number: Double) -> String {
        guard number.isFinite else { return "null" }
        return Int64(exactly: number).map { "\($0)" } ?? "\(number)"
    }
}
