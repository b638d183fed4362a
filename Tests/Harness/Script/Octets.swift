/// Bytes in the notation of scripts: to be sent, or as a pattern for received bytes.
struct Octets: Equatable, Sendable {
    enum Item: Equatable, Sendable {
        /// A byte, of which the bits of the mask are compared.
        case octet(UInt8, mask: UInt8)
        /// The bytes of a definition or an earlier capture.
        case variable(String)
        /// A number of arbitrary bytes, captured under a name.
        case capture(String, count: Int)
        /// All remaining bytes, captured if there is a name.
        case rest(String?)
    }

    var items: [Item] = []

    /// Whether all bytes are fixed, so that they can be sent.
    var isComplete: Bool {
        items.allSatisfy { item in
            switch item {
            case .octet(_, let mask): mask == 0xFF
            case .variable: true
            case .capture, .rest: false
            }
        }
    }
}

extension Octets {
    /// Maximum number of bytes in one repetition.
    private static let longestRepetition = 65_535

    /// Reads words: `02`, `021700`, `4?`, `??`, `00*14`, `*`, `"text"`, `u16(517)`, `address(F0:12:34:56:78:9A)`,
    /// `uuid(180F)`, `$name`, `$name=??*6`, `$name=*`.
    init(parsing words: ArraySlice<String>) throws(Complaint) {
        for (index, word) in zip(words.indices, words) {
            try append(word)
            if case .rest = items.last, index != words.index(before: words.endIndex) {
                throw Complaint("* matches the rest of a packet; nothing can follow it")
            }
        }
    }

    private mutating func append(_ word: String) throws(Complaint) {
        if word == "*" {
            items.append(.rest(nil))
        } else if word.hasPrefix("$") {
            items.append(try Octets.variable(word.dropFirst()))
        } else if word.hasPrefix("\"") {
            guard word.count > 1, word.hasSuffix("\"") else { throw Complaint("\(word) has no closing quotation mark") }
            items += word.dropFirst().dropLast().utf8.map { .octet($0, mask: 0xFF) }
        } else if let parenthesis = word.firstIndex(of: "("), word.hasSuffix(")") {
            let argument = word[word.index(after: parenthesis)...].dropLast()
            items += try Octets.call(word[..<parenthesis], argument).map { .octet($0, mask: 0xFF) }
        } else {
            let parts = word.split(separator: "*", maxSplits: 1, omittingEmptySubsequences: false)
            let pattern = try Octets.digits(parts[0])
            let count = try parts.count > 1 ? Octets.count(parts[1]) : 1
            guard pattern.count * count <= Octets.longestRepetition else { throw Complaint("\(word) is too long") }
            for _ in 0..<count { items += pattern }
        }
    }

    /// `$name`, `$name=??`, `$name=??*6` or `$name=*`, without the `$`.
    private static func variable(_ text: Substring) throws(Complaint) -> Item {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = try parts[0].checkedName
        guard parts.count > 1 else { return .variable(name) }
        if parts[1] == "*" { return .rest(name) }
        let wildcard = try Octets(parsing: [String(parts[1])])
        guard !wildcard.items.isEmpty, wildcard.items.allSatisfy({ $0 == .octet(0, mask: 0) }) else {
            throw Complaint("$\(name)= takes ??, ??*6 or *, not \(parts[1])")
        }
        return .capture(name, count: wildcard.items.count)
    }

    private static func count(_ text: Substring) throws(Complaint) -> Int {
        guard let count = Int(text), (1...longestRepetition).contains(count) else {
            throw Complaint("\"\(text)\" is no number of repetitions; use 1 to \(longestRepetition)")
        }
        return count
    }

    /// Parses pairs of hexadecimal digits, in which ? is any digit.
    private static func digits(_ text: Substring) throws(Complaint) -> [Item] {
        guard !text.isEmpty, text.utf8.count % 2 == 0 else {
            throw Complaint("\"\(text)\" is neither bytes, in pairs of hexadecimal digits, nor a known notation")
        }
        var items: [Item] = []
        var value: UInt8 = 0
        var mask: UInt8 = 0
        for (index, character) in text.enumerated() {
            let digit = character == "?" ? 0 : character.isASCII ? character.hexDigitValue : nil
            guard let digit else {
                throw Complaint(
                    "\"\(text)\" is neither bytes, in pairs of hexadecimal digits, nor a known notation"
                )
            }
            value = value << 4 | UInt8(digit)
            mask = mask << 4 | (character == "?" ? 0 : 0xF)
            if index % 2 == 1 { items.append(.octet(value, mask: mask)) }
        }
        return items
    }

    private static func call(_ name: Substring, _ argument: Substring) throws(Complaint) -> [UInt8] {
        switch name {
        case "u8": try number(argument, octets: 1)
        case "u16": try number(argument, octets: 2)
        case "u24": try number(argument, octets: 3)
        case "u32": try number(argument, octets: 4)
        case "u64": try number(argument, octets: 8)
        case "address": try address(argument)
        case "uuid": try uuid(argument)
        default: throw Complaint("\(name)() is not known; there are u8, u16, u24, u32, u64, address and uuid")
        }
    }

    /// A number, least significant byte first.
    private static func number(_ text: Substring, octets count: Int) throws(Complaint) -> [UInt8] {
        guard let number = UInt64(number: text), count == 8 || number >> UInt64(8 * count) == 0 else {
            throw Complaint("\"\(text)\" is no number of \(8 * count) bits")
        }
        return (0..<count).map { UInt8(truncatingIfNeeded: number >> UInt64(8 * $0)) }
    }

    /// A device address, least significant byte first as HCI sends it.
    static func address(_ text: some StringProtocol) throws(Complaint) -> [UInt8] {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        let octets = parts.compactMap { $0.count == 2 ? UInt8($0, radix: 16) : nil }
        guard parts.count == 6, octets.count == 6 else {
            throw Complaint("\"\(text)\" is no address, such as F0:12:34:56:78:9A")
        }
        return octets.reversed()
    }

    /// A UUID of 16 or 128 bits, least significant byte first.
    private static func uuid(_ text: Substring) throws(Complaint) -> [UInt8] {
        let digits = text.filter { $0 != "-" }
        let items = (try? self.digits(Substring(digits))) ?? []
        let octets = items.compactMap { item -> UInt8? in
            if case .octet(let value, 0xFF) = item { value } else { nil }
        }
        guard octets.count == digits.count / 2, octets.count == 2 || octets.count == 16 else {
            throw Complaint("\"\(text)\" is no UUID of 16 or 128 bits")
        }
        return octets.reversed()
    }
}

extension UInt64 {
    /// Reads a decimal number, or a hexadecimal number after `0x`.
    init?(number text: some StringProtocol) {
        let isHexadecimal = text.hasPrefix("0x")
        let digits = text.dropFirst(isHexadecimal ? 2 : 0)
        guard digits.allSatisfy({ $0.isASCII && $0.isHexDigit }),
            let value = UInt64(String(digits), radix: isHexadecimal ? 16 : 10)
        else { return nil }
        self = value
    }
}

extension Substring {
    /// The name of a variable: letters, digits and underscores.
    var checkedName: String {
        get throws(Complaint) {
            guard let first, first.isLetter, allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") })
            else { throw Complaint("\"\(self)\" is no name: use letters, digits and underscores") }
            return String(self)
        }
    }
}
