import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("The plan of scanning")
struct ScanPlanTests {
    private static let off = GAPCommand(LESetScanEnable(leScanEnable: false, filterDuplicates: false))
    private static let on = GAPCommand(LESetScanEnable(leScanEnable: true, filterDuplicates: false))

    private static func configure(
        _ type: ScanType = .active,
        interval: UInt16 = 0x60,
        window: UInt16 = 0x60,
        own: OwnAddressType = .public
    ) -> GAPCommand {
        GAPCommand(
            LESetScanParameters(
                leScanType: type,
                leScanInterval: interval,
                leScanWindow: window,
                ownAddressType: own
            )
        )
    }

    private static let passive = ScanOptions(isActive: false, interval: .milliseconds(60), window: .milliseconds(60))
    private static let active = ScanOptions(isActive: true, interval: .milliseconds(60), window: .milliseconds(60))

    /// A world in which one passive scan runs.
    private func scanning() -> ScanWorld {
        var world = ScanWorld()
        world.start(1, Self.passive)
        world.settle()
        world.sent = []
        return world
    }

    // MARK: Commands

    @Test func scanStartsAndStops() {
        var world = ScanWorld()
        world.start(1, Self.active)
        world.settle()
        #expect(world.sent == [Self.configure(), Self.on])
        #expect(world.plan.controller == world.plan.wanted.map { .on($0) })
        world.stop(1)
        world.settle()
        #expect(world.sent == [Self.configure(), Self.on, Self.off])
        #expect(world.plan.controller == .off && world.plan.isResting && !world.plan.mayScan)
    }

    @Test func controllerWithExtendedCommandsGetsExtendedCommands() {
        var plan = ScanPlan(silenceTimeout: nil)
        plan.scans.insert(ScanIdentifier(value: 1), Self.active)
        _ = plan.requestRun()
        let context = ScanPlan.Context(usesExtendedCommands: true, ownAddressType: .random)
        let configure = plan.nextCommand(context)
        let le1M = LESetExtendedScanParameters.PHYParameters(scanType: .active, scanInterval: 0x60, scanWindow: 0x60)
        #expect(configure?.command == GAPCommand(LESetExtendedScanParameters(ownAddressType: .random, le1M: le1M)))
        if let configure { plan.finished(configure.step, at: Instant(nanoseconds: 0)) }
        let enable = LESetExtendedScanEnable(enable: true, filterDuplicates: .disabled)
        #expect(plan.nextCommand(context)?.command == GAPCommand(enable))
    }

    @Test(
        arguments: [
            (PHYSet.leCoded, true, PHYSet.leCoded),
            ([.le1M, .leCoded], true, [.le1M, .leCoded]),
            (.leCoded, false, .le1M),
            ([.le1M, .leCoded], false, .le1M),
            ([], true, .le1M),
        ] as [(PHYSet, Bool, PHYSet)]
    )
    func scanUsesTheRequestedPHYsThatTheControllerHas(requested: PHYSet, hasCoded: Bool, used: PHYSet) {
        var plan = ScanPlan(silenceTimeout: nil)
        plan.scans.insert(ScanIdentifier(value: 1), ScanOptions(phys: requested))
        _ = plan.requestRun()
        let context = ScanPlan.Context(usesExtendedCommands: true, canScanCodedPHY: hasCoded)
        let configure = plan.nextCommand(context)?.command.decode(LESetExtendedScanParameters.self)
        #expect(configure?.scanningPHYs == used)
    }

    @Test func scansOnSeveralPHYsAreCombined() {
        var plan = ScanPlan(silenceTimeout: nil)
        plan.scans.insert(ScanIdentifier(value: 1), ScanOptions(phys: .leCoded))
        #expect(plan.wanted?.phys == .leCoded)
        plan.scans.insert(ScanIdentifier(value: 2), ScanOptions())
        #expect(plan.wanted?.phys == [.le1M, .leCoded])
    }

    @Test func secondScanWithOtherParametersRestartsScanning() {
        var world = scanning()
        world.start(2, Self.active)
        world.settle()
        #expect(world.sent == [Self.off, Self.configure(), Self.on])
        world.sent = []
        world.stop(2)
        world.settle()
        #expect(world.sent == [Self.off, Self.configure(.passive), Self.on])
    }

    @Test func secondScanWithTheSameParametersChangesNothing() {
        var world = scanning()
        world.start(2, Self.passive)
        world.settle()
        world.stop(1)
        world.settle()
        #expect(world.sent.isEmpty && world.controller.isOn)
    }

