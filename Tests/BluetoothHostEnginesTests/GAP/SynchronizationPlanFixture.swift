import BLEHCI
import Testing

@testable import BluetoothHost

/// A plan for synchronizations, whose commands a test answers.
struct SynchronizationPlanFixture {
    var plan = SynchronizationPlan()
    var now = GAPSample.start
    let information: ControllerInformation
    private var count: UInt64 = 0

    /// - Parameter others: commands of the controller besides LE Periodic Advertising Create Sync.
    init(commands others: [HCIOpcode] = []) {
        var information = GAPSample.information()
        for opcode in [LEPeriodicAdvertisingCreateSync.opcode] + others { information.commands.insert(opcode) }
        self.information = information
    }

    /// Returns an identifier for the next synchronization: 1, 2 and so on.
    mutating func nextIdentifier() -> SynchronizationIdentifier {
        count += 1
        return SynchronizationIdentifier(value: count)
    }

    mutating func next() -> PlannedCommand? {
        _ = plan.requestRun()
        return plan.nextCommand(information, at: now)
    }

    mutating func requireNext() throws -> PlannedCommand {
        let next = next()
        return try #require(next)
    }

    /// Answers commands with success until there is none.
    ///
    /// - Returns: the commands.
    @discardableResult
    mutating func settle() -> [GAPCommand] {
        var commands: [GAPCommand] = []
        while let next = next() {
            commands.append(next.command)
            plan.finished(next.step)
        }
        return commands
    }
}
