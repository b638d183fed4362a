import BLE
import BLEProfiles
import BLESMP
import BluetoothTypes
import Glibc
import Synchronization

/// Asks the questions of pairings. They go to the person at the terminal, or to the program that reads the lines of
/// JSON.
///
/// # Questions
/// Each question has a number and names its peer. One question is asked at a time; those of further pairings wait until
/// it is answered, or until its pairing ends. At most ``queueLimit`` questions wait: a pairing beyond that is refused.
/// A peer waits for 30 seconds, so a pairing may end before its question is asked.
///
/// # Answers
/// An answer names its question (`passkey 2 012345`, `yes 2`, `no 2`) and is taken for no other. An answer without a
/// number is for the question that is being asked; only commands with a single peer accept that.
final class PairingConsole: PairingDelegate {
    /// Whether a pairing is consented to.
    typealias Consent = @Sendable (PairingInquiry) -> Bool

    /// The source of the answers to questions.
    enum Answers: Sendable {
        /// Lines of an input. A line is read only while a question is being asked.
        case lines(InputLines)
        /// Calls of ``take(_:)``.
        case commands
        /// There is none, because the command reads other data from standard input. Questions are refused at once.
        case nowhere
    }

    /// Maximum number of questions that wait while another question is asked.
    static let queueLimit = 8

    private struct Question {
        let number: Int
        let inquiry: PairingInquiry
        let answer: CheckedContinuation<PairingAnswer, Never>
    }

    private struct State {
        /// The first is being asked; the others wait.
        var questions: [Question] = []
        var lastNumber = 0
        /// The passkey of the command line, until a pairing has used it.
        var passkey: Passkey?
        /// Sends a keypress notification; nil if none are sent.
        var reportsKey: (@Sendable (KeypressNotification.Kind, PairingInquiry) async -> Void)?
        /// Whether a task reads answers.
        var isReading = false
        /// Where the next line of the input is read; nil before the first question, and while a task reads.
        var input: InputLines.Iterator?
        /// The input has ended, so no further answer arrives.
        var isOver = false

        mutating func nextNumber() -> Int {
            lastNumber += 1
            return lastNumber
        }

        mutating func remove(_ number: Int) -> Question? {
            guard let index = questions.firstIndex(where: { $0.number == number }) else { return nil }
            return questions.remove(at: index)
        }
    }

    private let asJSON: Bool
    private let consents: Consent
    private let answers: Answers
    private let output: @Sendable (String) -> Void
    private let complain: @Sendable (String) -> Void
    private let hasFixedPasskey: Bool
    private let state: Mutex<State>

    /// - Parameters:
    ///   - passkey: answers the first question for a passkey. It is used for one pairing: each attempt to guess a
    ///     passkey reveals a part of it to the peer (Vol 3, Part H, 2.3.5.6.3), so that a second attempt needs another
    ///     one.
    ///   - answers: the source of the answers.
    ///   - output: prints a line.
    ///   - complain: prints a line for the person that is not part of the output.
    init(
        asJSON: Bool,
        passkey: Passkey?,
        answers: Answers,
        output: @escaping @Sendable (String) -> Void = { try? Output.standard.line($0) },
        complain: @escaping @Sendable (String) -> Void = Output.complain,
        consents: @escaping Consent
    ) {
        self.asJSON = asJSON
        self.answers = answers
        self.output = output
        self.complain = complain
        self.consents = consents
        hasFixedPasskey = passkey != nil
        state = Mutex(State(passkey: passkey))
    }

    func answer(_ inquiry: PairingInquiry) async -> PairingAnswer {
        switch inquiry.question {
        case .consent: return consents(inquiry) ? .accept : .refuse
        case .showPasskey:
            show(inquiry, number: nil)
            return .accept
        case .enterPasskey: return await enterPasskey(inquiry)
        case .compare: return await ask(inquiry)
        }
    }

