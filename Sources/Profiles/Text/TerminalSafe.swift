/// The text with everything replaced that could steer a terminal or change the direction of what follows.
package func terminalSafe(_ text: String) -> String {
    var safe = String.UnicodeScalarView()
    for scalar in text.unicodeScalars { safe.append(isPrintable(scalar) ? scalar : "\u{FFFD}") }
    return String(safe)
}

/// Whether a scalar only shows itself.
package func isPrintable(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator: false
    // The zero-width joiner holds emoji together; other format characters can hide or turn text.
    case .format: scalar == "\u{200D}"
    default: true
    }
}
