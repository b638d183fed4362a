/// What came otherwise than was expected.
struct Difference: Error {
    let message: String
    /// Lines that say more: what was expected, what came, where they differ.
    var details: [String] = []

    init(_ message: String, details: [String] = []) {
        self.message = message
        self.details = details
    }

    /// Something came that is not what was expected.
    ///
    /// - Parameters:
    ///   - expected: words for the kind, and the pattern.
    ///   - got: the whole in words, and the octets that the pattern was compared with, where it was.
    init(expected: (words: String, pattern: Pattern), got: (words: String, octets: [UInt8]?)) {
        message = "something else came"
        details = ["expected  \(expected.words) \(expected.pattern.description)", "got       \(got.words)"]
        guard let octets = got.octets, let offset = expected.pattern.difference(to: octets) else { return }
        let hexadecimal = Description.hexadecimal(octets)
        if let range = got.words.firstOffset(of: hexadecimal), !octets.isEmpty {
            let column = 10 + range + 3 * min(offset, octets.count - 1) + (offset >= octets.count ? 3 : 0)
            details.append(String(repeating: " ", count: column) + "^^ octet \(offset)")
        } else {
            details.append("          they differ at octet \(offset)")
        }
    }
}

extension String {
    /// How many characters stand before the first place of another text in this one.
    fileprivate func firstOffset(of text: String) -> Int? {
        let (whole, part) = (Array(self), Array(text))
        guard part.count <= whole.count else { return nil }
        return (0...(whole.count - part.count)).first { whole[$0...].starts(with: part) }
    }
}