    @Test func searchForPeersScansPassively() {
        var world = ScanWorld()
        world.context.isResolvingPeers = true
        world.request()
        world.settle()
        #expect(world.sent == [Self.configure(.passive), Self.on])
        world.context.isResolvingPeers = false
        world.request()
        world.settle()
        #expect(world.sent.last == Self.off && world.plan.isResting)
    }

    @Test func scanThatEndsWhileItStartsIsNotStarted() {
        var world = ScanWorld()
        world.start(1)
        world.pass()
        world.stop(1)
        world.settle()
        #expect(world.sent.count == 1 && !world.controller.isOn && world.plan.isResting)
    }

    @Test func scanStopsWhileAddressesChange() {
        var world = scanning()
        world.context.isHeld = true
        world.request()
        #expect(!world.plan.isResting)
        world.settle()
        #expect(world.sent == [Self.off] && world.plan.isResting)
        world.context.isHeld = false
        world.context.ownAddressType = .random
        world.request()
        world.settle()
        #expect(world.sent == [Self.off, Self.configure(.passive, own: .random), Self.on])
    }

    @Test func ownAddressTypeThatChangesBeforeTheStartIsConfiguredAgain() {
        var world = ScanWorld()
        world.start(1, Self.active)
        world.pass()
        world.context.ownAddressType = .resolvableOrRandom
        world.settle()
        #expect(world.sent == [Self.configure(), Self.configure(own: .resolvableOrRandom), Self.on])
    }

    @Test(arguments: [true, false]) func scanWaitsForInitiatingOnlyIfItMust(canScan: Bool) {
        var world = scanning()
        world.context.isInitiating = true
        world.context.canScanPassivelyWhileInitiating = canScan
        world.context.canScanActivelyWhileInitiating = false
        world.request()
        world.settle()
        #expect(world.sent == (canScan ? [] : [Self.off]))
    }

    // MARK: Refused commands

    @Test(arguments: [HCIErrorCode.commandDisallowed, .unsupportedFeatureOrParameterValue])
    func refusedParametersEndAllScans(code: HCIErrorCode) {
        var world = ScanWorld()
        world.start(1)
        world.start(2)
        world.pass()
        world.reply(.status(code, LESetScanParameters.opcode))
        #expect(world.ended.map(\.value) == [1, 2])
        world.settle()
        #expect(world.sent.count == 1 && world.plan.isResting)
        // Parameters are disallowed while the controller scans.
        #expect(world.plan.controller == (code == .commandDisallowed ? .unknown : .off))
    }

    @Test func refusedEndOfAScanLeavesTheStateUnknownAndIsTriedOnce() {
        var world = scanning()
        world.stop(1)
        world.pass()
        world.reply(ScanWorld.refusal)
        world.pass()
        #expect(world.sent == [Self.off] && world.plan.controller == .unknown)
        #expect(world.plan.isResting, "an address change must not wait for ever")
        #expect(world.plan.deadline == nil)
        // The next scan turns scanning off first.
        world.start(2, Self.active)
        world.settle()
        #expect(world.sent == [Self.off, Self.off, Self.configure(), Self.on])
        #expect(world.controller.agrees(with: world.plan.controller) && world.ended.isEmpty)
    }

    @Test func scanStartsOnAControllerThatRefusesToStopAScanThatItHasEnded() {
        var world = scanning()
        world.controller.isOn = false
        world.start(2, Self.active)
        world.pass()
        world.reply(ScanWorld.refusal)
        world.settle()
        #expect(world.ended.map(\.value) == [1, 2] && world.plan.controller == .unknown)
        world.start(3, Self.active)
        world.pass()
        world.reply(ScanWorld.refusal)
        world.settle()
        #expect(world.sent == [Self.off, Self.off, Self.configure(), Self.on])
        #expect(world.ended.count == 2 && world.controller.agrees(with: world.plan.controller))
    }

    @Test func scanEndsIfTheControllerRefusesTheEndAndTheParameters() {
        var world = scanning()
        world.stop(1)
        world.pass()
        world.reply(ScanWorld.refusal)
        world.settle()
        world.start(2, Self.active)
        world.pass()
        world.reply(ScanWorld.refusal)
        world.settle()
        // The controller still scans.
        #expect(world.sent == [Self.off, Self.off, Self.configure()] && world.ended.map(\.value) == [2])
        #expect(world.plan.controller == .unknown && world.plan.isResting)
        world.start(3, Self.active)
        world.settle()
        #expect(world.sent.suffix(3) == [Self.off, Self.configure(), Self.on] && world.ended.count == 1)
    }

