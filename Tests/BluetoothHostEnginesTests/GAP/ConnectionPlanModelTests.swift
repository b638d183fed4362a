import BLEHCI
import BluetoothTypes
import Testing

import struct BLEVirtualController.SeededGenerator

@testable import BluetoothHost

@Suite("The plan of initiating connections, compared with a controller")
struct ConnectionPlanModelTests {
    /// Expects that the model is right once nothing fails any more, and that the controller does what is wanted.
    private func expectAgreement(_ world: inout ConnectionWorld, _ comment: Comment) {
        // An event that was lost before is found out by this.
        world.perform(world.plan.restartInitiating())
        world.request()
        for _ in 0..<8 {
            world.settle()
            world.context.isScanning = false
            if world.plan.scanPassEnded() { world.request() }
            // The ends of cancelled initiations whose events were lost.
            if world.plan.controller == .cancelling { world.advance(.seconds(2)) }
        }
        #expect(world.controller.agrees(with: world.plan.controller), comment)
        let wanted = world.plan.wantedInitiation(world.context)
        #expect(world.plan.controller == wanted.map { .initiating($0) } ?? .idle, comment)
        #expect(world.outcomes.values.allSatisfy { $0.count == 1 }, comment)
    }

    /// Attempts that begin, change and end, in which the reply to each command fails in turn.
    @Test(
        arguments: 0..<9,
        [ConnectionWorld.refusal, ConnectionWorld.unclear, .timedOut(LECreateConnection.opcode), .aborted]
    )
    func planAgreesWithTheControllerIfAnyOneReplyFails(index: Int, failure: CommandFailure) {
        for isPerformed in failure == ConnectionWorld.refusal ? [false] : [false, true] {
            var world = ConnectionWorld()
            func proceed() {
                while world.isPassDue || world.pending != nil {
                    world.pass()
                    guard world.sent.count == index + 1, let pending = world.pending else {
                        world.reply()
                        world.reportEnd()
                        continue
                    }
                    if isPerformed { _ = world.controller.perform(pending.command) }
                    world.reply(failure)
                    if failure.meansReset { world.resetController() }
                    world.reportEnd()
                }
                if world.plan.cancellationDeadline != nil {
                    world.advance(.seconds(2))
                    proceed()
                }
            }
            world.connect(1, to: 1)
            world.connect(2, to: 2)
            proceed()
            world.connect(3, to: 3)
            proceed()
            for attempt in 1...3 as ClosedRange<UInt64> { world.cancel(attempt) }
            proceed()
            let comment: Comment = "command \(index), \(failure), performed: \(isPerformed)"
            #expect(world.sent.count > index || failure == ConnectionWorld.refusal, comment)
            if failure.meansReset {
                #expect(world.outcomes.values.allSatisfy { $0 == [.failed(.cancelled)] }, comment)
            }
            #expect(world.outcomes.count == 3, comment)
            expectAgreement(&world, comment)
            world.connect(4, to: 4)
            expectAgreement(&world, comment)
            #expect(world.controller.state == .initiating(ConnectionWorld.peers(4)), comment)
        }
    }

    @Test(arguments: 0..<300 as Range<UInt64>) func planAgreesWithTheControllerAndEachAttemptEndsOnce(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var world = ConnectionWorld()
        var begun: Set<UInt64> = []
        var canRefuseCancel = true
        world.context.acceptListSize = Int.random(in: 0...4, using: &random)
        for number in 1...UInt64(100) {
            switch Int.random(in: 0..<18, using: &random) {
            case 0, 1, 2:
                let timeout: Duration? =
                    Bool.random(using: &random) ? .seconds(Int.random(in: 1...20, using: &random)) : nil
                world.connect(number, to: .random(in: 1...6, using: &random), timeout: timeout)
                begun.insert(number)
            case 3:
                if let attempt = world.plan.attempts.randomElement(using: &random) { world.cancel(attempt.identifier) }
            case 4:
                if case .initiating(let peers) = world.controller.state, let peer = peers.inOrder.first {
                    world.connected(to: peer.value - ConnectionWorld.peer(0).value)
                }
            case 5:
                // The event of a connection or of an end is lost.
                if world.controller.state == .ending, world.pending == nil { world.controller.state = .idle }
            case 6: world.reportEnd()
            case 7:
                if case .initiating = world.controller.state, world.pending == nil {
                    world.controller.state = .idle
                    world.fail(.connectionTimeout)
                }
            case 8:
                world.context.isHeld.toggle()
                world.request()
            case 9:
                world.context.isScanKeptWaiting.toggle()
                world.request()
            case 10:
                world.context.isScanning = .random(using: &random)
                world.context.canInitiateWhileScanning = .random(using: &random)
                if world.plan.scanPassEnded() { world.request() }
            case 11: world.advance(.seconds(Int.random(in: 1...5, using: &random)))
            case 12: world.resetController()
            case 13:
                if let command = world.pending?.command {
                    let isCancel = command.opcode == LECreateConnectionCancel.opcode
                    if !isCancel || canRefuseCancel { world.reply(ConnectionWorld.refusal) }
                    // A controller that always refuses this is given up.
                    canRefuseCancel = !isCancel && canRefuseCancel
                }
            case 14:
                if let command = world.pending?.command {
                    _ = world.controller.perform(command)
                    world.reply(ConnectionWorld.unclear)
                }
            default:
                world.pass()
                world.reply()
            }
            #expect(world.plan.attempts.allSatisfy { world.outcomes[$0.identifier] == nil })
        }
        expectAgreement(&world, "seed \(seed)")
        world.perform(world.plan.takeAttempts { _ in true }.map { .fail($0, .closed) })
        #expect(Set(world.outcomes.keys) == begun && world.outcomes.values.allSatisfy { $0.count == 1 })
    }
}
