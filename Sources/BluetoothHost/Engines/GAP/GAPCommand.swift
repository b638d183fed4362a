import BLEByteCoding
import BLEHCI

/// A command that a plan of GAP wants the controller to perform, in encoded form.
///
/// A plan needs only to know whether the command succeeded. So all its commands have one type and can be compared.
struct GAPCommand: Equatable {
    let opcode: HCIOpcode
    /// Whether the controller answers with Command Status only.
    let isAnsweredByStatus: Bool
    /// The command packet with its H4 indicator.
    let packet: [UInt8]

    init<C: Command>(_ command: C) {
        opcode = C.opcode
        isAnsweredByStatus = C.isAnsweredByStatus
        packet = PacketBuffer.bytes {
            $0.append(BLEHCI.PacketType.command.rawValue)
            command.encodePacket(into: &$0)
        }
    }
}

extension GAPCommand: CustomStringConvertible {
    var description: String { "\(opcode) \(packet.dropFirst(4))" }
}

/// A part of GAP that sends commands of its own, one at a time.
enum GAPPlan: Hashable, Sendable {
    case scan
    case connection
    case advertising
    case addresses
    case synchronization
    case subevents
}

/// Names one command of a plan. A reply names the command that it is for.
struct GAPStep: Hashable, Sendable {
    let plan: GAPPlan
    /// The number of the command, counted by the plan.
    let number: UInt64
}

/// A command that a plan sends now.
struct PlannedCommand: Equatable {
    let command: GAPCommand
    let step: GAPStep
    /// The LE events that the command enables.
    var events: LEEventMask = []
}

/// The command of a plan that the controller has not answered: at most one.
///
/// A plan decides the next command from its model of the controller, after each reply. So it records why the current
/// command was sent, and no place in a sequence of commands.
struct PendingCommand<Purpose> {
    let plan: GAPPlan
    /// Why the command was sent; nil if no command is pending.
    private(set) var purpose: Purpose?
    private var number: UInt64 = 0

    init(of plan: GAPPlan) {
        self.plan = plan
    }

    var isPending: Bool { purpose != nil }

    /// Whether the plan waits for the reply to this command.
    func isWaiting(for step: GAPStep) -> Bool { isPending && step.number == number }

    /// Records that a command is sent.
    ///
    /// - Returns: the name of the command.
    mutating func begin(_ purpose: Purpose) -> GAPStep {
        assert(self.purpose == nil, "a plan has one command at a time")
        number += 1
        self.purpose = purpose
        return GAPStep(plan: plan, number: number)
    }

    /// Records that a command has ended.
    ///
    /// - Returns: why it was sent; nil if the plan does not wait for this command any more.
    mutating func end(_ step: GAPStep) -> Purpose? {
        guard step.number == number else { return nil }
        return purpose.take()
    }

    /// Forgets the command: the controller was reset, so its reply no longer matters.
    mutating func forget() {
        purpose = nil
    }
}

/// When a plan decides its next command.
///
/// A request starts a run. A run has a pass for the first command and a pass after each reply, until a pass finds
/// nothing to do. A pass begins after the jobs that wait on the loop already.
///
/// After a command that the controller refused, the plan tries again only if it was requested to since that command
/// was sent. So a controller that always refuses a command is not sent it again and again.
struct PlanRun {
    /// Whether a pass is due or a command is pending.
    private(set) var isRunning = false
    /// Whether a request was made since the last command was sent.
    private var isRequested = false
    /// Whether the controller refused the last command.
    private var isRefused = false

    /// Whether the plan may send a command.
    var maySend: Bool { isRequested || !isRefused }

    /// Requests a pass.
    ///
    /// - Returns: whether the caller must schedule it. Otherwise there will be one.
    mutating func request() -> Bool {
        isRequested = true
        if isRunning { return false }
        isRunning = true
        return true
    }

    /// Records that a pass sends a command.
    mutating func sent() {
        isRequested = false
        isRefused = false
    }

    /// Records that the controller refused the command.
    mutating func refused() {
        isRefused = true
    }

    /// Records that a pass has found nothing to do.
    mutating func end() {
        isRunning = false
        isRequested = false
    }
}

extension CommandFailure {
    /// Whether the command may have had its effect, because the controller's answer is missing or unclear.
    var isOutcomeUnknown: Bool {
        switch self {
        case .status: false
        case .timedOut, .malformedReply, .aborted: true
        }
    }

    /// Whether the controller does not allow the command in its present state.
    var isDisallowed: Bool { if case .status(.commandDisallowed, _) = self { true } else { false } }

    /// Whether the controller is reset after this failure. Then nothing needs to be done about it.
    var meansReset: Bool {
        switch self {
        case .status, .malformedReply: false
        case .timedOut, .aborted: true
        }
    }
}
