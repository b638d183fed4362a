import BluetoothTypes
import HCI

// How the commands of GAP's plans are sent, and how their replies get back.
extension BluetoothHost {
    /// Sends a plan's command. Everything that was done before ends as one input.
    ///
    /// The plan gets the reply at once when it arrives, so that it never sees a later event first. It decides the next
    /// command in a pass of its own, after the jobs that wait on the loop already.
    func send(_ command: GAPCommand, as step: GAPStep) {
        endInput()
        submit(CommandRequest(command, .plan(step)))
    }

    /// Sends a plan's command and waits for the reply, while the controller is brought up.
    func perform(_ command: GAPCommand) async throws(CommandFailure) {
        endInput()
        let failure = await withCheckedContinuation { continuation in
            let caller = commandCallers.insert(PlanCommandCaller(command.opcode) { continuation.resume(returning: $0) })
            submit(CommandRequest(command, .caller(caller)))
        }
        if let failure { throw failure }
    }

    /// Gives a plan the reply to its command.
    func planCommandEnded(_ step: GAPStep, _ failure: CommandFailure?) {
        switch step.plan {
        case .scan: scanCommandEnded(step, failure)
        case .connection: connectionCommandEnded(step, failure)
        case .advertising: advertisingCommandEnded(step, failure)
        case .addresses: addressCommandEnded(step, failure)
        }
    }
}

/// The code that waits for a plan's command while the controller is brought up.
private final class PlanCommandCaller: CommandCaller {
    private let opcode: HCI.Opcode
    private let completion: (CommandFailure?) -> Void

    init(_ opcode: HCI.Opcode, _ completion: @escaping (CommandFailure?) -> Void) {
        self.opcode = opcode
        self.completion = completion
    }

    override func receive(_ reply: RawSpan) { completion(CommandFailure(in: reply, of: opcode)) }

    override func fail(_ failure: CommandFailure) { completion(failure) }
}
