import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

private typealias Fixture = AdvertisingPlanFixture

@Suite("The plan for advertising on a controller that refuses to turn advertising off")
struct AdvertisingPlanRestartTests {
    @Test("Advertising that is off is set up again after two refusals", arguments: [true, false])
    func restartThatIsRefusedTwiceContinuesWithTheParameters(isExtended: Bool) throws {
        var fixture = Fixture(isExtended: isExtended)
        try fixture.start()
        fixture.settle()
        fixture.plan.refresh()
        let opcode = isExtended ? LESetExtendedAdvertisingEnable.opcode : LESetAdvertisingEnable.opcode
        for _ in 1...2 {
            #expect(fixture.refuse(.commandDisallowed) == [.retryLater(.status(.commandDisallowed, opcode))])
            #expect(fixture.advance(by: .seconds(1)) == [.reconsiderAddresses])
        }
        #expect(fixture.settle() == (isExtended ? Fixture.starting(0) : Fixture.legacyStart))
        #expect(fixture.plan.entries.map(\.state) == [.on])
        // The next refusal is the first again.
        fixture.plan.refresh()
        _ = fixture.refuse(.commandDisallowed)
        _ = fixture.advance(by: .seconds(1))
        #expect(fixture.next()?.command == (isExtended ? Fixture.disable(0) : Fixture.legacyEnable(false)))
    }

    @Test("Advertising whose parameters are refused after two refused restarts is turned off again")
    func refusedParametersAfterRefusedRestartsTurnAdvertisingOffAgain() throws {
        var fixture = Fixture()
        fixture.hasLinks = true
        try fixture.start()
        fixture.settle()
        fixture.plan.refresh()
        for _ in 1...2 {
            _ = fixture.refuse(.commandDisallowed)
            _ = fixture.advance(by: .seconds(1))
        }
        // The set is on, so its parameters are refused, whatever links there are.
        let failure = CommandFailure.status(.commandDisallowed, LESetExtendedAdvertisingParameters.opcode)
        #expect(fixture.refuse(.commandDisallowed) == [.retryLater(failure)])
        _ = fixture.advance(by: .seconds(1))
        #expect(fixture.settle() == [Fixture.disable(0)] + Fixture.starting(0))
    }

    @Test("The train of a set that the controller refuses to turn off is not stopped")
    func refusedRestartsDoNotStopThePeriodicTrain() throws {
        var fixture = Fixture()
        fixture.context.information.commands.insert(LESetPeriodicAdvertisingEnable.opcode)
        try fixture.start(
            AdvertisementConfiguration(
                isConnectable: false,
                isScannable: false,
                periodic: PeriodicAdvertisingConfiguration(data: AdvertisingData(decoding: [2, 1, 6]))
            )
        )
        fixture.settle()
        fixture.plan.refresh()
        for _ in 1...3 {
            let next = try fixture.requireNext()
            #expect(next.command == Fixture.disable(0))
            let failure = GAPSample.refusal(of: next.command, .commandDisallowed)
            let effects = fixture.plan.failed(next.step, failure, at: fixture.now, hasLinks: false)
            #expect(effects == [.retryLater(failure)])
            #expect(fixture.plan.entries[0].isPeriodicOn)
            _ = fixture.advance(by: .seconds(1))
        }
        // The controller accepts it now.
        #expect(fixture.settle().first == Fixture.disable(0))
        #expect(fixture.plan.entries[0].state == .on && fixture.plan.entries[0].isPeriodicOn)
    }

    @Test("A set that the controller does not have is set up again at once", arguments: [true, false])
    func setThatTheControllerDoesNotHaveIsSetUpAgain(isPause: Bool) throws {
        var fixture = Fixture()
        try fixture.start()
        fixture.settle()
        if isPause { fixture.context.addresses.hold = .everything } else { fixture.plan.refresh() }
        let failure = CommandFailure.status(.unknownAdvertisingIdentifier, LESetExtendedAdvertisingEnable.opcode)
        #expect(fixture.refuse(.unknownAdvertisingIdentifier) == [.ignore(failure)])
        #expect(!fixture.plan.mayAdvertise)
        if isPause { #expect(fixture.next() == nil && fixture.plan.isResting) }
        fixture.context.addresses.hold = .nothing
        #expect(fixture.settle() == Fixture.starting(0))
        #expect(fixture.plan.entries.map(\.state) == [.on])
    }

    @Test("A set that ends while the controller answers that it does not have it has ended")
    func endingSetThatTheControllerDoesNotHaveHasEnded() throws {
        var fixture = Fixture()
        let advertisement = try fixture.start()
        fixture.settle()
        fixture.plan.refresh()
        let next = try fixture.requireNext()
        #expect(fixture.plan.stop(advertisement, isOn: true) == [])
        let failure = GAPSample.refusal(of: next.command, .unknownAdvertisingIdentifier)
        let effects = fixture.plan.failed(next.step, failure, at: fixture.now, hasLinks: false)
        #expect(effects == [.ignore(failure), .reconsiderAddresses])
        #expect(fixture.plan.entries.isEmpty)
    }
}
