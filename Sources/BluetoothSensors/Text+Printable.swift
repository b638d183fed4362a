import BLEByteCoding

/// Decodes UTF-8 that a device sent. Invalid bytes are replaced. Control characters, line separators and invisible
/// format characters, such as those that change the direction of writing, are removed: they could forge lines of a log.
func printableText(_ bytes: RawSpan) -> String {
    let text = String(decoding: [UInt8](copying: bytes), as: UTF8.self)
    var result = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: continue
        default: result.append(scalar)
        }
    }
    return String(result)
}
