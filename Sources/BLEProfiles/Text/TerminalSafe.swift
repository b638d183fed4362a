/// Returns the text with all scalars replaced that could control a terminal or change the direction of the text after
/// them.
package func terminalSafe(_ text: String) -> String {
    var safe = String.UnicodeScalarView()
    for scalar in text.unicodeScalars { safe.append(isPrintable(scalar) ? scalar : "\u{FFFD}") }
    return String(safe)
}

/// Returns whether a scalar has no effect but its own display.
package func isPrintable(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator: false
    // The zero-width joiner holds emoji together; other format characters can hide or turn text.
    case .format: scalar == "\u{200D}"
    default: true
    }
}