    @Test(arguments: [true, false]) func scanThatTheControllerRefusesTwiceToStopIsStoppedLater(isHeld: Bool) {
        var world = scanning()
        world.stop(1)
        world.pass()
        world.reply(ScanWorld.refusal)
        world.settle()
        // No parameters may be sent now, so nothing shows whether the controller scans.
        if isHeld {
            world.context.isHeld = true
        } else {
            world.context.isInitiating = true
            world.context.canScanActivelyWhileInitiating = false
        }
        world.start(2, Self.active)
        world.pass()
        world.reply(ScanWorld.refusal)
        world.settle()
        #expect(world.sent == [Self.off, Self.off] && world.ended.isEmpty)
        #expect(world.plan.controller == .unknown && world.plan.isResting)
        world.stop(2)
        world.context.isHeld = false
        world.context.isInitiating = false
        world.request()
        world.settle()
        #expect(world.sent == [Self.off, Self.off, Self.off])
        #expect(!world.controller.isOn && world.plan.controller == .off)
    }

    @Test func refusedEndDuringASearchIsTriedAgainOnRequest() {
        var world = ScanWorld()
        world.start(1, ScanOptions(isActive: false, interval: .milliseconds(120), window: .milliseconds(60)))
        world.settle()
        world.sent = []
        world.context.isResolvingPeers = true
        world.request()
        world.pass()
        world.reply(ScanWorld.refusal)
        world.pass()
        #expect(world.ended.map(\.value) == [1] && world.sent == [Self.off] && !world.isPassDue)
        world.request()
        world.settle()
        #expect(world.sent == [Self.off, Self.off, Self.configure(.passive), Self.on])
    }

    @Test func requestDuringARefusedCommandIsNotLost() {
        var world = ScanWorld()
        world.context.isResolvingPeers = true
        world.request()
        world.pass()
        world.request()
        world.reply(ScanWorld.refusal)
        world.settle()
        // The controller may scan, so it is turned off first.
        #expect(world.controller.isOn && world.sent.count == 4)
    }

    @Test func refusedSearchIsTriedAgainAfterASecond() {
        var world = ScanWorld()
        world.context.isResolvingPeers = true
        world.request()
        world.pass()
        world.reply(.status(.hardwareFailure, LESetScanParameters.opcode))
        world.settle()
        #expect(world.sent.count == 1 && world.plan.deadline == world.now + ScanPlan.retryInterval)
        world.advance(ScanPlan.retryInterval)
        world.settle()
        #expect(world.controller.isOn && world.sent.count == 3)
    }

    @Test func scanThatCouldNotBeTurnedOffIsTurnedOffForTheNextOne() {
        var world = scanning()
        world.advance(.seconds(90))
        world.pass()
        world.reply(ScanWorld.refusal)
        world.settle()
        #expect(world.ended.map(\.value) == [1] && world.controller.isOn)
        world.sent = []
        world.start(2, Self.active)
        world.settle()
        #expect(world.sent == [Self.off, Self.configure(), Self.on])
        #expect(world.controller.agrees(with: world.plan.controller) && world.ended.count == 1)
    }

    @Test func unclearReplyToTheStartTurnsScanningOff() {
        var world = ScanWorld()
        world.start(1, Self.active)
        world.pass()
        world.reply()
        world.pass()
        _ = world.controller.perform(Self.on)
        world.reply(.malformedReply(LESetScanEnable.opcode, .truncated(needed: 1, available: 0)))
        #expect(world.ended.map(\.value) == [1] && world.plan.controller == .unknown)
        world.request()
        world.settle()
        #expect(world.sent.last == Self.off && !world.controller.isOn && world.plan.controller == .off)
    }

    // MARK: Events

    @Test func replyToACommandOfAnEarlierControllerHasNoEffect() {
        var world = ScanWorld()
        world.start(1)
        world.pass()
        let step = world.pending?.step
        world.plan.controllerLost()
        if let step {
            world.plan.finished(step, at: world.now)
            let effects = world.plan.failed(step, ScanWorld.refusal, at: world.now)
            #expect(effects.isEmpty)
        }
        world.pending = nil
        world.isPassDue = true
        world.settle()
        #expect(world.sent.count == 3 && world.controller.isOn && world.ended.isEmpty)
    }

    @Test func scanThatTheControllerEndsIsStartedAgain() {
        var world = scanning()
        world.controller.isOn = false
        world.plan.endedByController(at: world.now)
        world.request()
        world.settle()
        #expect(world.sent == [Self.configure(.passive), Self.on])
    }

    @Test func scanThatEndsBeforeItsStartIsConfirmedIsTurnedOffAndStarted() {
        var world = ScanWorld()
        world.start(1, Self.active)
        world.pass()
        world.reply()
        world.pass()
        world.plan.endedByController(at: world.now)
        world.settle()
        #expect(world.sent == [Self.configure(), Self.on, Self.off, Self.configure(), Self.on])
        #expect(world.controller.agrees(with: world.plan.controller))
    }

