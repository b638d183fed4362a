/// A reader of JSON (RFC 8259) that checks the syntax, with bounded depth, and returns the places of values.
///
/// It is strict: strings with control characters, also those of terminals, are malformed. So a value that was read can
/// be written again as it is.
struct JSONScanner {
    enum Kind {
        case string, number, object, array, literal
    }

    /// The greatest depth of nested values.
    static let depthLimit = 8

    let bytes: [UInt8]
    private(set) var position = 0

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Whether nothing but spaces follows.
    mutating func isAtEnd() -> Bool {
        skipSpaces()
        return position == bytes.count
    }

    private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    /// Reads spaces.
    mutating func skipSpaces() {
        while let byte = next, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D { position += 1 }
    }

    /// Reads a byte of the syntax, after spaces.
    ///
    /// - Returns: false, and reads nothing, if another one follows.
    private mutating func take(_ byte: UInt8) -> Bool {
        skipSpaces()
        guard next == byte else { return false }
        position += 1
        return true
    }

    /// Reads an object.
    ///
    /// - Parameter member: reads the value of the member whose key is at these places, without quotes. Returns false if
    ///   the value is malformed.
    /// - Returns: the number of members; nil if the object is malformed.
    mutating func object(_ member: (inout JSONScanner, Range<Int>) -> Bool) -> Int? {
        guard take(0x7B) else { return nil }
        if take(0x7D) { return 0 }
        var count = 0
        repeat {
            guard let key = string(), take(0x3A), member(&self, key) else { return nil }
            count += 1
        } while take(0x2C)
        return take(0x7D) ? count : nil
    }

    /// Reads a string.
    ///
    /// - Returns: the places of its content, with escapes as they are; nil if it is malformed.
    mutating func string() -> Range<Int>? {
        guard take(0x22) else { return nil }
        let start = position
        while let byte = next {
            position += 1
            switch byte {
            case 0x22: return start..<position - 1
            case 0x5C: guard skipEscape() else { return nil }
            case 0..<0x20, 0x7F: return nil
            // Control characters from U+0080 to U+009F.
            case 0xC2: if let following = next, following < 0xA0 { return nil }
            default: break
            }
        }
        return nil
    }

    private mutating func skipEscape() -> Bool {
        guard let byte = next else { return false }
        position += 1
        guard byte == UInt8(ascii: "u") else { return "\"\\/bfnrt".utf8.contains(byte) }
        guard bytes.count - position >= 4 else { return false }
        defer { position += 4 }
        return bytes[position..<position + 4].allSatisfy { Character(Unicode.Scalar($0)).isHexDigit }
    }

    /// Reads a value of any kind.
    ///
    /// - Parameter depth: the number of values around it.
    /// - Returns: its kind and its places; nil if it is malformed or nested too deeply.
    mutating func value(depth: Int = 0) -> (kind: Kind, range: Range<Int>)? {
        skipSpaces()
        let start = position
        guard depth < Self.depthLimit, let byte = next else { return nil }
        let kind: Kind
        switch byte {
        case 0x22:
            guard string() != nil else { return nil }
            kind = .string
        case 0x7B:
            guard object({ scanner, _ in scanner.value(depth: depth + 1) != nil }) != nil else { return nil }
            kind = .object
        case 0x5B:
            guard array(depth: depth) else { return nil }
            kind = .array
        case UInt8(ascii: "t"), UInt8(ascii: "f"), UInt8(ascii: "n"):
            guard literal() else { return nil }
            kind = .literal
        default:
            guard number() else { return nil }
            kind = .number
        }
        return (kind, start..<position)
    }

    private mutating func array(depth: Int) -> Bool {
        guard take(0x5B) else { return false }
        if take(0x5D) { return true }
        repeat {
            guard value(depth: depth + 1) != nil else { return false }
        } while take(0x2C)
        return take(0x5D)
    }

    private mutating func literal() -> Bool {
        for word in ["true", "false", "null"] where bytes[position...].starts(with: word.utf8) {
            position += word.utf8.count
            return true
        }
        return false
    }

    private mutating func number() -> Bool {
        if next == UInt8(ascii: "-") { position += 1 }
        if next == UInt8(ascii: "0") { position += 1 } else { guard digits() else { return false } }
        if next == UInt8(ascii: ".") {
            position += 1
            guard digits() else { return false }
        }
        if next == UInt8(ascii: "e") || next == UInt8(ascii: "E") {
            position += 1
            if next == UInt8(ascii: "+") || next == UInt8(ascii: "-") { position += 1 }
            guard digits() else { return false }
        }
        return true
    }

    private mutating func digits() -> Bool {
        let start = position
        while let byte = next, (0x30...0x39).contains(byte) { position += 1 }
        return position > start
    }

    /// The text at these places.
    func text(_ range: Range<Int>) -> String {
        String(decoding: bytes[range], as: UTF8.self)
    }

    /// Whether the bytes at these places are a text.
    func matches(_ range: Range<Int>, _ text: StaticString) -> Bool {
        text.withUTF8Buffer { bytes[range].elementsEqual($0) }
    }
}
