/// The Swift names of the specification's names.
enum SwiftName {
    /// The name of a packet's type: `LE Read Buffer Size [v2]` becomes `LEReadBufferSizeV2`.
    static func type(_ name: String) -> String {
        name.replacing("[v", with: "V").filter(isWord)
    }

    /// The name of an event's case: `LE PHY Update Complete` becomes `lePHYUpdateComplete`.
    static func enumerationCase(_ name: String) -> String {
        lowercasingFirst(of: name.replacing("[v", with: "V").split(separator: " ").map { $0.filter(isWord) })
    }

    /// The name of a property: `LE_Scan_Type` becomes `leScanType`.
    static func property(_ name: String) -> String {
        lowercasingFirst(of: name.split(separator: "_").map { String($0) })
    }

    /// A literal: `0x0C03`.
    static func hexadecimal(_ value: UInt16, digits: Int) -> String { "0x" + plainHexadecimal(value, digits: digits) }

    /// Hexadecimal digits: `0C03`.
    static func plainHexadecimal(_ value: UInt16, digits: Int) -> String {
        let text = String(value, radix: 16, uppercase: true)
        return String(repeating: "0", count: max(0, digits - text.count)) + text
    }

    private static func lowercasingFirst(of words: [String]) -> String {
        (words.first?.lowercased() ?? "") + words.dropFirst().joined()
    }

    private static func isWord(_ character: Character) -> Bool {
        character.isASCII && (character.isLetter || character.isNumber)
    }
}
