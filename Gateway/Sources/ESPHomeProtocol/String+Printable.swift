extension String {
    /// Returns the text of a peer in a form that is safe in logs and on terminals.
    ///
    /// Control and format characters, among which are terminal escapes and changes of the writing direction, and line
    /// separators are written as `\u{1B}`. A backslash is written twice, so the result is unambiguous.
    ///
    /// - Parameter limit: the greatest number of Unicode scalars of the result; longer texts end with "…".
    public func printable(limit: Int = .max) -> String {
        var result = String.UnicodeScalarView()
        for scalar in unicodeScalars {
            let piece = scalar.isPrintable ? String(scalar) : "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
            let escaped = scalar == "\\" ? "\\\\" : piece
            guard result.count + escaped.unicodeScalars.count < limit else {
                result.append("…")
                break
            }
            result.append(contentsOf: escaped.unicodeScalars)
        }
        return String(result)
    }
}

extension Unicode.Scalar {
    /// Whether the scalar affects only its own place on a terminal.
    public var isPrintable: Bool {
        switch properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned, .privateUse: false
        default: true
        }
    }
}
