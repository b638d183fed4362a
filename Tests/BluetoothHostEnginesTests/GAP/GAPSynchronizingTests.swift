import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

/// A controller that changes its resolving list only while it creates no synchronization (Vol 4, Part E, 7.8.38).
@Suite("Synchronizations and changes of the resolving list")
struct GAPSynchronizingTests {
    private func world() throws -> GAPWorld {
        var world = GAPWorld.on(listSize: 4, isExtended: true)
        world.information.commands.insert(LEPeriodicAdvertisingCreateSync.opcode)
        try world.synchronize(1, with: GAPSample.address(1))
        world.settle()
        #expect(world.controller.isCreatingSynchronization && world.controller.scan.isOn)
        _ = world.takeSent()
        return world
    }

    private func expectChange(_ world: inout GAPWorld) {
        #expect(world.violations.isEmpty)
        #expect(world.controller.resolvingList == [AddressPlanFixture.peer(7)] && world.controller.isResolving)
        #expect(world.controller.isCreatingSynchronization && world.controller.scan.isOn)
        #expect(world.takeEffects().isEmpty)
    }

    @Test func creationIsCancelledForAChangeAndBeginsAgain() throws {
        var world = try world()
        world.bond([7])
        world.settle()
        expectChange(&world)
        let sent = world.takeSent()
        #expect(sent.count { $0 == LEPeriodicAdvertisingCreateSyncCancel.opcode } == 1)
        #expect(sent.count { $0 == LEPeriodicAdvertisingCreateSync.opcode } == 1)
    }

    @Test func trainThatIsReceivedDoesNotDelayAChange() throws {
        var world = try world()
        world.controller.isCreatingSynchronization = false
        world.synchronizationEnded(.success)
        world.settle()
        _ = (world.takeSent(), world.takeEffects())
        world.bond([7])
        world.settle()
        #expect(world.violations.isEmpty && world.controller.resolvingList == [AddressPlanFixture.peer(7)])
        let commands = [LEPeriodicAdvertisingCreateSyncCancel.opcode, LEPeriodicAdvertisingTerminateSync.opcode]
        #expect(world.takeSent().allSatisfy { !commands.contains($0) })
    }

    /// The end of the creation is not reported.
    @Test func changeIsMadeAfterTheTimeForTheEndOfTheCreation() throws {
        var world = try world()
        world.bond([7])
        for _ in 0..<100 {
            world.pass()
            if world.pending.first?.command.opcode == LEPeriodicAdvertisingCreateSyncCancel.opcode { break }
            world.reply()
        }
        try #require(!world.pending.isEmpty)
        world.controller.isCreatingSynchronization = false
        let cancel = world.pending.removeFirst()
        #expect(cancel.command.opcode == LEPeriodicAdvertisingCreateSyncCancel.opcode)
        world.perform(world.engine.commandEnded(cancel.step, nil, world.context))
        world.settle()
        #expect(world.controller.resolvingList.isEmpty)
        world.advance(by: SynchronizationPlan.cancellationTimeout)
        world.settle()
        expectChange(&world)
    }
}
