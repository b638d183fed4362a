import BLEProfiles

/// A probability typed by the user: a number from 0 to 1.
struct Probability: Hashable, Sendable {
    let value: Double

    init(argument text: String) throws(ArgumentProblem) {
        let isPlain = text.allSatisfy { $0.isASCII && ($0.isNumber || $0 == ".") }
        guard isPlain, let value = Double(text), value <= 1 else {
            throw ArgumentProblem("\"\(terminalSafe(text))\" is not a probability: use a number from 0 to 1, as in 0.1")
        }
        self.value = value
    }
}
