import BLEHCI
import BluetoothTypes
import Testing

import struct BLEVirtualController.SeededGenerator

@testable import BluetoothHost

@Suite("The plan of scanning, compared with a controller")
struct ScanPlanModelTests {
    private static let unclear = CommandFailure.malformedReply(
        LESetScanEnable.opcode,
        .truncated(needed: 1, available: 0)
    )

    /// Expects that the model is right once nothing fails any more, and that the controller does what is wanted.
    private func expectAgreement(_ world: inout ScanWorld, _ comment: Comment) {
        world.request()
        world.settle()
        #expect(world.controller.agrees(with: world.plan.controller), comment)
        let wanted = world.context.isHeld ? nil : world.plan.wanted
        #expect(world.plan.controller == wanted.map { .on($0) } ?? .off, comment)
        #expect(Set(world.ended).count == world.ended.count, comment)
    }

    /// A scan that starts, changes and stops, in which the reply to each command fails in turn.
    @Test(arguments: 0..<6, [ScanWorld.refusal, unclear, .timedOut(LESetScanEnable.opcode), .aborted])
    func planAgreesWithTheControllerIfAnyOneReplyFails(index: Int, failure: CommandFailure) {
        for isPerformed in failure == ScanWorld.refusal ? [false] : [false, true] {
            var world = ScanWorld()
            func proceed() {
                while world.isPassDue || world.pending != nil {
                    world.pass()
                    guard world.sent.count == index + 1, let pending = world.pending else {
                        world.reply()
                        continue
                    }
                    if isPerformed { _ = world.controller.perform(pending.command) }
                    world.reply(failure)
                    if failure.meansReset { world.resetController() }
                }
            }
            world.start(1, ScanOptions(isActive: false))
            proceed()
            world.start(2, ScanOptions(isActive: true))
            proceed()
            world.stop(1)
            world.stop(2)
            proceed()
            #expect(world.sent.count > index)
            if failure.meansReset { #expect(world.ended.isEmpty) }
            expectAgreement(&world, "command \(index), \(failure)")
            world.start(3)
            expectAgreement(&world, "command \(index), \(failure), and another scan")
            #expect(world.controller.isOn && !world.ended.contains { $0.value == 3 })
        }
    }

    @Test(arguments: 0..<300 as Range<UInt64>) func planAgreesWithTheControllerAfterRandomInputs(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var world = ScanWorld()
        var running: Set<UInt64> = []
        for number in 1...UInt64(80) {
            switch Int.random(in: 0..<16, using: &random) {
            case 0, 1:
                world.start(number, ScanOptions(isActive: .random(using: &random)))
                running.insert(number)
            case 2:
                if let scan = running.sorted().randomElement(using: &random) {
                    running.remove(scan)
                    world.stop(scan)
                }
            case 3:
                world.context.isResolvingPeers.toggle()
                world.request()
            case 4:
                world.context.isHeld.toggle()
                world.request()
            case 5:
                world.context.isInitiating.toggle()
                world.context.canScanActivelyWhileInitiating = .random(using: &random)
                world.request()
            case 6:
                world.context.ownAddressType = Bool.random(using: &random) ? .public : .random
                world.request()
            case 7: world.advance(.seconds(Int.random(in: 1...100, using: &random)))
            case 8: world.resetController()
            case 9:
                // Some commands take effect although the reply is unclear.
                if Bool.random(using: &random), let command = world.pending?.command {
                    _ = world.controller.perform(command)
                }
                world.reply(Self.unclear)
            case 10: if world.pending != nil { world.reply(ScanWorld.refusal) }
            case 11:
                if world.controller.isOn, world.pending == nil {
                    world.controller.isOn = false
                    world.plan.endedByController(at: world.now)
                    world.request()
                }
            case 12: world.reply()
            default:
                world.pass()
                world.reply()
            }
            running.subtract(world.ended.map(\.value))
            #expect(Set(world.plan.scans.sessions.keys.map(\.value)) == running)
            if world.plan.isResting, world.plan.controller != .unknown { #expect(!world.controller.isOn) }
        }
        world.context.isInitiating = false
        // If the last reply refused a stop, this run sends the parameters to a controller that may scan.
        world.settle()
        // A model that is wrong would show here.
        expectAgreement(&world, "seed \(seed)")
    }
}
