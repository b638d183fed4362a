import BLE
import Glibc
import Profiles
import Synchronization

/// Asks who sits at the terminal, or who reads the lines of JSON, what comes up when devices pair.
///
/// Answers are lines: six digits for a passkey, `yes` or `no` for a comparison.
final class PairingConsole: PairingDelegate {
    /// Whether a pairing is consented to.
    typealias Consent = @Sendable (PairingInquiry) -> Bool

    private struct State {
        var waiting: CheckedContinuation<PairingAnswer, Never>?
        /// Whether a question has been put: an answer may be quicker than who waits for it.
        var isAsking = false
        var early: PairingAnswer?
        /// The input has ended, so that nobody will answer.
        var isOver = false
    }

    private let asJSON: Bool
    private let passkey: Passkey?
    private let consents: Consent
    private let readsInput: Bool
    private let state = Mutex(State())
    private let reading = Mutex(false)

    /// - Parameters:
    ///   - passkey: what to type without asking.
    ///   - readsInput: whether answers are read from standard input, from the first question on; otherwise they are given by
    ///     ``take(_:)``.
    init(asJSON: Bool, passkey: Passkey?, readsInput: Bool, consents: @escaping Consent) {
        self.asJSON = asJSON
        self.passkey = passkey
        self.readsInput = readsInput
        self.consents = consents
    }

    func answer(_ inquiry: PairingInquiry) async -> PairingAnswer {
        state.withLock { state in
            state.isAsking = true
            state.early = nil
        }
        switch inquiry.question {
        case .consent:
            return consents(inquiry) ? .accept : .refuse
        case .showPasskey(let passkey):
            let digits = Passkey(value: passkey).digits
            tell(
                inquiry,
                "passkey",
                ["passkey": .string(digits)],
                "The passkey is \(digits): type it on \(inquiry.peer)."
            )
            return .accept
        case .enterPasskey:
            if let passkey { return .passkey(passkey.value) }
            tell(inquiry, "passkeyWanted", [:], "Type the passkey that \(inquiry.peer) shows:")
        case .compare(let number):
            let digits = Passkey(value: number).digits
            tell(inquiry, "compare", ["number": .string(digits)], "Does \(inquiry.peer) show \(digits)? (yes or no)")
        }
        return await nextAnswer()
    }

    private func tell(_ inquiry: PairingInquiry, _ event: String, _ more: JSON, _ words: String) {
        guard asJSON else {
            try? Output.standard.line(words)
            return
        }
        guard case .object(let members) = more else { return }
        try? Output.standard.json(.object([.event(event)] + .peer(inquiry.peer) + members))
    }

    // MARK: Answers

    /// Takes a line of input; false where it is no answer.
    @discardableResult
    func take(_ line: String) -> Bool {
        let word = line.trimmingPrefix { $0 == " " }.lowercased()
        let answer: PairingAnswer
        if ["yes", "y"].contains(word) {
            answer = .accept
        } else if ["no", "n"].contains(word) {
            answer = .refuse
        } else if let passkey = try? Passkey(argument: word) {
            answer = .passkey(passkey.value)
        } else {
            return false
        }
        let waiting = state.withLock { state -> CheckedContinuation<PairingAnswer, Never>? in
            if state.waiting == nil, state.isAsking { state.early = answer }
            return state.waiting.take()
        }
        waiting?.resume(returning: answer)
        return true
    }

    /// Nobody answers any more.
    func end() {
        let waiting = state.withLock { state in
            state.isOver = true
            return state.waiting.take()
        }
        waiting?.resume(returning: .refuse)
    }

    private func nextAnswer() async -> PairingAnswer {
        readInput()
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let answer = state.withLock { state -> PairingAnswer? in
                    state.isAsking = false
                    if let early = state.early.take() { return early }
                    if state.isOver || Task.isCancelled { return .refuse }
                    state.waiting = continuation
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            state.withLock { $0.waiting.take() }?.resume(returning: .refuse)
        }
    }

    private func readInput() {
        let isFirst = reading.withLock { isReading in
            defer { isReading = true }
            return !isReading
        }
        guard readsInput, isFirst else { return }
        Task.detached { [self] in
            for await line in StandardInput.lines() where !take(line) {
                Output.complain("\"\(terminalSafe(line))\" is no answer: type six digits, yes or no")
            }
            end()
        }
    }
}
