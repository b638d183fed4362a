import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

private typealias Fixture = AdvertisingPlanFixture

@Suite("The plan for advertising when commands fail and time passes")
struct AdvertisingPlanFailureTests {
    @Test("An advertisement whose start is refused ends with the error", arguments: 0..<4)
    func refusedStartEndsTheAdvertisementWithTheError(commands: Int) throws {
        var fixture = Fixture()
        try fixture.start()
        fixture.settle(commands: commands)
        let opcode = Fixture.starting(0)[commands].opcode
        let failure = CommandFailure.status(.unsupportedFeatureOrParameterValue, opcode)
        let end = AdvertisingEffect.finish(Fixture.call(1), .command(failure))
        if commands == 0 {
            #expect(fixture.refuse() == [end, .reconsiderAddresses])
        } else {
            // The set that the controller has is removed with its data.
            #expect(fixture.refuse() == [end])
            #expect(fixture.settle().map(\.opcode) == [LERemoveAdvertisingSet.opcode])
        }
        #expect(fixture.next() == nil)
        #expect(fixture.plan.isResting && fixture.plan.entries.isEmpty)
    }

    @Test("An advertisement that no call waits for is set up again a second after a refusal", arguments: 0..<4)
    func advertisementWithoutACallIsSetUpAgainAfterARefusal(commands: Int) throws {
        var fixture = Fixture()
        let advertisement = try fixture.start()
        fixture.plan.remove(Fixture.call(1), of: advertisement)
        fixture.settle(commands: commands)
        let opcode = Fixture.starting(0)[commands].opcode
        let failure = CommandFailure.status(.unsupportedFeatureOrParameterValue, opcode)
        #expect(fixture.refuse() == [.retryLater(failure)])
        #expect(fixture.next() == nil)
        #expect(fixture.plan.deadline == fixture.now + .seconds(1))
        #expect(fixture.advance(by: .milliseconds(999)) == [])
        #expect(fixture.next() == nil)
        #expect(fixture.advance(by: .milliseconds(1)) == [.reconsiderAddresses])
        #expect(fixture.settle() == Fixture.starting(0))
    }

    @Test("An advertisement that cannot be turned off for a restart is tried again later")
    func refusedRestartIsTriedAgainLater() throws {
        var fixture = Fixture()
        try fixture.start()
        fixture.settle()
        fixture.plan.refresh()
        let failure = CommandFailure.status(.commandDisallowed, LESetExtendedAdvertisingEnable.opcode)
        #expect(fixture.refuse(.commandDisallowed) == [.retryLater(failure)])
        #expect(fixture.advance(by: .seconds(1)) == [.reconsiderAddresses])
        // The controller would refuse the parameters while the set is on.
        #expect(fixture.settle() == [Fixture.disable(0)] + Fixture.starting(0))
    }

    @Test("Refused data is an error also beside connections", arguments: [1, 2])
    func refusedDataIsAnErrorBesideConnections(commands: Int) throws {
        var fixture = Fixture()
        fixture.hasLinks = true
        try fixture.start()
        fixture.settle(commands: commands)
        let failure = CommandFailure.status(.memoryCapacityExceeded, Fixture.starting(0)[commands].opcode)
        #expect(fixture.refuse(.memoryCapacityExceeded) == [.finish(Fixture.call(1), .command(failure))])
    }

