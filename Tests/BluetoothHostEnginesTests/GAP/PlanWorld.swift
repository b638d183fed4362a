import BLEHCI
import BluetoothTypes

@testable import BluetoothHost

/// A plan of GAP with a simulated controller: it is driven as the host drives it.
protocol PlanWorld {
    associatedtype Effect

    /// Whether the host has scheduled a pass.
    var isPassDue: Bool { get set }
    /// The command whose reply is awaited.
    var pending: PlannedCommand? { get set }
    /// All commands that were sent.
    var sent: [GAPCommand] { get set }

    /// The plan's next command.
    mutating func nextCommand() -> PlannedCommand?
    /// Has the controller perform a command, and returns its status.
    mutating func performByController(_ command: GAPCommand) -> HCIErrorCode
    /// Tells the plan that a command has succeeded.
    mutating func finished(_ step: GAPStep)
    /// Tells the plan that a command has failed.
    mutating func failed(_ step: GAPStep, _ failure: CommandFailure) -> [Effect]
    mutating func perform(_ effects: [Effect])
}

extension PlanWorld {
    mutating func pass() {
        guard isPassDue else { return }
        isPassDue = false
        pending = nextCommand()
        if let pending { sent.append(pending.command) }
    }

    /// Has the controller perform the pending command, and gives the plan its reply.
    ///
    /// - Parameter failure: the reply; nil for that of the controller.
    mutating func reply(_ failure: CommandFailure? = nil) {
        guard let step = pending?.step, let command = pending?.command else { return }
        pending = nil
        isPassDue = true
        if let failure { return perform(failed(step, failure)) }
        let status = performByController(command)
        if status == .success {
            finished(step)
        } else {
            perform(failed(step, .status(status, command.opcode)))
        }
    }

    /// Fails the pending command, as a reset of the controller does.
    mutating func abortPending() {
        guard let step = pending?.step else { return }
        pending = nil
        isPassDue = true
        perform(failed(step, .aborted))
    }
}