    /// Takes the passkey of the command line, or asks for one. Sends keypress notifications if ``followKeys(of:)`` was
    /// called.
    private func enterPasskey(_ inquiry: PairingInquiry) async -> PairingAnswer {
        await report([.entryStarted], inquiry)
        let answer: PairingAnswer
        if let passkey = state.withLock({ $0.passkey.take() }) {
            answer = .passkey(passkey.value)
        } else {
            if hasFixedPasskey, canBeAnswered {
                complain("--passkey is for one pairing and was used; enter the passkey for \(inquiry.peer)")
            }
            answer = await ask(inquiry)
        }
        // Digits come in whole lines, so all notifications are sent together.
        if case .passkey = answer {
            await report(Array(repeating: .digitEntered, count: 6) + [.entryCompleted], inquiry)
        }
        return answer
    }

    // MARK: Keys

    /// Sends keypress notifications for passkeys that are typed here, and shows those of peers, until the adapter is
    /// closed.
    func followKeys(of adapter: Adapter) async {
        state.withLock { state in
            state.reportsKey = { [weak adapter] in _ = await adapter?.reportKeypress($0, for: $1) }
        }
        let events = await adapter.securityEvents()
        Task { [self] in
            for await event in events {
                if case .keyPressed(_, let peer, let kind) = event { show(kind, on: peer) }
            }
        }
    }

    private func report(_ kinds: [KeypressNotification.Kind], _ inquiry: PairingInquiry) async {
        guard let reportsKey = state.withLock({ $0.reportsKey }) else { return }
        for kind in kinds { await reportsKey(kind, inquiry) }
    }

    /// Shows a keypress notification of a peer.
    func show(_ kind: KeypressNotification.Kind, on peer: DeviceAddress) {
        guard asJSON else { return output("\(peer): \(kind.words)") }
        output(
            JSON.object(
                [.event("keyPressed")] + .peer(peer) + [JSON.Member(key: "key", value: .string("\(kind)"))]
            ).description
        )
    }

    // MARK: Questions

    private var canBeAnswered: Bool {
        if case .nowhere = answers { false } else { true }
    }