    @Test("A set that may be on after its end was refused has ended, and is removed later", arguments: 0...1)
    func setThatIsNotRemovedIsRemovedLater(commands: Int) throws {
        var fixture = Fixture()
        let advertisement = try fixture.start()
        fixture.settle()
        _ = fixture.plan.stop(advertisement, isOn: true)
        fixture.settle(commands: commands)
        let opcode = commands == 0 ? LESetExtendedAdvertisingEnable.opcode : LERemoveAdvertisingSet.opcode
        #expect(
            fixture.refuse(.commandDisallowed) == [.ignore(.status(.commandDisallowed, opcode)), .reconsiderAddresses]
        )
        #expect(fixture.next() == nil)
        #expect(fixture.plan.isResting && !fixture.plan.isActive(advertisement))
        #expect(fixture.plan.count == 0 && fixture.plan.leftOnCount == 1)
        #expect(fixture.plan.awaitEnd(of: advertisement, Fixture.call(9)) == false)
        #expect(fixture.plan.deadline == fixture.now + AdvertisingPlan.blockedInterval)
        #expect(fixture.advance(by: AdvertisingPlan.blockedInterval) == [])
        #expect(fixture.plan.awaitEnd(of: advertisement, Fixture.call(9)) == false)
        #expect(fixture.settle() == [Fixture.disable(0), Fixture.remove(0)])
        #expect(fixture.plan.entries.isEmpty)
    }

    @Test("The end of a set that may be on is refused three times at most, and its handle is not used then")
    func endOfASetIsTriedThreeTimes() throws {
        var fixture = Fixture()
        let peer = DeviceAddress(0x0011_2233_4466, isRandom: false)
        let advertisement = try fixture.start(AdvertisementConfiguration(peer: peer))
        fixture.settle()
        #expect(fixture.plan.peers == [peer])
        _ = fixture.plan.stop(advertisement, isOn: true)
        let failure = CommandFailure.status(
            .unsupportedFeatureOrParameterValue,
            LESetExtendedAdvertisingEnable.opcode
        )
        for _ in 1...3 {
            #expect(fixture.refuse() == [.ignore(failure), .reconsiderAddresses])
            #expect(fixture.next() == nil && fixture.plan.peers.isEmpty)
            _ = fixture.advance(by: AdvertisingPlan.blockedInterval)
        }
        #expect(fixture.next() == nil && fixture.plan.deadline == nil)
        fixture.plan.linkEnded()
        #expect(fixture.next() == nil && fixture.plan.leftOnCount == 1)
        try fixture.start()
        #expect(fixture.settle() == Fixture.starting(1))
        _ = fixture.plan.controllerLost()
        #expect(fixture.plan.entries.map(\.handle) == [1] && fixture.plan.leftOnCount == 0)
    }

    /// A set that was turned off and is not removed is used for the next advertisement, at the latest after three
    /// refusals.
    @Test(
        "A controller that removes no set does not run out of sets",
        arguments: [(.unsupportedFeatureOrParameterValue, 1), (.commandDisallowed, 3)] as [(HCIErrorCode, UInt8)]
    )
    func refusedRemovalsDoNotUseUpTheSets(code: HCIErrorCode, handleCount: UInt8) throws {
        var fixture = Fixture()
        for _ in 1...10 {
            let advertisement = try fixture.start()
            fixture.settle(refusing: LERemoveAdvertisingSet.opcode, code)
            let entry = try #require(fixture.plan.entries.last)
            #expect(entry.state == .on && entry.handle < handleCount)
            _ = fixture.plan.stop(advertisement, isOn: true)
            fixture.settle(refusing: LERemoveAdvertisingSet.opcode, code)
            #expect(fixture.plan.count == 0)
        }
    }

    @Test(
        "Legacy advertising that was not turned off is turned off before the next one is set up",
        arguments: [1, 3],
        [false, true]
    )
    func legacyAdvertisingIsTurnedOffBeforeTheNext(refusals: Int, isRefusedAgain: Bool) throws {
        var fixture = Fixture(isExtended: false)
        let advertisement = try fixture.start()
        fixture.settle()
        _ = fixture.plan.stop(advertisement, isOn: true)
        let failure = CommandFailure.status(.unsupportedFeatureOrParameterValue, LESetAdvertisingEnable.opcode)
        for number in 1...refusals {
            if number > 1 { _ = fixture.advance(by: AdvertisingPlan.blockedInterval) }
            #expect(fixture.refuse() == [.ignore(failure), .reconsiderAddresses])
        }
        #expect(fixture.next() == nil && fixture.plan.mayAdvertise && fixture.plan.count == 0)
        try fixture.start()
        if isRefusedAgain {
            #expect(fixture.refuse() == [.ignore(failure), .reconsiderAddresses])
            // The controller accepts the parameters, so it was off.
            #expect(fixture.settle() == Fixture.legacyStart)
        } else {
            #expect(fixture.settle() == [Fixture.legacyEnable(false)] + Fixture.legacyStart)
        }
        #expect(fixture.plan.entries.map(\.state) == [.on])
        fixture.plan.linkEnded()
        #expect(fixture.settle() == [])
    }

    @Test("An advertisement that was not paused may be on although it was not turned on again")
    func advertisementThatWasNotPausedMayBeOn() throws {
        var fixture = Fixture()
        try fixture.start()
        fixture.settle()
        fixture.context.addresses.hold = .everything
        _ = fixture.refuse(.commandDisallowed)
        fixture.context.addresses.hold = .nothing
        let next = try fixture.requireNext()
        #expect(next.command == Fixture.enable(0))
        let failure = GAPSample.refusal(of: next.command)
        let effects = fixture.plan.failed(next.step, failure, at: fixture.now, hasLinks: false)
        #expect(effects == [.retryLater(failure)])
        _ = fixture.advance(by: .seconds(1))
        #expect(fixture.settle() == [Fixture.disable(0)] + Fixture.starting(0))
    }

    @Test("The handle of a set that was not removed is not used for the next one", arguments: [false, true])
    func handleOfASetThatWasNotRemovedIsNotReused(isRefusedAgain: Bool) throws {
        var fixture = Fixture()
        let advertisement = try fixture.start()
        fixture.settle()
        _ = fixture.plan.stop(advertisement, isOn: true)
        fixture.settle(commands: 1)
        _ = fixture.refuse(.commandDisallowed)
        try fixture.start()
        #expect(fixture.plan.entries.map(\.handle) == [0, 1])
        // The controller may advertise the set, so it is turned off again.
        #expect(fixture.settle(commands: 1) == [Fixture.disable(0)])
        if isRefusedAgain {
            _ = fixture.refuse(.commandDisallowed)
            #expect(fixture.settle() == Fixture.starting(1))
            fixture.plan.linkEnded()
            #expect(fixture.settle() == [Fixture.disable(0), Fixture.remove(0)])
        } else {
            #expect(fixture.settle() == [Fixture.remove(0)] + Fixture.starting(1))
        }
        #expect(fixture.plan.entries.map(\.handle) == [1])
    }

    @Test("A set that the controller does not know when it is removed is forgotten")
    func unknownSetIsForgotten() throws {
        var fixture = Fixture()
        let advertisement = try fixture.start()
        fixture.settle()
        _ = fixture.plan.stop(advertisement, isOn: true)
        fixture.settle(commands: 1)
        _ = fixture.refuse(.unknownAdvertisingIdentifier)
        #expect(fixture.plan.entries.isEmpty && fixture.plan.deadline == nil)
    }

    @Test("A blocked advertisement is tried again after 30 s, although no connection has ended")
    func blockedAdvertisementIsTriedAgain() throws {
        var fixture = Fixture()
        fixture.hasLinks = true
        try fixture.start()
        fixture.settle(commands: 3)
        #expect(fixture.refuse(.commandDisallowed) == [.finish(Fixture.call(1), nil)])
        #expect(fixture.next() == nil)
        _ = fixture.advance(by: .seconds(29))
        #expect(fixture.next() == nil)
        _ = fixture.advance(by: .seconds(1))
        #expect(fixture.settle().last == Fixture.enable(0))
        #expect(fixture.plan.entries.first?.state == .on)
    }

    @Test("Without connections, an advertisement is not blocked by its refusal")
    func refusalDoesNotBlockAnAdvertisementWithoutLinks() throws {
        var fixture = Fixture()
        try fixture.start()
        fixture.settle(commands: 3)
        let failure = CommandFailure.status(.memoryCapacityExceeded, LESetExtendedAdvertisingEnable.opcode)
        #expect(fixture.refuse(.memoryCapacityExceeded) == [.finish(Fixture.call(1), .command(failure))])
    }

    @Test("An advertisement is set up again in a controller that was reset after any command", arguments: 0...4)
    func resetWhileStartingSetsTheAdvertisementUpAgain(commands: Int) throws {
        var fixture = Fixture()
        try fixture.start()
        fixture.settle(commands: commands)
        _ = fixture.takeEffects()
        #expect(fixture.plan.controllerLost() == [])
        #expect(fixture.plan.isResting)
        #expect(fixture.settle() == Fixture.starting(0))
        #expect(fixture.takeEffects() == (commands == 4 ? [] : [.finish(Fixture.call(1), nil)]))
    }

    @Test("A command that the reset of the controller aborts does not end its advertisement", arguments: 0..<4)
    func commandAbortedByAResetDoesNotEndItsAdvertisement(commands: Int) throws {
        var fixture = Fixture()
        try fixture.start()
        fixture.settle(commands: commands)
        let aborted = try fixture.requireNext()
        #expect(fixture.plan.failed(aborted.step, .aborted, at: fixture.now, hasLinks: false) == [])
        #expect(fixture.plan.controllerLost() == [])
        #expect(fixture.settle() == Fixture.starting(0))
        #expect(fixture.takeEffects() == [.finish(Fixture.call(1), nil)])
    }

    @Test("The reply to a command of an earlier controller has no effect", arguments: 0..<4, [false, true])
    func replyToAnEarlierControllerHasNoEffect(commands: Int, isLost: Bool) throws {
        var fixture = Fixture()
        try fixture.start()
        fixture.settle(commands: commands)
        let stale = try fixture.requireNext()
        #expect(fixture.plan.controllerLost() == [])
        if isLost {
            #expect(fixture.plan.failed(stale.step, .aborted, at: fixture.now, hasLinks: false) == [])
        } else {
            #expect(fixture.plan.finished(stale.step, at: fixture.now) == [])
        }
        let next = try fixture.requireNext()
        #expect(next.command == Fixture.parameters(0))
        #expect(fixture.plan.finished(stale.step, at: fixture.now) == [])
        #expect(fixture.next() == nil, "the command is still in progress")
        #expect(fixture.plan.finished(next.step, at: fixture.now) == [])
        #expect(fixture.settle() == Array(Fixture.starting(0).dropFirst()))
    }

    @Test("An advertisement that ends has ended when the controller is reset", arguments: [0, 1], [false, true])
    func resetEndsAnAdvertisementThatIsBeingStopped(commands: Int, isInProgress: Bool) throws {
        var fixture = Fixture()
        let advertisement = try fixture.start()
        fixture.settle()
        _ = fixture.plan.stop(advertisement, isOn: true)
        #expect(fixture.plan.awaitEnd(of: advertisement, Fixture.call(9)) == true)
        fixture.settle(commands: commands)
        if isInProgress { _ = fixture.next() }
        #expect(fixture.plan.controllerLost() == [.finish(Fixture.call(9), nil)])
        #expect(fixture.plan.entries.isEmpty)
        #expect(fixture.next() == nil)
    }

    // MARK: Time

    @Test("All advertisements are turned off and on again from time to time")
    func advertisementsAreTurnedOffAndOnFromTimeToTime() throws {
        var fixture = Fixture()
        #expect(fixture.plan.deadline == nil)
        try fixture.start()
        try fixture.start()
        fixture.settle()
        #expect(fixture.plan.deadline == fixture.now + .seconds(90))
        #expect(fixture.advance(by: .seconds(89)) == [])
        #expect(fixture.settle() == [])
        #expect(fixture.advance(by: .seconds(1)) == [])
        #expect(
            fixture.settle() == [Fixture.disable(0), Fixture.enable(0), Fixture.disable(1), Fixture.enable(1)]
        )
        #expect(fixture.plan.deadline == fixture.now + .seconds(90))
        #expect(fixture.takeEffects() == [.finish(Fixture.call(1), nil), .finish(Fixture.call(2), nil)])
    }

    @Test("An advertisement that starts again does not postpone the refresh of the others")
    func restartDoesNotPostponeTheRefreshOfTheOthers() throws {
        var fixture = Fixture()
        try fixture.start()
        try fixture.start()
        fixture.settle()
        _ = fixture.advance(by: .seconds(60))
        _ = fixture.plan.terminated(0, by: 0x40)
        #expect(fixture.settle() == [Fixture.enable(0)])
        #expect(fixture.plan.deadline == fixture.now + .seconds(30))
        _ = fixture.advance(by: .seconds(30))
        #expect(
            fixture.settle() == [Fixture.disable(0), Fixture.enable(0), Fixture.disable(1), Fixture.enable(1)]
        )
    }

    @Test("An advertisement that starts again while it is the only one is refreshed after the whole interval")
    func restartOfTheOnlyAdvertisementPostponesItsRefresh() throws {
        var fixture = Fixture()
        try fixture.start()
        fixture.settle()
        _ = fixture.advance(by: .seconds(60))
        _ = fixture.plan.terminated(0, by: 0x40)
        fixture.settle()
        #expect(fixture.plan.deadline == fixture.now + .seconds(90))
        _ = fixture.plan.controllerLost()
        #expect(fixture.plan.deadline == nil)
    }

    @Test("An advertisement that ends by itself before its refresh is only turned on")
    func setThatEndsBeforeItsRefreshIsOnlyTurnedOn() throws {
        var fixture = Fixture()
        try fixture.start()
        fixture.settle()
        _ = fixture.advance(by: .seconds(90))
        _ = fixture.plan.terminated(0, by: nil)
        #expect(fixture.settle() == [Fixture.enable(0)])
    }

    @Test("Without advertisements there is no deadline")
    func thereIsNoDeadlineWithoutAdvertisements() throws {
        var fixture = Fixture()
        let advertisement = try fixture.start()
        fixture.settle()
        _ = fixture.plan.stop(advertisement, isOn: true)
        fixture.settle()
        #expect(fixture.plan.deadline == nil)
    }
}

extension AdvertisingPlanFixture {
    /// Has the controller perform commands until the plan has none. It refuses those with this opcode.
    fileprivate mutating func settle(refusing opcode: HCIOpcode, _ code: HCIErrorCode) {
        while let next = next() {
            if next.command.opcode == opcode {
                let failure = GAPSample.refusal(of: next.command, code)
                effects += plan.failed(next.step, failure, at: now, hasLinks: hasLinks)
            } else {
                effects += plan.finished(next.step, at: now)
            }
        }
    }
}
