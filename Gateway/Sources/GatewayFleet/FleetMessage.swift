/// A message by which a gateway reports what it received from a tag.
public struct FleetMessage: Hashable, Sendable {
    /// The greatest size of a message, in bytes.
    public static let sizeLimit = 16_384
    /// The greatest number of readings in a message.
    public static let readingLimit = 128
    /// The greatest length of a gateway's name, in bytes.
    public static let nameLimit = 64

    /// The number of a message since the start of a gateway.
    public struct Number: Hashable, Sendable {
        /// The number of the start, which the gateway chose at random.
        public var boot: UInt32
        /// The number of the message. It grows by one.
        public var sequence: UInt64

        /// Creates a number.
        public init(boot: UInt32, sequence: UInt64) {
            self.boot = boot
            self.sequence = sequence
        }

        /// The number of the start, as eight hexadecimal digits.
        var bootDigits: String {
            let digits = String(boot, radix: 16)
            return String(repeating: "0", count: 8 - digits.utf8.count) + digits
        }
    }

    /// The name of the gateway.
    public var gateway: String
    /// The number of the message; nil if the gateway does not number them.
    public var number: Number?
    /// The tag's address, of 48 bits.
    public var address: UInt64
    /// The gateway's time of the reception, in UTC, for example `2026-11-24T16:48:19.375Z`.
    public var time: String
    /// The signal strength in dBm; nil if it is not known.
    public var rssi: Int?
    /// The format of the tag's advertisement.
    public var format: String
    /// The number of the packet, if the format has one.
    public var counter: UInt64?
    /// The readings, as an object of JSON.
    public var readings: String

    /// Creates a message. The texts are written as they are: `time`, `gateway` and `format` need no escapes in JSON.
    public init(
        gateway: String,
        number: Number?,
        address: UInt64,
        time: String,
        rssi: Int?,
        format: String,
        counter: UInt64? = nil,
        readings: String
    ) {
        self.gateway = gateway
        self.number = number
        self.address = address
        self.time = time
        self.rssi = rssi
        self.format = format
        self.counter = counter
        self.readings = readings
    }

    /// Decodes a message. The topic, not the content, says which gateway and which tag it is from.
    ///
    /// - Parameters:
    ///   - gateway: the name of the gateway in the topic.
    ///   - address: the address in the topic.
    ///   - payload: the content, as JSON.
    /// - Throws: ``FleetMessageError`` for the first problem.
    public init(gateway: String, address: UInt64, payload: String) throws(FleetMessageError) {
        guard payload.utf8.count <= Self.sizeLimit else { throw .tooLong(payload.utf8.count) }
        var scanner = JSONScanner(Array(payload.utf8))
        var fields = Fields()
        guard scanner.object({ fields.read(&$0, $1) }) != nil, scanner.isAtEnd() else {
            throw fields.problem ?? .malformed(at: scanner.position)
        }
        guard let time = fields.time, let format = fields.format, let readings = fields.readings else {
            throw .missing(fields.time == nil ? "time" : fields.format == nil ? "format" : "readings")
        }
        guard (fields.boot == nil) == (fields.sequence == nil) else {
            throw .missing(fields.boot == nil ? "boot" : "sequence")
        }
        self.init(
            gateway: gateway,
            number: fields.boot.flatMap { boot in fields.sequence.map { Number(boot: boot, sequence: $0) } },
            address: address,
            time: time,
            rssi: fields.rssi,
            format: format,
            counter: fields.counter,
            readings: readings
        )
    }

    /// Whether a text is the name of a gateway: 1 to 64 letters, digits, hyphens, dots and underscores.
    public static func isName(_ text: some StringProtocol) -> Bool {
        (1...nameLimit).contains(text.utf8.count) && text.utf8.allSatisfy(isIdentifierByte)
    }

    static func isIdentifierByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
            true
        default: false
        }
    }
}

/// The reason why a message is not used.
public enum FleetMessageError: Error, Hashable, CustomStringConvertible {
    /// The message has too many bytes.
    case tooLong(Int)
    /// The message is not JSON, or nested too deeply.
    case malformed(at: Int)
    /// A field is not there.
    case missing(String)
    /// A field has a value that it cannot have, or is there twice.
    case invalid(String)

    public var description: String {
        switch self {
        case .tooLong(let count): "the message has \(count) bytes, more than \(FleetMessage.sizeLimit)"
        case .malformed(let position): "the message is not a JSON object: byte \(position)"
        case .missing(let field): "the message has no \"\(field)\""
        case .invalid(let field): "the field \"\(field)\" of the message is not valid"
        }
    }
}

/// The fields of a message that were read.
private struct Fields {
    var time: String?
    var format: String?
    var readings: String?
    var rssi: Int?
    var counter: UInt64?
    var sequence: UInt64?
    var boot: UInt32?
    var problem: FleetMessageError?

    /// Reads the value of a member.
    mutating func read(_ scanner: inout JSONScanner, _ key: Range<Int>) -> Bool {
        if scanner.matches(key, "time") {
            return set(\.time, "time", text(&scanner, limit: 40) { $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: "+") })
        }
        if scanner.matches(key, "format") { return set(\.format, "format", text(&scanner, limit: 40) { _ in false }) }
        if scanner.matches(key, "readings") { return set(\.readings, "readings", object(&scanner)) }
        if scanner.matches(key, "rssi") { return set(\.rssi, "rssi", number(&scanner, -128...127)) }
        if scanner.matches(key, "counter") { return set(\.counter, "counter", number(&scanner, 0...UInt64.max)) }
        if scanner.matches(key, "sequence") { return set(\.sequence, "sequence", number(&scanner, 0...UInt64.max)) }
        if scanner.matches(key, "boot") {
            let digits = text(&scanner, limit: 8) { _ in false }
            return set(\.boot, "boot", digits.flatMap { $0.utf8.count == 8 ? UInt32($0, radix: 16) : nil })
        }
        return scanner.value(depth: 1) != nil
    }

    private mutating func set<Value>(
        _ field: WritableKeyPath<Fields, Value?>,
        _ name: String,
        _ value: Value?
    ) -> Bool {
        guard let value, self[keyPath: field] == nil else {
            problem = .invalid(name)
            return false
        }
        self[keyPath: field] = value
        return true
    }

    /// A string without escapes, of the characters of identifiers and some others.
    private func text(_ scanner: inout JSONScanner, limit: Int, _ isOther: (UInt8) -> Bool) -> String? {
        guard let range = scanner.string(), (1...limit).contains(range.count) else { return nil }
        guard scanner.bytes[range].allSatisfy({ FleetMessage.isIdentifierByte($0) || isOther($0) }) else { return nil }
        return scanner.text(range)
    }

    private func number<Value: FixedWidthInteger>(_ scanner: inout JSONScanner, _ range: ClosedRange<Value>) -> Value? {
        guard let (kind, place) = scanner.value(depth: 1), kind == .number else { return nil }
        return Value(scanner.text(place)).flatMap { range.contains($0) ? $0 : nil }
    }

    /// The text of an object with a limited number of members, in one line.
    private func object(_ scanner: inout JSONScanner) -> String? {
        scanner.skipSpaces()
        let start = scanner.position
        let count = scanner.object { scanner, _ in scanner.value(depth: 2) != nil }
        guard let count, count <= FleetMessage.readingLimit else { return nil }
        // Control characters are between values only.
        return String(decoding: scanner.bytes[start..<scanner.position].map { max($0, 0x20) }, as: UTF8.self)
    }
}
