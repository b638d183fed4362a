import BLEProfiles

/// A range typed by the user: a whole number, or two with a hyphen between them, as in 2-10.
struct NumberRange: Hashable, Sendable {
    let value: ClosedRange<Int>

    init(argument text: String) throws(ArgumentProblem) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        let bounds = parts.compactMap { part in part.allSatisfy { $0.isASCII && $0.isNumber } ? Int(part) : nil }
        guard (1...2).contains(parts.count), bounds.count == parts.count, bounds[0] <= bounds[bounds.count - 1] else {
            throw ArgumentProblem(
                "\"\(terminalSafe(text))\" is not a range: use a whole number, or two as in 2-10, the smaller one first"
            )
        }
        value = bounds[0]...bounds[bounds.count - 1]
    }
}