    private func ask(_ inquiry: PairingInquiry) async -> PairingAnswer {
        guard canBeAnswered else {
            complain(
                "a question about the pairing with \(inquiry.peer) is refused, because standard input has other data; "
                    + "pair first with `ble pair`"
            )
            return .refuse
        }
        let number = state.withLock { $0.nextNumber() }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let question = Question(number: number, inquiry: inquiry, answer: continuation)
                let place = state.withLock { state -> Int? in
                    let isFull = state.questions.count > PairingConsole.queueLimit
                    guard !state.isOver, !isFull, !Task.isCancelled else { return nil }
                    state.questions.append(question)
                    return state.questions.count - 1
                }
                switch place {
                case nil: continuation.resume(returning: .refuse)
                case 0?:
                    show(inquiry, number: number)
                    readInput()
                default: break
                }
            }
        } onCancel: {
            finish(number, .refuse)
        }
    }

    /// Answers a question that is still open, and asks the next one.
    private func finish(_ number: Int, _ answer: PairingAnswer) {
        let (finished, next) = state.withLock { state -> (Question?, Question?) in
            let wasAsked = state.questions.first?.number == number
            let question = state.remove(number)
            return (question, wasAsked ? state.questions.first : nil)
        }
        finished?.answer.resume(returning: answer)
        if let next { show(next.inquiry, number: next.number) }
    }

    private func show(_ inquiry: PairingInquiry, number: Int?) {
        let peer = inquiry.peer
        switch inquiry.question {
        case .consent: break
        case .showPasskey(let passkey):
            let digits = Passkey(value: passkey).digits
            tell(
                inquiry,
                "passkey",
                number,
                ["passkey": .string(digits)],
                "The passkey is \(digits): type it on \(peer)."
            )
        case .enterPasskey:
            tell(inquiry, "passkeyWanted", number, [:], "Type the passkey that \(peer) shows:")
        case .compare(let value):
            let digits = Passkey(value: value).digits
            tell(inquiry, "compare", number, ["number": .string(digits)], "Does \(peer) show \(digits)? (yes or no)")
        }
    }

    private func tell(_ inquiry: PairingInquiry, _ event: String, _ number: Int?, _ more: JSON, _ words: String) {
        guard asJSON else { return output(words) }
        guard case .object(let members) = more else { return }
        let question = number.map { [JSON.Member(key: "question", value: .integer($0))] } ?? []
        output(JSON.object([.event(event)] + .peer(inquiry.peer) + question + members).description)
    }

    // MARK: Answers

    /// Gives an answer to its question.
    ///
    /// - Throws: if no such question is pending, or if it needs an answer of another kind.
    func take(_ reply: PairingReply) throws(ArgumentProblem) {
        let asked = state.withLock { $0.questions.first.map { ($0.number, $0.inquiry) } }
        guard let (number, inquiry) = asked, reply.question == nil || reply.question == number else {
            let name = reply.question.map { "question \($0)" } ?? "a question"
            throw ArgumentProblem(
                "\(name) is not being asked" + (asked.map { "; question \($0.0), about \($0.1.peer), is" } ?? "")
            )
        }
        guard inquiry.question.takes(reply.answer) else {
            throw ArgumentProblem(
                "question \(number), about \(inquiry.peer), takes \(inquiry.question.wantedReply(number))"
            )
        }
        // The question may have ended since: then its number is no other's, and the answer is dropped.
        finish(number, reply.answer)
    }

    /// Whether no question is being asked at the moment, but one was asked before.
    private var isBetweenQuestions: Bool {
        state.withLock { $0.questions.isEmpty && $0.lastNumber > 0 }
    }

    /// Refuses open and later questions, because no further answer arrives.
    func end() {
        let questions = state.withLock { state in
            state.isOver = true
            defer { state.questions = [] }
            return state.questions
        }
        for question in questions { question.answer.resume(returning: .refuse) }
    }

    /// Starts to read answers, unless a task does already. Lines after an answer stay for the next questions.
    private func readInput() {
        guard case .lines(let lines) = answers else { return }
        let input = state.withLock { state -> InputLines.Iterator? in
            guard !state.isReading, !state.questions.isEmpty else { return nil }
            state.isReading = true
            return state.input.take() ?? lines.makeAsyncIterator()
        }
        guard let input else { return }
        Task.detached { [self] in await readAnswers(from: input) }
    }

    /// Reads answers until no question is being asked.
    private func readAnswers(from input: InputLines.Iterator) async {
        var input = input
        do {
            while let line = try await input.next() {
                answer(line)
                let rest = input
                let isDone = state.withLock { state in
                    guard state.questions.isEmpty else { return false }
                    state.isReading = false
                    state.input = rest
                    return true
                }
                if isDone { return }
            }
        } catch {
            complain("\(error): questions are refused")
        }
        end()
    }

    private func answer(_ line: String) {
        do throws(ArgumentProblem) {
            guard let reply = PairingReply(parsing: line) else {
                throw ArgumentProblem("\"\(terminalSafe(line))\" is no answer: type six digits, yes or no")
            }
            // A question can end while a person answers it: the pairing has failed, which is reported elsewhere.
            if reply.question == nil, isBetweenQuestions { return }
            try take(reply)
        } catch {
            complain("\(error)")
        }
    }
}

extension KeypressNotification.Kind {
    fileprivate var words: String {
        switch self {
        case .entryStarted: "the passkey is being typed"
        case .digitEntered: "a digit was typed"
        case .digitErased: "a digit was erased"
        case .cleared: "the digits were cleared"
        case .entryCompleted: "the passkey was typed"
        }
    }
}
