import BluetoothTypes
import JSONText

/// Text in the making: octets of UTF-8, appended without strings in between where that is easy.
public struct TextBuffer: Sendable {
    /// What has been written.
    public private(set) var bytes: [UInt8] = []

    /// - Parameter capacity: octets for which there is room at once.
    public init(capacity: Int = 0) {
        bytes.reserveCapacity(capacity)
    }

    /// In octets.
    public var count: Int { bytes.count }

    /// Empties the buffer and keeps its memory.
    public mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
    }

    /// Takes back what was appended since there were so many octets.
    mutating func truncate(to count: Int) {
        bytes.removeLast(bytes.count - count)
    }

    mutating func append(_ text: String) {
        bytes.append(contentsOf: text.utf8)
    }

    /// Appends printable characters of ASCII.
    mutating func append(printable text: [UInt8]) {
        bytes.append(contentsOf: text)
    }

    /// Appends one character of ASCII.
    public mutating func append(ascii: Unicode.Scalar) {
        bytes.append(UInt8(truncatingIfNeeded: ascii.value))
    }

    mutating func append(_ text: StaticString) {
        text.withUTF8Buffer { unsafe bytes.append(contentsOf: $0) }
    }

    mutating func append(decimal number: Int64, width: Int = 0, padding: Unicode.Scalar = " ") {
        if 0...9 ~= number, width <= 1 { return bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number)) }
        if number < 0 { append(ascii: "-") }
        // The digits come from the last to the first, and are turned round where they stand.
        var first = bytes.count
        var rest = number.magnitude
        repeat {
            bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10))
            rest /= 10
        } while rest > 0
        while bytes.count - first < width { append(ascii: padding) }
        var last = bytes.count - 1
        while first < last {
            bytes.swapAt(first, last)
            first += 1
            last -= 1
        }
    }

    /// A number below 100 as two digits.
    mutating func append(pair number: Int64) {
        bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number / 10))
        bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number % 10))
    }

    mutating func append(hexadecimal number: UInt64, digits: Int) {
        let needed = max(digits, (64 - number.leadingZeroBitCount + 3) / 4, 1)
        for index in (0..<needed).reversed() {
            appendDigit(UInt8(truncatingIfNeeded: number >> UInt64(index * 4)) & 0x0F, isUpper: true)
        }
    }

    /// Pairs of lower-case digits.
    mutating func append(octets: some Sequence<UInt8>) {
        for octet in octets {
            appendDigit(octet >> 4, isUpper: false)
            appendDigit(octet & 0x0F, isUpper: false)
        }
    }

    mutating func append(address: UInt64) {
        for index in (0..<6).reversed() {
            let octet = UInt8(truncatingIfNeeded: address >> UInt64(index * 8))
            appendDigit(octet >> 4, isUpper: true)
            appendDigit(octet & 0x0F, isUpper: true)
            if index > 0 { append(ascii: ":") }
        }
    }

    /// Thousandths with as many digits after the point as are needed: 48750 as `48.75`.
    mutating func append(thousandths number: Int64) {
        if number < 0 { append(ascii: "-") }
        let magnitude = number.magnitude
        append(decimal: Int64(clamping: magnitude / 1000))
        var fraction = magnitude % 1000
        guard fraction > 0 else { return }
        append(ascii: ".")
        var place: UInt64 = 100
        while fraction > 0 {
            bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: fraction / place))
            fraction %= place
            place /= 10
        }
    }

    /// Text of a device: what could steer a terminal or hide what follows is replaced.
    mutating func append(foreign text: String) {
        // Nearly every name is ASCII, of which nothing can hide.
        guard !text.utf8.allSatisfy({ 0x20...0x7E ~= $0 }) else { return append(text) }
        for scalar in text.unicodeScalars {
            bytes.append(contentsOf: String(scalar.isHarmless ? scalar : "\u{FFFD}").utf8)
        }
    }

    /// A string of JSON with its quotation marks.
    mutating func append(json text: String) {
        JSON.write(text, to: &bytes)
    }

    mutating func append(uuid: BluetoothUUID) {
        uuid.forEachCharacter { bytes.append($0) }
    }

    private mutating func appendDigit(_ digit: UInt8, isUpper: Bool) {
        bytes.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: isUpper ? "A" : "a") + digit - 10)
    }
}

extension Unicode.Scalar {
    /// Whether a terminal only shows it.
    fileprivate var isHarmless: Bool {
        switch properties.generalCategory {
        case .control, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator: false
        // The zero-width joiner holds emoji together; other format characters can hide or turn text.
        case .format: self == "\u{200D}"
        default: true
        }
    }
}

extension [UInt8] {
    /// Whether the octets spell a text: at least two characters of printable ASCII.
    var isSpelling: Bool { count >= 2 && allSatisfy { 0x20...0x7E ~= $0 } }
}
