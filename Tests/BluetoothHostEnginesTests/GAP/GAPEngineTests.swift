import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("What the plans of GAP share")
struct GAPEngineTests {
    private let peer = GAPSample.address(1)

    // MARK: Set-up

    @Test func addressesAreSetUpBeforeTheOtherPlansRun() {
        var world = GAPWorld(isPrivate: true, listSize: 4)
        world.bonds = [:]
        world.startScan(1)
        #expect(world.passes.isEmpty)
        world.bringUp()
        let opcodes = world.takeSent()
        #expect(opcodes.first == LESetRandomAddress.opcode)
        #expect(opcodes.suffix(2) == [LESetScanParameters.opcode, LESetScanEnable.opcode])
        #expect(world.takeEffects() == [.setAddressResolution(isSupported: true), .addressesPrepared(nil)])
        #expect(world.controller.scan.isOn && world.controller.isResolving && world.violations.isEmpty)
    }

    @Test func refusedRandomAddressEndsTheSetUp() {
        var world = GAPWorld(isPrivate: true)
        world.perform(world.engine.prepareAddresses(world.information, world.context, &world.random))
        let refusal = CommandFailure.status(.hardwareFailure, LESetRandomAddress.opcode)
        world.reply(refusal)
        world.settle()
        #expect(world.takeEffects() == [.setAddressResolution(isSupported: false), .addressesPrepared(refusal)])
        #expect(world.sent.count == 1)
    }

    @Test func refusedResolvingListDoesNotEndTheSetUp() {
        var world = GAPWorld(isPrivate: true, listSize: 4)
        world.perform(world.engine.prepareAddresses(world.information, world.context, &world.random))
        world.reply()
        world.pass()
        let refusal = CommandFailure.status(.hardwareFailure, world.pending[0].command.opcode)
        world.reply(refusal)
        world.settle()
        let effects = world.takeEffects()
        #expect(effects.contains(.report(.resolvedByHost(refusal))))
        #expect(effects.last == .addressesPrepared(nil))
    }

    @Test func lateReplyOfAnEarlierSetUpDoesNotEndTheNextOne() {
        var world = GAPWorld(isPrivate: true)
        world.perform(world.engine.prepareAddresses(world.information, world.context, &world.random))
        let earlier = world.pending.removeFirst()
        world.perform(world.engine.prepareAddresses(world.information, world.context, &world.random))
        world.perform(world.engine.commandEnded(earlier.step, .aborted, world.context))
        world.pass()
        #expect(!world.effects.contains { if case .addressesPrepared = $0 { true } else { false } })
        world.settle()
        #expect(world.effects.last == .addressesPrepared(nil))
    }

    @Test func abortedCommandEndsTheSetUp() {
        var world = GAPWorld(isPrivate: true)
        world.perform(world.engine.prepareAddresses(world.information, world.context, &world.random))
        world.reply(.aborted)
        world.settle()
        #expect(world.effects.last == .addressesPrepared(.aborted))
    }

    // MARK: Addresses

