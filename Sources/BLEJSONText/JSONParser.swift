/// An error in a JSON text, and its position.
package struct JSONSyntaxError: Error, Equatable, CustomStringConvertible {
    /// Both from 1; the column counts bytes.
    package var line: Int
    package var column: Int
    package var problem: String

    package var description: String { "line \(line), column \(column): \(problem)" }
}

extension JSON {
    /// Reads one JSON text.
    package init(parsing bytes: [UInt8]) throws(JSONSyntaxError) {
        var parser = JSONParser(bytes)
        self = try parser.parseDocument()
    }
}

/// A strict recursive-descent parser of RFC 8259.
private struct JSONParser {
    private static let greatestDepth = 64

    private let bytes: [UInt8]
    private var position = 0
    private var depth = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    mutating func parseDocument() throws(JSONSyntaxError) -> JSON {
        let value = try parseValue()
        skipWhitespace()
        guard position == bytes.count else { throw error("something follows the end of the document") }
        return value
    }

    private mutating func parseValue() throws(JSONSyntaxError) -> JSON {
        skipWhitespace()
        guard let character = next else { throw error("the document ends where a value should be") }
        switch character {
        case UInt8(ascii: "{"): return try nested { (parser) throws(JSONSyntaxError) in try parser.parseObject() }
        case UInt8(ascii: "["): return try nested { (parser) throws(JSONSyntaxError) in try parser.parseArray() }
        case UInt8(ascii: "\""): return .string(try parseString())
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try parseNumber()
        default:
            for (word, value) in [("true", JSON.bool(true)), ("false", .bool(false)), ("null", .null)] {
                if bytes[position...].starts(with: word.utf8) {
                    position += word.utf8.count
                    return value
                }
            }
            throw error("expected a value")
        }
    }

    private mutating func nested(
        _ body: (inout JSONParser) throws(JSONSyntaxError) -> JSON
    ) throws(JSONSyntaxError) -> JSON {
        guard depth < JSONParser.greatestDepth else { throw error("nested too deeply") }
        depth += 1
        defer { depth -= 1 }
        position += 1
        return try body(&self)
    }

    private mutating func parseObject() throws(JSONSyntaxError) -> JSON {
        var members: [JSON.Member] = []
        skipWhitespace()
        if take("}") { return .object([]) }
        while true {
            skipWhitespace()
            guard next == UInt8(ascii: "\"") else { throw error("expected a key in double quotes") }
            let key = try parseString()
            skipWhitespace()
            guard take(":") else { throw error("expected a colon after the key") }
            members.append(JSON.Member(key: key, value: try parseValue()))
            skipWhitespace()
            if take("}") { return .object(members) }
            guard take(",") else { throw error("expected a comma or }") }
        }
    }

    private mutating func parseArray() throws(JSONSyntaxError) -> JSON {
        var elements: [JSON] = []
        skipWhitespace()
        if take("]") { return .array([]) }
        while true {
            elements.append(try parseValue())
            skipWhitespace()
            if take("]") { return .array(elements) }
            guard take(",") else { throw error("expected a comma or ]") }
        }
    }

    private mutating func parseNumber() throws(JSONSyntaxError) -> JSON {
        let start = position
        _ = take("-")
        if !take("0") {
            guard skipDigits() else { throw error("expected a digit") }
        }
        var isWhole = true
        if take(".") {
            isWhole = false
            guard skipDigits() else { throw error("expected a digit after the point") }
        }
        if take("e") || take("E") {
            isWhole = false
            if !take("+") { _ = take("-") }
            guard skipDigits() else { throw error("expected a digit in the exponent") }
        }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        if isWhole, let value = Int(text) { return .integer(value) }
        guard let value = Double(text), value.isFinite else { throw error("the number is too large") }
        return .decimal(value)
    }

    private mutating func parseString() throws(JSONSyntaxError) -> String {
        position += 1
        var text: [UInt8] = []
        while let character = next {
            switch character {
            case UInt8(ascii: "\""):
                guard let string = String(validating: text, as: UTF8.self) else {
                    throw error("the string is not UTF-8")
                }
                position += 1
                return string
            case UInt8(ascii: "\\"): text += Array(String(try parseEscape()).utf8)
            case 0x00..<0x20: throw error("a control character in a string must be escaped")
            default:
                text.append(character)
                position += 1
            }
        }
        throw error("the string has no closing quote")
    }

    private mutating func parseEscape() throws(JSONSyntaxError) -> Unicode.Scalar {
        position += 1
        guard let character = next else { throw error("the string has no closing quote") }
        position += 1
        switch character {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(character)
        case UInt8(ascii: "b"): return "\u{08}"
        case UInt8(ascii: "f"): return "\u{0C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"):
            let first = try parseCodeUnit()
            if let scalar = Unicode.Scalar(first) { return scalar }
            if UTF16.isLeadSurrogate(first), take("\\"), take("u") {
                let second = try parseCodeUnit()
                if UTF16.isTrailSurrogate(second) {
                    let value = 0x10000 + (UInt32(first) - 0xD800) << 10 + (UInt32(second) - 0xDC00)
                    if let scalar = Unicode.Scalar(value) { return scalar }
                }
            }
            throw error("half of a surrogate pair")
        default: throw error("unknown escape")
        }
    }

    private mutating func parseCodeUnit() throws(JSONSyntaxError) -> UInt16 {
        var value: UInt16 = 0
        for _ in 0..<4 {
            guard let digit = next.flatMap({ Character(Unicode.Scalar($0)).hexDigitValue }) else {
                throw error("expected four hexadecimal digits")
            }
            value = value << 4 | UInt16(digit)
            position += 1
        }
        return value
    }

    private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard next == UInt8(ascii: character) else { return false }
        position += 1
        return true
    }

    private mutating func skipWhitespace() {
        while let character = next, [0x20, 0x09, 0x0A, 0x0D].contains(character) { position += 1 }
    }

    /// Returns whether there was at least one digit.
    private mutating func skipDigits() -> Bool {
        let start = position
        while let character = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(character) { position += 1 }
        return position > start
    }

    private func error(_ problem: String) -> JSONSyntaxError {
        let before = bytes[..<min(position, bytes.count)]
        let lineStart = before.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
        return JSONSyntaxError(
            line: 1 + before.count { $0 == UInt8(ascii: "\n") },
            column: 1 + position - lineStart,
            problem: problem
        )
    }
}
