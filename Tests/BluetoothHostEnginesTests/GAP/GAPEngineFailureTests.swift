import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("The plans of GAP together, with a controller that refuses commands")
struct GAPEngineFailureTests {
    private let peer = GAPSample.address(1)

    /// The controller refuses to turn the advertisement off, and continues to send it.
    @Test func advertisementThatFailedWhileItIsOnIsPausedForAChangeOfTheResolvingList() throws {
        var world = GAPWorld.on(listSize: 4, isExtended: true)
        world.bond([1])
        world.settle()
        try world.advertise(1)
        world.settle()
        world.perform(world.engine.restartRoles(world.context))
        world.pass()
        world.reply(.status(.commandDisallowed, LESetExtendedAdvertisingEnable.opcode))
        world.bond([1, 7])
        world.settle()
        #expect(world.violations.isEmpty)
        #expect(world.controller.resolvingList == [AddressPlanFixture.peer(1), AddressPlanFixture.peer(7)])
        #expect(world.controller.isAdvertising)
    }

    @Test func refusedPrivacyModeLeavesNoPeerOnTheResolvingListUntilTheNextReset() {
        var world = GAPWorld(listSize: 1)
        world.bond([1, 2])
        world.perform(world.engine.prepareAddresses(world.information, world.context, &world.random))
        world.reply()
        world.pass()
        let refusal = CommandFailure.status(.unsupportedFeatureOrParameterValue, LESetPrivacyMode.opcode)
        world.reply(refusal)
        world.settle()
        #expect(
            world.takeSent() == [
                LEAddDeviceToResolvingList.opcode, LESetPrivacyMode.opcode, LERemoveDeviceFromResolvingList.opcode,
            ]
        )
        #expect(
            world.takeEffects() == [
                .setAddressResolution(isSupported: true), .setAddressResolution(isSupported: false),
                .report(.resolvedByHost(refusal)), .addressesPrepared(nil),
            ]
        )
        #expect(world.controller.resolvingList.isEmpty)
        world.reset()
        world.bringUp()
        #expect(world.effects.contains(.setAddressResolution(isSupported: true)))
        #expect(world.controller.resolvingList == [AddressPlanFixture.peer(2)])
    }

    /// The controller confirms the cancellation of an initiation, and continues.
    @Test(arguments: [LESetScanParameters.opcode, LESetScanEnable.opcode])
    func scanThatIsRefusedAfterALostEndOfAnInitiationIsTriedAgain(refused: HCIOpcode) {
        var world = GAPWorld.on(canScanWhileInitiating: false)
        world.controller.refusesScanParametersWhileInitiating = refused == LESetScanParameters.opcode
        world.connect(1, to: peer)
        world.settle()
        world.perform(world.engine.endAttempt(1, .cancelled, world.context))
        while world.pending.isEmpty { world.pass() }
        let cancel = world.pending.removeFirst()
        #expect(cancel.command.opcode == LECreateConnectionCancel.opcode)
        world.perform(world.engine.commandEnded(cancel.step, nil, world.context))
        world.startScan(1)
        world.settle()
        _ = world.takeEffects()
        world.advance(by: ConnectionPlan.cancellationTimeout)
        world.settle()
        #expect(world.violations.map(\.opcode) == [refused])
        #expect(world.controller.scan.isOn && world.controller.initiator.state == .idle)
        #expect(world.takeEffects().isEmpty)
    }
}
