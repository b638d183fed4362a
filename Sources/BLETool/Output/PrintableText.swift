import BLEProfiles
import BluetoothTypes

/// A value as hexadecimal digits, followed by the text that it spells, if it does.
func readable(_ value: [UInt8], greatestCount: Int = .max) -> String {
    guard !value.isEmpty else { return "(empty)" }
    guard value.count <= greatestCount else {
        return "\(Array(value.prefix(greatestCount)).hexadecimal)… (\(value.count) bytes)"
    }
    guard let text = String(validating: value, as: UTF8.self), text.unicodeScalars.allSatisfy(isPrintable) else {
        return value.hexadecimal
    }
    return "\(value.hexadecimal) \"\(text)\""
}

extension Character {
    /// The number of terminal columns that the character occupies.
    var columns: Int {
        guard let scalar = unicodeScalars.first else { return 0 }
        if scalar.properties.isEmojiPresentation { return 2 }
        return switch scalar.value {
        case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
            0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x20000...0x3FFFD:
            2
        default: 1
        }
    }
}

extension String {
    /// The number of terminal columns that the text occupies.
    var columns: Int { reduce(0) { $0 + $1.columns } }

    /// Returns the text, cut to a number of columns, with an ellipsis if text is missing.
    func fitted(to width: Int) -> String {
        guard columns > width else { return self }
        var text = ""
        var used = 1
        for character in self {
            used += character.columns
            guard used <= width else { break }
            text.append(character)
        }
        return width > 0 ? text + "…" : ""
    }

    /// The text with spaces up to a number of columns.
    func padded(to width: Int) -> String { self + String(repeating: " ", count: max(0, width - columns)) }
}
