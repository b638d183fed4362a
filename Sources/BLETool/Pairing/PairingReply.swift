import BLE

/// An answer to a question about a pairing, as it is typed.
///
/// `yes 2`, `no 2` and `passkey 2 012345` name their question. Without a number (`yes`, `no`, `012345`), the answer is
/// for the question that is being asked.
struct PairingReply: Hashable, Sendable {
    /// The number of the question; nil if the answer names none.
    var question: Int?
    var answer: PairingAnswer

    init(question: Int?, answer: PairingAnswer) {
        self.question = question
        self.answer = answer
    }

    /// Reads a line; nil if it is no answer.
    init?(parsing line: String) {
        let words = line.split { $0 == " " || $0 == "\t" || $0 == "\r" }.map { $0.lowercased() }
        switch (words.first, words.count) {
        case ("passkey", 3):
            guard let number = PairingReply.number(words[1]), let passkey = try? Passkey(argument: words[2]) else {
                return nil
            }
            self.init(question: number, answer: .passkey(passkey.value))
        case ("yes", 1...2), ("y", 1...2), ("no", 1...2), ("n", 1...2):
            let number = words.count == 2 ? PairingReply.number(words[1]) : nil
            guard words.count == 1 || number != nil else { return nil }
            self.init(question: number, answer: words[0].hasPrefix("y") ? .accept : .refuse)
        case (let word?, 1):
            guard let passkey = try? Passkey(argument: word) else { return nil }
            self.init(question: nil, answer: .passkey(passkey.value))
        default: return nil
        }
    }

    private static func number(_ word: String) -> Int? {
        guard let number = Int(word), number > 0 else { return nil }
        return number
    }
}

extension PairingQuestion {
    /// Whether an answer is of the kind that the question requires. Each question may be refused.
    func takes(_ answer: PairingAnswer) -> Bool {
        switch (self, answer) {
        case (_, .refuse), (.enterPasskey, .passkey): true
        case (.enterPasskey, _), (_, .passkey): false
        case (_, .accept): true
        }
    }

    /// The form of a valid answer to the question.
    func wantedReply(_ number: Int) -> String {
        switch self {
        case .enterPasskey: "passkey \(number) and six digits, or no \(number)"
        case .consent, .showPasskey, .compare: "yes \(number) or no \(number)"
        }
    }
}
