import BluetoothTypes
import ByteCoding
import HCI

// How the commands of GAP's plans are sent, and how their replies get back.
extension BluetoothHost {
    /// Sends a plan's command. Everything that was done before ends as one input.
    ///
    /// The plan gets the reply at once when it arrives, so that it never sees a later event first. It decides the next
    /// command in a pass of its own, after the jobs that wait on the loop already.
    func send(_ command: GAPCommand, as step: GAPStep) {
        endInput()
        let exchange = GAPCommandExchange(command) { [weak self] failure in
            self?.assumeIsolated { $0.planCommandEnded(step, failure) }
        }
        guard transport != nil else { return exchange.fail(.aborted) }
        commands.enqueue(exchange)
        sendNextCommand()
    }

    /// Gives a plan the reply to its command.
    private func planCommandEnded(_ step: GAPStep, _ failure: CommandFailure?) {
        switch step.plan {
        case .scan: scanCommandEnded(step, failure)
        case .connection: connectionCommandEnded(step, failure)
        case .advertising, .addresses: break
        }
    }
}

/// The timer for the deadline of a plan.
struct PlanTimer {
    let token: TimerQueue.Token
    let due: Instant
}

extension BluetoothHost {
    /// Sets a timer to a deadline; for nil, cancels it. A timer that is due before the deadline stays: when it fires, it
    /// finds nothing to do and is set again.
    func rearmed(_ timer: PlanTimer?, _ key: TimerKey, at deadline: Instant?) -> PlanTimer? {
        if let timer, let deadline, timer.due <= deadline { return timer }
        timers.cancel(timer?.token)
        return deadline.map { PlanTimer(token: schedule(key, at: $0), due: $0) }
    }
}

/// The command of a plan on its way.
private final class GAPCommandExchange: CommandExchange {
    private let completion: (CommandFailure?) -> Void

    init(_ command: GAPCommand, completion: @escaping (CommandFailure?) -> Void) {
        self.completion = completion
        super.init(opcode: command.opcode, isAnsweredByStatus: command.isAnsweredByStatus, packet: command.packet)
    }

    override func succeed(returning parameters: RawSpan) {
        guard let byte = parameters[checked: 0] else {
            return completion(.malformedReply(opcode, .truncated(needed: 1, available: 0)))
        }
        let status = HCI.ErrorCode(rawValue: byte)
        completion(status == .success ? nil : .status(status, opcode))
    }

    override func fail(_ failure: CommandFailure) {
        completion(failure)
    }
}