    @Test func changeOfThePrivateAddressStopsAllActivitiesAndContinuesThem() throws {
        var world = GAPWorld.on(isPrivate: true, listSize: 0, canScanWhileInitiating: true)
        world.startScan(1)
        world.connect(1, to: peer)
        try world.advertise(1)
        world.settle()
        #expect(world.controller.scan.isOn && world.controller.isAdvertising)
        #expect(world.controller.initiator.state == .initiating([peer]))
        let before = world.controller.randomAddress
        _ = world.takeSent()
        world.advance(by: .seconds(900))
        world.settle()
        let sent = world.takeSent()
        let change = try #require(sent.firstIndex(of: LESetRandomAddress.opcode))
        #expect(
            Set(sent[..<change]) == [
                LESetScanEnable.opcode, LECreateConnectionCancel.opcode, LESetAdvertisingEnable.opcode,
            ]
        )
        #expect(world.controller.randomAddress != before)
        #expect(world.controller.scan.isOn && world.controller.isAdvertising)
        #expect(world.controller.initiator.state == .initiating([peer]))
        #expect(world.violations.isEmpty)
    }

    @Test func refusedRandomAddressOfALegacyAdvertisementEndsItsStart() throws {
        var world = GAPWorld.on()
        var configuration = AdvertisementConfiguration()
        configuration.address = GAPSample.address(7)
        try world.advertise(1, configuration)
        while world.pending.isEmpty { world.pass() }
        #expect(world.pending.map(\.command.opcode) == [LESetRandomAddress.opcode])
        let refusal = CommandFailure.status(.commandDisallowed, LESetRandomAddress.opcode)
        world.reply(refusal)
        world.settle()
        #expect(
            world.takeEffects() == [
                .report(.addressRefused(refusal)), .finish(GAPWorld.call(1), .command(refusal)),
            ]
        )
    }

    @Test func peersToConnectToComeFirstOnTheResolvingList() {
        var world = GAPWorld.on(listSize: 1)
        world.bond([1, 2])
        world.settle()
        #expect(world.controller.resolvingList == [AddressPlanFixture.peer(2)])
        world.connect(1, to: AddressPlanFixture.peer(1))
        world.settle()
        #expect(world.controller.resolvingList == [AddressPlanFixture.peer(1)])
        #expect(world.violations.isEmpty)
    }

    @Test func peerThatMayUseItsIdentityAddressIsFoundByScanningIfTheControllerHasNoPrivacyModes() {
        var world = GAPWorld(listSize: 4)
        world.information = GAPSample.information(isExtended: false, listSize: 4, hasPrivacyModes: false)
        world.information.filterAcceptListSize = 4
        world.information.supportedStates = .max
        world.bringUp()
        #expect(world.takeEffects().first == .setAddressResolution(isSupported: false))
        world.bond([1])
        let identity = AddressPlanFixture.peer(1)
        world.connect(1, to: identity)
        world.settle()
        #expect(world.controller.resolvingList.isEmpty && world.controller.scan.isOn)
        world.perform(world.engine.resolved(identity, at: identity, world.context))
        world.settle()
        #expect(world.controller.initiator.state == .initiating([identity]))
        #expect(world.violations.isEmpty)
    }

    // MARK: Scanning and initiating

    @Test func scanStopsForAnInitiationOfAControllerThatCannotDoBoth() {
        var world = GAPWorld.on(canScanWhileInitiating: false)
        world.startScan(1)
        world.settle()
        world.connect(1, to: peer)
        world.settle()
        #expect(!world.controller.scan.isOn && world.controller.initiator.state == .initiating([peer]))
        world.advance(by: ConnectionPlan.turnDuration)
        world.settle()
        #expect(world.controller.scan.isOn && world.controller.initiator.state == .idle)
        world.advance(by: ConnectionPlan.turnDuration)
        world.settle()
        #expect(!world.controller.scan.isOn && world.controller.initiator.state == .initiating([peer]))
        #expect(world.violations.isEmpty)
    }

    @Test func attemptThatEndsAndBeginsAgainWhileTheScanStartsDoesNotInitiateBesideTheScan() {
        var world = GAPWorld.on(canScanWhileInitiating: false)
        world.startScan(1)
        world.settle()
        world.connect(1, to: peer)
        while world.controller.scan.isOn {
            world.pass()
            world.reply()
        }
        // The scan plan finds nothing more to do, so initiating may begin. Then nothing is to be initiated any more.
        while world.passes != [.connection] { world.pass() }
        world.perform(world.engine.endAttempt(1, .cancelled, world.context))
        world.stopScan(1)
        world.startScan(2)
        world.passes = [.scan, .connection]
        while !world.controller.scan.isOn {
            if world.passes.first == .connection { world.passes.append(world.passes.removeFirst()) }
            world.pass()
            world.reply()
        }
        world.connect(2, to: peer)
        world.settle()
        #expect(world.violations.isEmpty)
        #expect(world.controller.initiator.state == .initiating([peer]) && !world.controller.scan.isOn)
    }

    @Test func peerWithAnUnresolvableAddressIsFoundByScanningAndThenConnectedTo() {
        var world = GAPWorld.on()
        world.bond([1])
        let identity = AddressPlanFixture.peer(1)
        world.connect(1, to: identity)
        world.settle()
        #expect(world.controller.scan.isOn && world.controller.initiator.state == .idle)
        #expect(world.engine.awaitsResolution(of: identity) == true)
        let found = DeviceAddress(0x4000_0000_0001, isRandom: true)
        world.perform(world.engine.resolved(identity, at: found, world.context))
        world.settle()
        #expect(world.controller.initiator.state == .initiating([found]))
        #expect(world.violations.isEmpty)
    }

    // MARK: Links

    @Test func newLinkEndsTheAttemptAndAnUnwantedOneIsEnded() {
        var world = GAPWorld.on()
        world.connect(1, to: peer)
        world.settle()
        world.controller.initiator.state = .idle
        let link = GAPWorld.link(0x40)
        world.perform(world.engine.linkBegan(link, asCentral: true, with: [peer], world.context))
        guard case .connected(let attempt, link)? = world.effects.last else {
            Issue.record("\(world.effects)")
            return
        }
        #expect(attempt.identifier == 1)
        world.settle()
        #expect(world.engine.connecting.attempts.isEmpty)
        let unwanted = GAPWorld.link(0x41)
        world.perform(world.engine.linkBegan(unwanted, asCentral: true, with: [GAPSample.address(2)], world.context))
        #expect(world.effects.last == .endUnwantedLink(unwanted))
    }

    @Test func addressesOfLinksThatAreNotReportedAreBoundedAndForgottenAtAReset() {
        var world = GAPWorld.on()
        for number in UInt16(1)...100 {
            world.engine.setAddress(GAPSample.address(UInt64(number)), ofComingLink: ConnectionHandle(number))
        }
        #expect(world.engine.addressesOfComingLinks.count == GAPEngine.comingLinkLimit)
        let link = GAPWorld.link(100)
        #expect(world.engine.addressesOfComingLinks[link.handle] == GAPSample.address(100))
        world.perform(world.engine.linkBegan(link, asCentral: false, with: nil, world.context))
        #expect(world.engine.addressesOfComingLinks[link.handle] == nil)
        world.reset()
        #expect(world.engine.addressesOfComingLinks.isEmpty)
    }

    @Test func linkThatDoesNotCountFulfilsTheAttemptOnceItDoes() {
        var world = GAPWorld.on()
        world.connect(1, to: peer)
        world.settle()
        let link = GAPWorld.link(0x40)
        world.perform(world.engine.linkBegan(link, asCentral: false, with: nil, world.context))
        world.settle()
        #expect(world.effects.isEmpty)
        world.perform(world.engine.linkCountsAsConnection(link, with: [peer], world.context))
        #expect(world.effects.count == 1)
        world.settle()
        #expect(world.controller.initiator.state == .idle)
    }

    @Test func initiationThatFindsAnExistingLinkWaitsForItsEnd() {
        var world = GAPWorld.on()
        world.connect(1, to: peer)
        world.pass()
        while world.pending.isEmpty { world.pass() }
        world.reply(.status(.connectionAlreadyExists, LECreateConnection.opcode))
        #expect(world.takeEffects().last == .findLink([peer]))
        let link = GAPWorld.link(0x40)
        world.engine.retryInitiating(afterEndOf: link)
        world.settle()
        #expect(world.controller.initiator.state == .idle)
        _ = world.takeSent()
        world.perform(world.engine.linkEnded(link, with: [peer], world.context))
        world.settle()
        #expect(world.takeSent() == [LECreateConnection.opcode])
    }

    @Test func existingLinkAtThePrivateAddressOfAPeerFulfilsTheAttemptForItsIdentity() {
        var world = GAPWorld.on()
        world.bond([1])
        let identity = AddressPlanFixture.peer(1)
        world.connect(1, to: identity)
        world.settle()
        let found = DeviceAddress(0x4000_0000_0001, isRandom: true)
        world.perform(world.engine.resolved(identity, at: found, world.context))
        while world.pending.first?.command.opcode != LECreateConnection.opcode {
            world.pass()
            if world.pending.first?.command.opcode != LECreateConnection.opcode { world.reply() }
        }
        world.reply(.status(.connectionAlreadyExists, LECreateConnection.opcode))
        guard case .findLink(let addresses)? = world.takeEffects().last else {
            Issue.record("no link is to be found")
            return
        }
        #expect(addresses == [identity, found])
        world.perform(world.engine.linkCountsAsConnection(GAPWorld.link(0x40), with: addresses, world.context))
        #expect(world.effects.count == 1 && world.engine.connecting.attempts.isEmpty)
    }

    @Test func endOfALinkHasScansReportThePeerAgain() {
        var world = GAPWorld.on()
        world.startScan(1)
        world.settle()
        func receive() -> Bool {
            let receipt = AdvertisingReceipt(
                address: peer,
                privateAddress: nil,
                rssi: -40,
                isConnectable: true,
                isScannable: true,
                isLegacy: true,
                isScanResponse: false,
                data: [UInt8]().rawSpan
            )
            return world.engine.scanning.receive(receipt, at: world.now) != nil
        }
        let received = (receive(), receive())
        #expect(received == (true, false))
        world.perform(world.engine.linkEnded(GAPWorld.link(0x40), with: [peer], world.context))
        let isReportedAgain = receive()
        #expect(isReportedAgain)
    }

    @Test func peerReceivedOnTheCodedPHYIsInitiatedOnItAfterTheScan() {
        var world = GAPWorld.on()
        for number: UInt64 in 1...2 {
            world.startScan(number, ScanOptions(phys: [.le1M, .leCoded]))
            let device = GAPSample.address(number)
            world.receiveAdvertisement(of: device, on: number == 1 ? .leCoded : .le1M, secondaryPHY: .leCoded)
            world.perform(world.engine.linkEnded(GAPWorld.link(0x40), with: [device], world.context))
            world.stopScan(number)
        }
        for number: UInt64 in 1...3 { world.connect(number, to: GAPSample.address(number)) }
        #expect(world.engine.connecting.attempts.map(\.usesCodedPHY) == [true, false, false])
    }

    @Test(arguments: [(true, true), (true, false), (false, true)])
    func codedPHYNeedsTheFeatureAndExtendedCommands(isExtended: Bool, hasFeature: Bool) {
        let world = GAPWorld.on()
        var information = GAPSample.information(isExtended: isExtended)
        if hasFeature { information.features.insert(.leCodedPHY) }
        #expect(world.engine.connectionContext(information).canInitiateOnCodedPHY == (isExtended && hasFeature))
    }

    @Test func advertisementThatWasBlockedByALinkStartsAgainWhenALinkEnds() throws {
        var world = GAPWorld.on()
        world.hasLinks = true
        try world.advertise(1)
        world.pass()
        for _ in 0..<3 {
            world.reply()
            world.pass()
        }
        world.reply(.status(.connectionLimitExceeded, LESetAdvertisingEnable.opcode))
        world.settle()
        #expect(!world.controller.isAdvertising)
        world.hasLinks = false
        world.perform(world.engine.linkEnded(GAPWorld.link(0x40), with: [peer], world.context))
        world.settle()
        #expect(world.controller.isAdvertising)
    }

    // MARK: Time and ends

    @Test func onlyTheCallsOfAppsHaveDeadlinesWhileTheControllerIsOff() throws {
        var world = GAPWorld.on(isPrivate: true)
        world.startScan(1)
        world.settle()
        var deadlines = (isOn: world.engine.deadline(isOn: true), isOff: world.engine.deadline(isOn: false))
        #expect(deadlines == (world.now + .seconds(90), nil))
        world.connect(1, to: peer, timeout: .seconds(5))
        world.reset()
        deadlines.isOff = world.engine.deadline(isOn: false)
        #expect(deadlines.isOff == world.now + .seconds(5))
        world.advance(by: .seconds(5))
        guard case .attemptFailed(let attempt, .timedOut)? = world.effects.last else {
            Issue.record("\(world.effects)")
            return
        }
        #expect(attempt.identifier == 1)
    }

    @Test func endOfAllReportsToEachApp() throws {
        var world = GAPWorld.on()
        world.startScan(1)
        world.connect(1, to: peer)
        try world.advertise(1)
        world.perform(world.engine.endAllOperations(.closed, world.context))
        let effects = world.takeEffects()
        #expect(effects.first == .endScan(ScanIdentifier(value: 1), .closed))
        #expect(effects.last == .finish(GAPWorld.call(1), .closed))
        #expect(effects.count == 3)
    }

    @Test func silentScanIsRestartedAndThenTheControllerIsReset() {
        var world = GAPWorld.on()
        world.startScan(1)
        world.settle()
        world.advance(by: .seconds(90))
        world.settle()
        world.advance(by: .seconds(90))
        #expect(
            world.takeEffects() == [
                .scanRestarted(afterSilence: .seconds(90)), .resetSilentController(.seconds(180)),
            ]
        )
    }
}
