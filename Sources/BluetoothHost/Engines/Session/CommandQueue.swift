import BLEHCI
import BluetoothTypes
import DequeModule

/// A queue of commands to the controller. They are sent one at a time, according to the controller's command credits
/// (Vol 4, Part E, 4.4).
///
/// ## Time limits
///
/// The controller must answer a command within the timeout. If it accepts no command while some wait, it must report
/// within the timeout that it accepts one.
///
/// ## Bounds
///
/// Events of the controller cause commands, also events about links that the host does not know. A controller that
/// reports many of them and answers slowly cannot fill the queue: at most ``eventLimit`` of these commands wait. Beyond
/// that, the controller counts as failed. Commands whose answer an app or a plan waits for do not
/// count, except those that encrypt a link.
struct CommandQueue {
    /// Maximum number of waiting commands that events have caused: several for each of 500 links.
    static let eventLimit = 2048

    /// The time within which the controller must answer a command, and accept the next one.
    let timeout: Duration
    private var waiting = Deque<CommandRequest>()
    private var inFlight: CommandRequest?
    /// The number of commands that the controller accepts now.
    private(set) var credits = 1
    /// The end of the time for the answer to the command in flight.
    private var answerDeadline: Instant?
    /// The end of the time for the next credit, while commands wait only for that.
    private var creditDeadline: Instant?
    /// When a command was dropped because of ``eventLimit``.
    private var overflow: Instant?

    init(timeout: Duration) {
        self.timeout = timeout
    }

    /// Whether commands wait only because the controller accepts none.
    private var isStalled: Bool { inFlight == nil && credits == 0 && !waiting.isEmpty }

    /// Whether a command waits although it may be sent.
    var hasSendableCommand: Bool { inFlight == nil && credits > 0 && !waiting.isEmpty }

    /// The number of commands that have not ended.
    var count: Int { waiting.count + (inFlight == nil ? 0 : 1) }

    /// The number of commands that a caller waits for.
    var callerCount: Int {
        (waiting + (inFlight.map { [$0] } ?? [])).count { if case .caller = $0.tag { true } else { false } }
    }

    /// The command whose answer is awaited.
    var opcodeInFlight: HCIOpcode? { inFlight?.opcode }

    /// When a time limit passes next.
    var deadline: Instant? { overflow ?? answerDeadline ?? creditDeadline }

    /// Appends a command.
    ///
    /// - Returns: false if the command was dropped because of ``eventLimit``.
    mutating func enqueue(_ request: CommandRequest, at now: Instant) -> Bool {
        if request.isCausedByEvents, waiting.count >= CommandQueue.eventLimit,
            waiting.count(where: \.isCausedByEvents) >= CommandQueue.eventLimit
        {
            overflow = overflow ?? now
            return false
        }
        waiting.append(request)
        return true
    }

    /// Whether a command was dropped because of ``eventLimit``; true only once.
    mutating func takeOverflow() -> Bool { overflow.take() != nil }

    /// Removes and returns the next command if it may be sent now. Otherwise the time for a credit starts, if commands
    /// wait only for that.
    mutating func takeNext(at now: Instant) -> CommandRequest? {
        guard inFlight == nil, credits > 0, let next = waiting.popFirst() else {
            if isStalled, creditDeadline == nil { creditDeadline = now + timeout }
            return nil
        }
        inFlight = next
        answerDeadline = now + timeout
        creditDeadline = nil
        return next
    }

    /// Handles a Command Complete or Command Status event, and returns the command that it answers.
    ///
    /// - Parameters:
    ///   - credits: Num_HCI_Command_Packets.
    ///   - isSuccessStatus: whether the event was Command Status with success, which answers only commands that have no
    ///     Command Complete.
    mutating func receiveAnswer(to opcode: HCIOpcode, credits: UInt8, isSuccessStatus: Bool) -> CommandRequest? {
        self.credits = Int(credits)
        guard let request = inFlight, request.opcode == opcode else { return nil }
        if isSuccessStatus && !request.isAnsweredByStatus { return nil }
        inFlight = nil
        answerDeadline = nil
        return request
    }

    /// Removes and returns the command in flight if its time has passed. The controller is then assumed to accept
    /// another command, whatever it has reported.
    mutating func takeUnanswered(at now: Instant) -> CommandRequest? {
        guard let answerDeadline, answerDeadline <= now else { return nil }
        self.answerDeadline = nil
        credits = max(credits, 1)
        return inFlight.take()
    }

    /// Whether the time for a credit has passed; true only once. The controller is then assumed to accept a command.
    mutating func takeMissingCredit(at now: Instant) -> Bool {
        guard let creditDeadline, creditDeadline <= now else { return false }
        self.creditDeadline = nil
        guard isStalled else { return false }
        credits = 1
        return true
    }

    /// Removes and returns the commands about a connection that wait, oldest first.
    mutating func removeWaiting(on handle: ConnectionHandle) -> [CommandRequest] {
        let removed = Array(waiting.lazy.filter { $0.handle == handle })
        if !removed.isEmpty { waiting.removeAll { $0.handle == handle } }
        return removed
    }

    /// Empties the queue and returns its commands, oldest first.
    mutating func removeAll() -> [CommandRequest] {
        let all = (inFlight.map { [$0] } ?? []) + waiting
        self = CommandQueue(timeout: timeout)
        return all
    }
}
