import Testing

import struct BLEVirtualController.SeededGenerator

@testable import BluetoothHost

/// A plan of GAP with a simulated controller, and random inputs, replies and events.
protocol RandomPlanModel {
    init(seed: UInt64)

    var random: SeededGenerator { get set }
    /// The command in progress, and the reply that is on its way: nil for success.
    var inProgress: (command: PlannedCommand, failure: CommandFailure?)? { get set }

    /// The plan's next command.
    mutating func nextCommand() -> PlannedCommand?
    /// Has the controller perform a command, unless it refuses the command. Returns the failure, or nil.
    mutating func send(_ command: PlannedCommand) -> CommandFailure?
    /// Makes one random change.
    mutating func step()
    /// Has the controller perform what is wanted.
    mutating func settle()
    /// Compares the controller with what is wanted.
    func check()
}

extension RandomPlanModel {
    /// Returns true once in `count` times.
    mutating func chance(_ count: Int) -> Bool { Int.random(in: 0..<count, using: &random) == 0 }

    /// Sends the plan's next command, if the plan has one.
    mutating func send() {
        let next = nextCommand()
        guard inProgress == nil else {
            #expect(next == nil, "one command at a time")
            return
        }
        if let next { inProgress = (next, send(next)) }
    }

    /// Checks the models of a group of seeds.
    static func run(group: UInt64) {
        for seed in group * 10..<group * 10 + 10 {
            var model = Self(seed: seed)
            for _ in 0..<200 { model.step() }
            model.settle()
            model.check()
        }
    }
}
