import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

private typealias Fixture = AdvertisingPlanFixture

@Suite("The plan for advertising")
struct AdvertisingPlanTests {
    // MARK: Starting

    @Test("An advertising set is set up, gets its address and is turned on")
    func setIsSetUpAddressedAndTurnedOn() throws {
        var fixture = Fixture()
        let own = GAPSample.address(1)
        try fixture.start(
            AdvertisementConfiguration(
                advertisingData: AdvertisingData(decoding: [2, 1, 6]),
                scanResponseData: AdvertisingData(decoding: [2, 10, 0]),
                address: own
            )
        )
        #expect(
            fixture.settle() == [
                Fixture.parameters(0, ownType: .random), Fixture.data(0, [2, 1, 6]), Fixture.response(0, [2, 10, 0]),
                Fixture.address(0, own), Fixture.enable(0),
            ]
        )
        #expect(fixture.takeEffects() == [.finish(Fixture.call(1), nil)])
        #expect(fixture.plan.entries.first?.state == .on)
        #expect(fixture.plan.addressOfNewLink(own: GAPSample.identity, usesExtendedCommands: true) == own)
    }

    @Test("Legacy advertising is set up and turned on")
    func legacyAdvertisingIsSetUpAndTurnedOn() throws {
        var fixture = Fixture(isExtended: false)
        try fixture.start()
        #expect(fixture.settle() == Fixture.legacyStart)
        #expect(fixture.takeEffects() == [.finish(Fixture.call(1), nil)])
    }

    @Test("Data that does not fit one command is sent in fragments")
    func longDataIsFragmented() throws {
        var fixture = Fixture()
        let data = (0..<600).map { UInt8(truncatingIfNeeded: $0) }
        try fixture.start(.init(isConnectable: false, advertisingData: AdvertisingData(decoding: data)))
        #expect(
            fixture.settle() == [
                Fixture.parameters(0, []), Fixture.data(0, Array(data[..<251]), .firstFragment),
                Fixture.data(0, Array(data[251..<502]), .intermediateFragment),
                Fixture.data(0, Array(data[502...]), .lastFragment), Fixture.enable(0),
            ]
        )
    }

    @Test("An advertisement gets all its commands before the next one")
    func advertisementsAreStartedInTurn() throws {
        var fixture = Fixture()
        try fixture.start()
        #expect(fixture.settle(commands: 2) == [Fixture.parameters(0), Fixture.data(0)])
        try fixture.start()
        #expect(fixture.settle() == [Fixture.response(0), Fixture.enable(0)] + Fixture.starting(1))
        #expect(fixture.takeEffects() == [.finish(Fixture.call(1), nil), .finish(Fixture.call(2), nil)])
    }

    @Test("There are as many advertisements as the controller has sets")
    func numberOfAdvertisementsIsLimitedToTheSetsOfTheController() throws {
        var fixture = Fixture()
        try fixture.start()
        let second = try fixture.start()
        let error = HostError.limitReached(
            "this controller advertises at most 2 set(s) at a time; stop another one first"
        )
        #expect(throws: error) { try fixture.start() }
        fixture.settle()
        #expect(fixture.plan.stop(second, isOn: true) == [])
        try fixture.start()
        #expect(fixture.plan.entries.map(\.handle) == [0, 1, 2])
    }

    @Test("An advertisement that the controller cannot advertise is refused")
    func impossibleAdvertisementIsRefused() {
        var fixture = Fixture(isExtended: false)
        let long = AdvertisingData(decoding: [UInt8](repeating: 0, count: 32))
        for configuration in [
            AdvertisementConfiguration(interval: .milliseconds(19)),
            AdvertisementConfiguration(address: DeviceAddress(1, isRandom: true)),
            AdvertisementConfiguration(isConnectable: false, peer: GAPSample.address(1)),
            AdvertisementConfiguration(advertisingData: long),
        ] {
            #expect(throws: HostError.self) { try fixture.start(configuration) }
        }
        #expect(fixture.plan.entries.isEmpty)
    }

    // MARK: Stopping

    @Test("A set that is stopped is turned off and removed")
    func stoppedSetIsTurnedOffAndRemoved() throws {
        var fixture = Fixture()
        let advertisement = try fixture.start()
        fixture.settle()
        _ = fixture.takeEffects()
        #expect(fixture.plan.stop(advertisement, isOn: true) == [])
        #expect(fixture.plan.awaitEnd(of: advertisement, Fixture.call(9)) == true)
        #expect(fixture.settle() == [Fixture.disable(0), Fixture.remove(0)])
        #expect(fixture.takeEffects() == [.finish(Fixture.call(9), nil), .reconsiderAddresses])
        #expect(fixture.plan.awaitEnd(of: advertisement, Fixture.call(9)) == false)
        #expect(fixture.plan.isResting)
    }

    /// A controller refuses to turn off a set that does not exist.
    @Test("An advertisement can be stopped after each command of its start", arguments: 0...4)
    func advertisementCanBeStoppedAfterEachCommandOfItsStart(commands: Int) throws {
        var fixture = Fixture()
        let advertisement = try fixture.start()
        fixture.settle(commands: commands)
        fixture.plan.remove(Fixture.call(1), of: advertisement)
        #expect(fixture.plan.stop(advertisement, isOn: true) == (commands == 0 ? [.reconsiderAddresses] : []))
        switch commands {
        case 0: #expect(fixture.settle() == [])
        case 1..<4: #expect(fixture.settle() == [Fixture.remove(0)])
        default: #expect(fixture.settle() == [Fixture.disable(0), Fixture.remove(0)])
        }
        #expect(fixture.plan.entries.isEmpty)
    }

    @Test("Legacy advertising that was not turned on is not turned off", arguments: 0...4)
    func legacyAdvertisingThatIsNotOnIsNotTurnedOff(commands: Int) throws {
        var fixture = Fixture(isExtended: false)
        let advertisement = try fixture.start()
        fixture.settle(commands: commands)
        fixture.plan.remove(Fixture.call(1), of: advertisement)
        #expect(fixture.plan.stop(advertisement, isOn: true) == (commands < 4 ? [.reconsiderAddresses] : []))
        #expect(fixture.settle() == (commands < 4 ? [] : [Fixture.legacyEnable(false)]))
        #expect(fixture.plan.entries.isEmpty)
    }

    @Test("An advertisement can be stopped while a command for it is in progress", arguments: 0..<4, [false, true])
    func advertisementCanBeStoppedDuringACommand(commands: Int, isRefused: Bool) throws {
        var fixture = Fixture()
        let advertisement = try fixture.start()
        fixture.settle(commands: commands)
        let next = try fixture.requireNext()
        _ = fixture.plan.stop(advertisement, isOn: true)
        #expect(fixture.next() == nil)
        if isRefused {
            let failure = GAPSample.refusal(of: next.command)
            fixture.effects = fixture.plan.failed(next.step, failure, at: fixture.now, hasLinks: false)
        } else {
            #expect(fixture.plan.finished(next.step, at: fixture.now) == [])
        }
        switch (commands, isRefused) {
        case (0, true): #expect(fixture.settle() == [])
        case (3, false): #expect(fixture.settle() == [Fixture.disable(0), Fixture.remove(0)])
        default: #expect(fixture.settle() == [Fixture.remove(0)])
        }
        #expect(fixture.takeEffects() == [.finish(Fixture.call(1), nil), .reconsiderAddresses])
    }

    @Test("A set that ended while it was being stopped is removed", arguments: [false, true])
    func setThatEndsBeforeItsStartIsReportedCanBeStopped(isExtended: Bool) throws {
        var fixture = Fixture(isExtended: isExtended)
        let advertisement = try fixture.start()
        fixture.settle(commands: 3)
        let next = try fixture.requireNext()
        if isExtended { _ = fixture.plan.terminated(0, by: 0x40) } else { fixture.plan.endedByConnection() }
        #expect(fixture.plan.stop(advertisement, isOn: true) == [])
        #expect(fixture.plan.finished(next.step, at: fixture.now) == [])
        #expect(
            fixture.settle() == (isExtended ? [Fixture.disable(0), Fixture.remove(0)] : [Fixture.legacyEnable(false)])
        )
        #expect(fixture.takeEffects() == [.finish(Fixture.call(1), nil), .reconsiderAddresses])
    }

    /// The reply is malformed, so the controller may have the set, or advertise it.
    @Test("An advertisement whose start has an unclear outcome is turned off and removed", arguments: [0, 3])
    func advertisementWithAnUnclearStartIsRemoved(commands: Int) throws {
        var fixture = Fixture()
        try fixture.start()
        fixture.settle(commands: commands)
        let next = try fixture.requireNext()
        let failure = CommandFailure.malformedReply(next.command.opcode, .trailingBytes(count: 1))
        #expect(
            fixture.plan.failed(next.step, failure, at: fixture.now, hasLinks: false)
                == [.finish(Fixture.call(1), .command(failure))]
        )
        #expect(fixture.settle() == (commands == 0 ? [] : [Fixture.disable(0)]) + [Fixture.remove(0)])
    }

    @Test("A set that ends is removed before another one is set up, because the controller may have no room for both")
    func endingSetIsRemovedBeforeAnotherIsSetUp() throws {
        var fixture = Fixture(sets: 3)
        try fixture.start()
        let second = try fixture.start()
        fixture.settle()
        try fixture.start()
        fixture.settle(commands: 1)
        _ = fixture.plan.stop(second, isOn: true)
        try fixture.start()
        #expect(
            fixture.settle() == [Fixture.data(2), Fixture.response(2), Fixture.enable(2)]
                + [Fixture.disable(1), Fixture.remove(1)] + Fixture.starting(3)
        )
    }

    @Test("A stop ends at once if the controller cannot be used")
    func stopEndsAtOnceWithoutAController() throws {
        var fixture = Fixture()
        let advertisement = try fixture.start()
        #expect(
            fixture.plan.stop(advertisement, isOn: false) == [.finish(Fixture.call(1), nil), .reconsiderAddresses]
        )
        #expect(fixture.plan.entries.isEmpty)
    }

    @Test("The calls of all advertisements end when the host is closed")
    func closeEndsTheCallsOfAllAdvertisements() throws {
        var fixture = Fixture()
        try fixture.start()
        let next = try fixture.requireNext()
        #expect(fixture.plan.removeAll(.closed) == [.finish(Fixture.call(1), .closed)])
        #expect(fixture.plan.finished(next.step, at: fixture.now) == [])
        #expect(fixture.plan.deadline == nil)
    }

    // MARK: Connections

    @Test("A set that a connection has ended is turned on again, and its address is the link's")
    func setEndedByAConnectionIsTurnedOnAgain() throws {
        var fixture = Fixture()
        let own = GAPSample.address(1)
        try fixture.start(AdvertisementConfiguration(address: own))
        try fixture.start()
        fixture.settle()
        #expect(fixture.plan.terminated(0, by: 0x40) == [.ownAddressKnown(0x40, own)])
        #expect(fixture.plan.terminated(1, by: 0x41) == [.ownAddressKnown(0x41, nil)])
        #expect(fixture.plan.terminated(7, by: 0x42) == [])
        #expect(fixture.settle() == [Fixture.enable(0), Fixture.enable(1)])
        #expect(fixture.plan.terminated(0, by: nil) == [])
        #expect(fixture.settle() == [Fixture.enable(0)])
    }

    @Test("A set whose end is reported before its start is turned on again")
    func setEndedBeforeItsStartIsReportedIsTurnedOnAgain() throws {
        var fixture = Fixture()
        try fixture.start()
        fixture.settle(commands: 3)
        let next = try fixture.requireNext()
        _ = fixture.plan.terminated(0, by: 0x40)
        #expect(fixture.plan.finished(next.step, at: fixture.now) == [.finish(Fixture.call(1), nil)])
        #expect(fixture.settle() == [Fixture.enable(0)])
        #expect(fixture.settle() == [])
    }

    @Test("Legacy advertising is turned on again after a connection, if it is connectable", arguments: [false, true])
    func legacyAdvertisingIsTurnedOnAgainAfterAConnection(isConnectable: Bool) throws {
        var fixture = Fixture(isExtended: false)
        try fixture.start(AdvertisementConfiguration(isConnectable: isConnectable))
        fixture.settle()
        fixture.plan.endedByConnection()
        #expect(fixture.settle() == (isConnectable ? [Fixture.legacyEnable()] : []))
    }

    @Test(
        "A set for which the controller has no room beside its connections is turned on when one ends",
        arguments: [.connectionLimitExceeded, .commandDisallowed, .memoryCapacityExceeded] as [HCIErrorCode]
    )
    func blockedSetIsTurnedOnWhenAConnectionEnds(code: HCIErrorCode) throws {
        var fixture = Fixture()
        fixture.hasLinks = true
        try fixture.start()
        fixture.settle(commands: 3)
        #expect(fixture.refuse(code) == [.finish(Fixture.call(1), nil)])
        #expect(fixture.next() == nil)
        fixture.plan.linkEnded()
        #expect(fixture.settle() == [Fixture.enable(0)])
    }

    @Test("A set that is directed to a bonded peer uses the peer's current address each time")
    func directedSetUsesTheCurrentAddressOfThePeerEachTime() throws {
        var fixture = Fixture()
        let peer = DeviceAddress(0x0011_2233_4466, isRandom: false)
        try fixture.start(AdvertisementConfiguration(peer: peer))
        let properties: AdvertisingEventProperties = [.connectable, .directed, .useLegacyPDUs]
        #expect(fixture.settle() == [Fixture.parameters(0, properties, peer: peer), Fixture.enable(0)])
        _ = fixture.plan.terminated(0, by: 0x40)
        fixture.resolver.setKeys([AddressResolver.Key(identity: peer, value: 5)])
        let commands = fixture.settle()
        #expect(commands.count == 2)
        let parameters = try #require(commands.first?.decode(LESetExtendedAdvertisingParameters.self))
        #expect(fixture.resolver.identity(of: parameters.peerAddress) == peer)
    }

    // MARK: Addresses

    @Test("All advertisements pause while the addresses change, and continue as they were set up")
    func advertisementsPauseWhileTheAddressesChange() throws {
        var fixture = Fixture()
        try fixture.start()
        try fixture.start()
        fixture.settle(commands: 6)
        fixture.context.addresses.hold = .everything
        #expect(fixture.settle() == [Fixture.disable(0)])
        #expect(fixture.plan.isResting)
        fixture.context.addresses.hold = .nothing
        #expect(fixture.settle() == [Fixture.enable(0), Fixture.response(1), Fixture.enable(1)])
    }

    @Test("An advertisement that cannot be turned off for a change of addresses does not delay it")
    func refusedPauseDoesNotDelayAChangeOfAddresses() throws {
        var fixture = Fixture()
        try fixture.start()
        fixture.settle()
        fixture.context.addresses.hold = .everything
        let failure = CommandFailure.status(.commandDisallowed, LESetExtendedAdvertisingEnable.opcode)
        #expect(fixture.refuse(.commandDisallowed) == [.ignore(failure)])
        #expect(fixture.next() == nil)
        #expect(fixture.plan.isResting)
    }

    @Test("A set with an old private address gets the new one, unless the controller generates addresses")
    func setWithAnOldPrivateAddressGetsTheNewOne() throws {
        var fixture = Fixture()
        fixture.context.addresses.advertisingAddress = GAPSample.address(1)
        try fixture.start()
        fixture.settle()
        fixture.context.addresses.advertisingAddress = GAPSample.address(2)
        #expect(
            fixture.settle() == [
                Fixture.disable(0), Fixture.address(0, GAPSample.address(2)), Fixture.enable(0),
            ]
        )
        fixture.context.addresses.isMadeByController = true
        fixture.context.addresses.advertisingAddress = GAPSample.address(3)
        #expect(fixture.settle() == [])
    }

    @Test("Legacy advertising waits while the addresses change")
    func legacyAdvertisingWaits() throws {
        var fixture = Fixture(isExtended: false)
        fixture.context.addresses.isChanging = true
        let advertisement = try fixture.start()
        #expect(fixture.next() == nil)
        fixture.context.addresses.isChanging = false
        #expect(fixture.settle() == Fixture.legacyStart)
        fixture.context.addresses.isChanging = true
        _ = fixture.plan.stop(advertisement, isOn: true)
        #expect(fixture.settle() == [Fixture.legacyEnable(false)])
        #expect(fixture.plan.entries.isEmpty)
    }

    @Test("Legacy advertising with an address of its own waits until the controller has that address")
    func legacyAdvertisingWaitsForItsAddress() throws {
        var fixture = Fixture(isExtended: false)
        let own = GAPSample.address(1)
        try fixture.start(AdvertisementConfiguration(address: own))
        #expect(fixture.plan.legacyAddress == own)
        #expect(fixture.next() == nil)
        fixture.context.addresses.randomAddress = own
        #expect(fixture.settle().count == 4)
        #expect(fixture.plan.addressOfNewLink(own: GAPSample.identity, usesExtendedCommands: false) == own)
    }

    @Test("Legacy advertising ends if the controller refuses its address, or is tried again later")
    func refusedAddressEndsLegacyAdvertisingOrIsTriedLater() throws {
        var fixture = Fixture(isExtended: false)
        let addresses = fixture.context.addresses
        let failure = CommandFailure.status(.commandDisallowed, LESetRandomAddress.opcode)
        try fixture.start(AdvertisementConfiguration(address: GAPSample.address(1)))
        #expect(
            fixture.plan.addressRefused(failure, addresses, at: fixture.now) == [
                .finish(Fixture.call(1), .command(failure)), .reconsiderAddresses,
            ]
        )
        let advertisement = try fixture.start(AdvertisementConfiguration(address: GAPSample.address(2)))
        fixture.plan.remove(Fixture.call(2), of: advertisement)
        #expect(fixture.plan.addressRefused(failure, addresses, at: fixture.now) == [.retryLater(failure)])
        #expect(fixture.plan.addressRefused(failure, addresses, at: fixture.now) == [])
        #expect(fixture.advance(by: .seconds(1)) == [.reconsiderAddresses])
        fixture.context.addresses.randomAddress = GAPSample.address(2)
        #expect(fixture.settle().count == 4)
    }
}
