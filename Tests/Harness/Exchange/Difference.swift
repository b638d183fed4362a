/// A difference from the expected packets or output.
struct Difference: Error {
    let message: String
    /// Lines with details: the expected and the received packet, and the position of the difference.
    var details: [String] = []

    init(_ message: String, details: [String] = []) {
        self.message = message
        self.details = details
    }

    /// Creates the difference between an expected and a received packet.
    ///
    /// - Parameters:
    ///   - expected: the kind in words, and the pattern.
    ///   - got: the whole packet in words, and the bytes that were compared with the pattern, if any.
    init(expected: (words: String, pattern: Pattern), got: (words: String, octets: [UInt8]?)) {
        message = "the packet differs"
        details = ["expected  \(expected.words) \(expected.pattern.description)", "got       \(got.words)"]
        guard let octets = got.octets, let offset = expected.pattern.difference(to: octets) else { return }
        let hexadecimal = Description.hexadecimal(octets)
        if let range = got.words.firstOffset(of: hexadecimal), !octets.isEmpty {
            let column = 10 + range + 3 * min(offset, octets.count - 1) + (offset >= octets.count ? 3 : 0)
            details.append(String(repeating: " ", count: column) + "^^ byte \(offset)")
        } else {
            details.append("          they differ at byte \(offset)")
        }
    }
}

extension String {
    /// The number of characters before the first occurrence of another text.
    fileprivate func firstOffset(of text: String) -> Int? {
        let (whole, part) = (Array(self), Array(text))
        guard part.count <= whole.count else { return nil }
        return (0...(whole.count - part.count)).first { whole[$0...].starts(with: part) }
    }
}
