/// The words of a line, without its comment.
struct LineWords {
    private(set) var words: [String] = []

    /// Splits a line at blanks. Quotation marks and parentheses group text with blanks. A comment begins at a # at the
    /// start of a word.
    init(_ line: Substring) throws(Complaint) {
        var word = ""
        var isQuoted = false
        var depth = 0
        for character in line {
            if !isQuoted, depth == 0, character == "#", word.isEmpty { break }
            if !isQuoted, depth == 0, character == " " || character == "\t" {
                if !word.isEmpty { words.append(word) }
                word = ""
                continue
            }
            if character == "\"" { isQuoted.toggle() }
            if !isQuoted, character == "(" { depth += 1 }
            if !isQuoted, character == ")" { depth = max(0, depth - 1) }
            word.append(character)
        }
        guard !isQuoted else { throw Complaint("a quotation mark is not closed") }
        guard depth == 0 else { throw Complaint("a parenthesis is not closed") }
        if !word.isEmpty { words.append(word) }
    }
}

extension Duration {
    /// Reads `2s`, `1.5s` or `300ms`.
    init(parsing text: String) throws(Complaint) {
        let isMilliseconds = text.hasSuffix("ms")
        guard isMilliseconds || text.hasSuffix("s"),
            let number = Double(text.dropLast(isMilliseconds ? 2 : 1)), number > 0, number <= 86_400_000
        else { throw Complaint("\"\(text)\" is no time, such as 2s or 300ms") }
        self = isMilliseconds ? .milliseconds(number) : .seconds(number)
    }
}