    @Test func scanThatEndsWhileItIsTurnedOffMayRefuseThat() {
        var world = scanning()
        world.start(2, Self.active)
        world.pass()
        world.controller.isOn = false
        world.plan.endedByController(at: world.now)
        world.reply(ScanWorld.refusal)
        world.settle()
        #expect(world.ended.isEmpty && world.sent == [Self.off, Self.configure(), Self.on])
    }

    // MARK: Silence

    @Test func silentScanIsRestartedAndThenTheControllerIsReset() {
        var world = scanning()
        #expect(world.plan.deadline == world.now + .seconds(90))
        world.advance(.seconds(89))
        #expect(world.restarts == 0)
        world.advance(.seconds(1))
        #expect(world.restarts == 1 && world.plan.deadline == nil)
        world.settle()
        #expect(world.sent == [Self.off, Self.configure(.passive), Self.on])
        #expect(world.plan.deadline == world.now + .seconds(90))
        world.advance(.seconds(90))
        #expect(world.resets == 1)
    }

    @Test("A scan that was restarted in silence and has ended does not have the controller reset for a later one")
    func restartOfAnEarlierScanDoesNotCount() {
        for isLost in [false, true] {
            var world = scanning()
            world.advance(.seconds(90))
            world.settle()
            if isLost {
                world.plan.controllerLost()
                world.controller = ScanWorld().controller
                world.request()
            } else {
                world.stop(1)
                world.settle()
                world.start(2)
            }
            world.settle()
            world.advance(.seconds(90))
            #expect(world.restarts == 2 && world.resets == 0)
        }
    }

    @Test func silenceOnLECodedAloneIsUsual() {
        // The controller of this world takes the parameters of legacy commands, which do not tell the PHYs.
        var world = ScanWorld()
        world.context.canScanCodedPHY = true
        world.start(1, ScanOptions(phys: .leCoded))
        world.settle()
        #expect(world.controller.isOn && world.plan.deadline == nil)
        world.advance(.seconds(900))
        #expect(world.restarts == 0 && world.resets == 0)
        world.start(2)
        world.settle()
        #expect(world.plan.deadline == world.now + .seconds(90))
    }

    @Test func scanOnNoPrimaryPHYIsOnLE1MBesideOthers() {
        var world = ScanWorld()
        world.start(1, ScanOptions(phys: .leCoded))
        world.start(2, ScanOptions(phys: .le2M))
        #expect(world.plan.wanted?.phys == [.le1M, .leCoded])
    }

    @Test func linkShowsThatTheControllerWorks() {
        var world = scanning()
        world.advance(.seconds(90))
        world.settle()
        world.now = world.now + .seconds(90)
        let effects = world.plan.advance(to: world.now, mayReset: false)
        #expect(effects == [.restart(afterSilence: .seconds(90))])
    }

    @Test func silenceHasNoDeadlineWhileScanningIsTurnedOff() {
        var world = scanning()
        world.stop(1)
        world.pass()
        #expect(world.plan.deadline == nil)
        world.advance(.seconds(900))
        #expect(world.restarts == 0 && world.resets == 0)
        world.settle()
        #expect(world.plan.deadline == nil)
    }

    @Test func restartGoesOnIfTheControllerDoesNotKnowTheScan() {
        var world = scanning()
        world.controller.isOn = false
        world.advance(.seconds(90))
        world.pass()
        world.reply(ScanWorld.refusal)
        world.settle()
        #expect(world.ended.isEmpty && world.controller.isOn)
        #expect(world.controller.agrees(with: world.plan.controller))
    }

    @Test func scanThatEndsAfterARefusedRestartIsTurnedOff() {
        var world = scanning()
        world.advance(.seconds(90))
        world.pass()
        world.reply(ScanWorld.refusal)
        world.stop(1)
        world.settle()
        #expect(world.sent == [Self.off, Self.off])
        #expect(!world.controller.isOn && world.plan.controller == .off)
    }

    @Test func silenceIsSummedOverTheTurnsOfAScan() {
        var world = scanning()
        for _ in 0..<2 {
            world.advance(.seconds(30))
            world.context.isHeld = true
            world.request()
            world.settle()
            world.advance(.seconds(1000))
            world.context.isHeld = false
            world.request()
            world.settle()
        }
        #expect(world.plan.deadline == world.now + .seconds(30))
        world.stop(1)
        world.settle()
        world.start(2)
        world.settle()
        #expect(world.plan.deadline == world.now + .seconds(90), "the silence of earlier scans does not count")
    }
}
