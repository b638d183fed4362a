import BLEJSONText
import BluetoothTypes

/// A buffer for UTF-8 text, which avoids intermediate strings.
package struct TextBuffer: Sendable {
    /// The text written so far.
    package private(set) var bytes: [UInt8] = []

    /// - Parameter capacity: the number of bytes to allocate at once.
    package init(capacity: Int = 0) {
        bytes.reserveCapacity(capacity)
    }

    /// The length of the text, in bytes.
    package var count: Int { bytes.count }

    /// Empties the buffer and keeps its memory.
    package mutating func removeAll() {
        bytes.removeAll(keepingCapacity: true)
    }

    /// Truncates the text to `count` bytes.
    mutating func truncate(to count: Int) {
        bytes.removeLast(bytes.count - count)
    }

    mutating func append(_ text: String) {
        bytes.append(contentsOf: text.utf8)
    }

    /// Appends printable ASCII characters.
    mutating func append(printable text: [UInt8]) {
        bytes.append(contentsOf: text)
    }

    /// Appends one ASCII character.
    package mutating func append(ascii: Unicode.Scalar) {
        bytes.append(UInt8(truncatingIfNeeded: ascii.value))
    }

    mutating func append(_ text: StaticString) {
        text.withUTF8Buffer { unsafe bytes.append(contentsOf: $0) }
    }

    mutating func append(decimal number: Int64, width: Int = 0, padding: Unicode.Scalar = " ") {
        if 0...9 ~= number, width <= 1 { return bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number)) }
        if number < 0 { append(ascii: "-") }
        // The digits are appended from the last to the first, then reversed in place.
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

    /// Appends a number below 100 as two digits.
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

    /// Appends bytes as pairs of lower-case digits.
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

    /// Appends a number of thousandths with as few decimals as possible: 48750 as `48.75`.
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

    /// Appends text from a device. Replaces characters that could control a terminal or hide other text.
    mutating func append(foreign text: String) {
        // Nearly every name is printable ASCII, which is safe.
        guard !text.utf8.allSatisfy({ 0x20...0x7E ~= $0 }) else { return append(text) }
        for scalar in text.unicodeScalars {
            bytes.append(contentsOf: String(scalar.isHarmless ? scalar : "\u{FFFD}").utf8)
        }
    }

    /// Appends a JSON string with its quotation marks.
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
    /// Whether a terminal only displays the character.
    fileprivate var isHarmless: Bool {
        switch properties.generalCategory {
        case .control, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator: false
        // The zero-width joiner joins emoji. Other format characters can hide or reorder text.
        case .format: self == "\u{200D}"
        default: true
        }
    }
}

extension [UInt8] {
    /// Whether the bytes form a text: at least two printable ASCII characters.
    var isSpelling: Bool { count >= 2 && allSatisfy { 0x20...0x7E ~= $0 } }
}
