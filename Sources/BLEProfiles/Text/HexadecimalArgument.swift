import BluetoothTypes

extension Array where Element == UInt8 {
    /// Decodes pairs of hexadecimal digits typed by the user, with or without `0x` before them.
    package init(argument text: String) throws(ArgumentProblem) {
        guard let bytes = [UInt8](hexadecimal: text.hasPrefix("0x") ? text.dropFirst(2) : text[...]) else {
            throw ArgumentProblem([UInt8].problem(of: text))
        }
        self = bytes
    }

    private static func problem(of text: String) -> String {
        let digits = text.hasPrefix("0x") ? text.dropFirst(2) : text[...]
        if let stray = digits.first(where: { !$0.isASCII || !$0.isHexDigit }) {
            return "\"\(terminalSafe(text))\" is not hexadecimal: \"\(terminalSafe(String(stray)))\" is no digit"
        }
        return "\"\(terminalSafe(text))\" has an odd number of hexadecimal digits; a byte takes two"
    }
}
