import BLECryptography
import BLEHCI
import BLESMP
import BluetoothTypes
import Testing

@testable import BluetoothHost

private typealias Fixture = AddressPlanFixture

@Suite("The plan for addresses")
struct AddressPlanTests {
    private let peer1 = Fixture.peer(1)
    private let peer2 = Fixture.peer(2)

    // MARK: Bring-up

    @Test("A host with a public address sets none")
    func hostWithAPublicAddressSetsNone() {
        var fixture = Fixture()
        #expect(fixture.bringUp() == [])
        #expect(fixture.plan.ownAddresses(fixture.context.information) == OwnAddresses())
        #expect(fixture.plan.deadline == nil)
        #expect(fixture.plan.addressOfNewLink(fixture.context.information) == GAPSample.identity)
    }

    @Test("A host with a static random address sets it")
    func hostWithAStaticRandomAddressSetsIt() {
        let identity = GAPSample.address(1)
        var fixture = Fixture(GAPSample.information(identity: identity))
        #expect(fixture.bringUp() == [Fixture.random(identity)])
        let addresses = fixture.plan.ownAddresses(fixture.context.information)
        #expect(addresses == OwnAddresses(type: .random, randomAddress: identity, advertisingAddress: identity))
        #expect(fixture.plan.addressOfNewLink(fixture.context.information) == identity)
    }

    @Test("A private host sets an address, the timeout and the resolving list")
    func privateHostSetsAnAddressTheTimeoutAndTheList() {
        var fixture = Fixture(isPrivate: true, GAPSample.information(listSize: 4))
        fixture.setPeers([2, 1])
        let commands = fixture.bringUp()
        let own = fixture.plan.privateAddress
        #expect(own.map { Toolbox(SwiftCryptography()).resolves($0, irk: Fixture.ownKey) } == true)
        #expect(
            commands == [
                Fixture.random(own), Fixture.timeout(900),
                Fixture.add(GAPSample.identity, 0, Fixture.ownKey), Fixture.mode(GAPSample.identity),
                Fixture.add(peer2, 2, Fixture.ownKey), Fixture.mode(peer2),
                Fixture.add(peer1, 1, Fixture.ownKey), Fixture.mode(peer1), Fixture.resolve(),
            ]
        )
        let addresses = fixture.plan.ownAddresses(fixture.context.information)
        #expect(addresses.type == .resolvableOrRandom)
        #expect(addresses.isMadeByController)
        #expect(addresses.advertisingAddress == own)
        #expect(addresses.hold == .nothing && !addresses.isChanging)
        #expect(fixture.plan.addressOfNewLink(fixture.context.information) == own)
    }

    @Test(
        "Without privacy modes in the controller, the host resolves peers by itself in device privacy mode",
        arguments: [PrivacyMode.device, .network]
    )
    func peersAreListedWithoutPrivacyModesOnlyInNetworkMode(mode: PrivacyMode) {
        var fixture = Fixture(mode: mode, GAPSample.information(listSize: 4, hasPrivacyModes: false))
        fixture.setPeers([1])
        #expect(fixture.bringUp() == (mode == .network ? [Fixture.add(peer1, 1), Fixture.resolve()] : []))
        #expect(fixture.plan.mustBeResolvedByScan(peer1) == (mode == .device))
        #expect(!fixture.plan.ownAddresses(fixture.context.information).isMadeByController)
    }

    @Test("Without privacy modes in the controller, it makes the host's private addresses all the same")
    func ownKeyIsListedWithoutPrivacyModes() {
        var fixture = Fixture(isPrivate: true, GAPSample.information(listSize: 4, hasPrivacyModes: false))
        fixture.setPeers([1])
        let list = [Fixture.add(GAPSample.identity, 0, Fixture.ownKey), Fixture.resolve()]
        #expect(fixture.bringUp().suffix(2) == list[...])
        #expect(fixture.plan.ownAddresses(fixture.context.information).isMadeByController)
    }

    @Test("A list that is too short has the most important peers")
    func shortListHasTheMostImportantPeers() {
        var fixture = Fixture(mode: .network, GAPSample.information(listSize: 1))
        fixture.setPeers([1, 2])
        #expect(fixture.bringUp() == [Fixture.add(peer1, 1), Fixture.mode(peer1, .network), Fixture.resolve()])
        fixture.setPeers([2, 1])
        #expect(
            fixture.run() == [Fixture.remove(peer1), Fixture.add(peer2, 2), Fixture.mode(peer2, .network)]
        )
    }

    // MARK: Changes

    @Test("A new private address waits until scanning and initiating rest")
    func newPrivateAddressWaitsUntilActivitiesRest() throws {
        var fixture = Fixture(isPrivate: true)
        fixture.bringUp()
        let first = fixture.plan.privateAddress
        fixture.context.rest = .nothing
        let isEarly = fixture.advance(by: .seconds(899))
        #expect(!isEarly)
        let isNew = fixture.advance(by: .seconds(1))
        #expect(isNew)
        #expect(fixture.plan.deadline == fixture.now + .seconds(900))
        let second = fixture.plan.privateAddress
        #expect(second != first)
        #expect(fixture.run() == [])
        #expect(fixture.plan.hold == .scanningAndInitiating)
        #expect(fixture.plan.awaitsRest)
        fixture.context.rest = .scanningAndInitiating
        let next = try fixture.requireNext()
        #expect(next.command == Fixture.random(second))
        #expect(fixture.next() == nil, "one command at a time")
        fixture.plan.finished(next.step, fixture.context.information)
        #expect(fixture.plan.hold == .scanningAndInitiating)
        #expect(fixture.next() == nil)
        #expect(fixture.plan.hold == .nothing)
        #expect(!fixture.plan.run.isRunning)
    }

    @Test("Activities that rest know of a change before its first command")
    func restingActivitiesKnowOfAChangeBeforeItsFirstCommand() throws {
        var fixture = Fixture(isPrivate: true)
        fixture.bringUp()
        _ = fixture.advance(by: .seconds(900))
        _ = fixture.plan.requestRun()
        #expect(fixture.next() == nil)
        #expect(fixture.plan.hold == .scanningAndInitiating)
        #expect(fixture.next()?.command.opcode == LESetRandomAddress.opcode)
    }

    @Test("With legacy commands, all activities use the random address")
    func allActivitiesRestForAChangeWithLegacyCommands() {
        var fixture = Fixture(isPrivate: true, GAPSample.information(isExtended: false))
        fixture.bringUp()
        _ = fixture.advance(by: .seconds(900))
        fixture.context.rest = .scanningAndInitiating
        #expect(fixture.run() == [])
        #expect(fixture.plan.hold == .everything)
        fixture.context.rest = .everything
        #expect(fixture.run() == [Fixture.random(fixture.plan.privateAddress)])
    }

    @Test("The list changes while everything rests")
    func listChangesWhileEverythingRests() {
        var fixture = Fixture(GAPSample.information(listSize: 4))
        #expect(fixture.bringUp() == [])
        fixture.setPeers([1])
        fixture.context.rest = .scanningAndInitiating
        #expect(fixture.run() == [])
        #expect(fixture.plan.hold == .everything)
        fixture.context.rest = .everything
        #expect(fixture.run() == [Fixture.add(peer1, 1), Fixture.mode(peer1), Fixture.resolve()])
        fixture.setPeers([1], keys: [1: 7])
        #expect(fixture.run() == [Fixture.remove(peer1), Fixture.add(peer1, 7), Fixture.mode(peer1)])
        fixture.setPeers([])
        #expect(fixture.run() == [Fixture.remove(peer1), Fixture.resolve(false)])
        #expect(fixture.run() == [])
    }

    @Test("A bond that is made while a change waits has more activities rest")
    func bondMadeDuringAWaitHasMoreActivitiesRest() {
        var fixture = Fixture(isPrivate: true, GAPSample.information(listSize: 4))
        fixture.bringUp()
        _ = fixture.advance(by: .seconds(900))
        fixture.context.rest = .nothing
        #expect(fixture.run() == [])
        #expect(fixture.plan.hold == .scanningAndInitiating)
        fixture.setPeers([1])
        fixture.context.rest = .scanningAndInitiating
        #expect(fixture.run() == [])
        #expect(fixture.plan.hold == .everything)
        fixture.context.rest = .everything
        #expect(
            fixture.run() == [
                Fixture.random(fixture.plan.privateAddress), Fixture.add(peer1, 1, Fixture.ownKey),
                Fixture.mode(peer1),
            ]
        )
    }

    @Test("A change that is no longer wanted ends the wait")
    func obsoleteChangeEndsTheWait() {
        var fixture = Fixture(GAPSample.information(listSize: 4))
        fixture.bringUp()
        fixture.setPeers([1])
        fixture.context.rest = .nothing
        #expect(fixture.run() == [])
        fixture.setPeers([])
        #expect(fixture.run() == [])
        #expect(fixture.plan.hold == .nothing)
        #expect(!fixture.plan.awaitsRest)
    }

    @Test("The address of a legacy advertisement is the controller's, as long as there is one")
    func addressOfALegacyAdvertisementIsThatOfTheController() {
        let identity = GAPSample.address(1)
        var fixture = Fixture(GAPSample.information(isExtended: false, identity: identity))
        fixture.context.legacyAdvertisingAddress = GAPSample.address(2)
        #expect(fixture.bringUp() == [Fixture.random(GAPSample.address(2))])
        fixture.context.legacyAdvertisingAddress = nil
        #expect(fixture.run() == [Fixture.random(identity)])
    }

    // MARK: Failures

    @Test("A refused address is tried again when a run is requested")
    func refusedAddressIsTriedAgainOnRequest() {
        var fixture = Fixture(isPrivate: true)
        fixture.bringUp()
        _ = fixture.advance(by: .seconds(900))
        _ = fixture.plan.requestRun()
        let failure = CommandFailure.status(.unsupportedFeatureOrParameterValue, LESetRandomAddress.opcode)
        #expect(fixture.refuse() == [.addressRefused(failure)])
        #expect(fixture.next() == nil)
        #expect(fixture.plan.hold == .nothing)
        #expect(fixture.run() == [Fixture.random(fixture.plan.privateAddress)])
    }

    @Test("A refused address is tried again at once if a run was requested meanwhile")
    func requestDuringARefusedCommandTriesTheAddressAgainAtOnce() throws {
        var fixture = Fixture(isPrivate: true)
        fixture.bringUp()
        _ = fixture.advance(by: .seconds(900))
        #expect(fixture.run(commands: 0) == [])
        _ = fixture.next()
        let refused = try fixture.requireNext()
        _ = fixture.plan.requestRun()
        _ = fixture.plan.failed(refused.step, GAPSample.refusal(of: refused.command))
        #expect(fixture.next()?.command == refused.command)
    }

    @Test("The host resolves addresses itself if the controller refuses a command for its list", arguments: 0..<5)
    func hostResolvesAddressesIfAListCommandIsRefused(position: Int) throws {
        var fixture = Fixture(isPrivate: true, GAPSample.information(listSize: 4))
        fixture.bringUp()
        fixture.setPeers([1])
        let all = [
            Fixture.timeout(900), Fixture.add(GAPSample.identity, 0, Fixture.ownKey),
            Fixture.mode(GAPSample.identity), Fixture.add(peer1, 1, Fixture.ownKey), Fixture.mode(peer1),
            Fixture.resolve(),
        ]
        fixture.plan.controllerWasReset(fixture.context, &fixture.random)
        // The random address comes first.
        #expect(fixture.run(commands: 1 + position).count == 1 + position)
        let failure = GAPSample.refusal(of: all[position])
        #expect(fixture.refuse() == [.resolvedByHost(failure)])
        var rest = Array(all[(position + 1)...])
        if position == 1 { rest.removeFirst() }
        if position == 3 { rest.removeFirst() }
        // The controller would ignore the peer under its identity address.
        if position == 4 { rest.insert(Fixture.remove(peer1), at: 0) }
        #expect(fixture.run() == rest)
        #expect(fixture.run() == [], "it is not tried again")
        #expect(fixture.plan.mustBeResolvedByScan(peer1) == (position >= 3))
    }

    @Test("A refused privacy mode does not matter in network privacy mode, which is the default of the controller")
    func refusedNetworkPrivacyModeDoesNotMatter() {
        var fixture = Fixture(mode: .network, GAPSample.information(listSize: 4))
        fixture.setPeers([1])
        fixture.plan.controllerWasReset(fixture.context, &fixture.random)
        #expect(fixture.run(commands: 1) == [Fixture.add(peer1, 1)])
        #expect(fixture.refuse().count == 1)
        #expect(fixture.run() == [Fixture.resolve()])
        #expect(!fixture.plan.mustBeResolvedByScan(peer1))
    }

    @Test("Refused address resolution is tried again when the list changes")
    func refusedResolutionIsTriedAgainWhenTheListChanges() {
        var fixture = Fixture(mode: .network, GAPSample.information(listSize: 4, hasPrivacyModes: false))
        fixture.setPeers([1])
        fixture.plan.controllerWasReset(fixture.context, &fixture.random)
        #expect(fixture.run(commands: 1) == [Fixture.add(peer1, 1)])
        #expect(fixture.refuse().count == 1)
        #expect(fixture.run() == [])
        #expect(fixture.plan.mustBeResolvedByScan(peer1))
        fixture.setPeers([1, 2])
        #expect(fixture.run() == [Fixture.add(peer2, 2), Fixture.resolve()])
        #expect(!fixture.plan.mustBeResolvedByScan(peer1))
    }

    @Test("A controller that was reset after any command is set up again", arguments: 0...6, [false, true])
    func controllerThatWasResetAfterAnyCommandIsSetUpAgain(commands: Int, isInProgress: Bool) throws {
        var fixture = Fixture(isPrivate: true, GAPSample.information(listSize: 4))
        fixture.setPeers([1])
        fixture.plan.controllerWasReset(fixture.context, &fixture.random)
        fixture.run(commands: commands)
        var stale: PlannedCommand?
        if isInProgress { stale = try fixture.requireNext() }
        fixture.plan.controllerLost()
        #expect(fixture.plan.hold == .nothing)
        #expect(!fixture.plan.run.isRunning)
        if let stale {
            fixture.plan.finished(stale.step, fixture.context.information)
            #expect(fixture.plan.failed(stale.step, .aborted) == [])
        }
        #expect(fixture.plan.randomAddress == nil && fixture.plan.list == nil)
        let again = fixture.bringUp()
        #expect(again.count == 7)
        #expect(again.first == Fixture.random(fixture.plan.privateAddress))
        #expect(again.last == Fixture.resolve())
    }

    @Test("A controller that is reset while a change waits has the change after its bring-up")
    func waitingChangeIsMadeInTheBringUpAfterAReset() {
        var fixture = Fixture(GAPSample.information(listSize: 4))
        fixture.bringUp()
        fixture.setPeers([1])
        fixture.context.rest = .nothing
        #expect(fixture.run() == [])
        fixture.plan.controllerLost()
        #expect(fixture.plan.hold == .nothing && !fixture.plan.awaitsRest)
        fixture.context.rest = .everything
        #expect(fixture.bringUp() == [Fixture.add(peer1, 1), Fixture.mode(peer1), Fixture.resolve()])
    }

    // MARK: Settings and peers

    @Test(
        "The time of a private address is in the range of the controller",
        arguments: [(.milliseconds(10), 1), (.milliseconds(2_900), 2), (.seconds(7200), 3600)] as [(Duration, UInt16)]
    )
    func timeOfAPrivateAddressIsInTheRangeOfTheController(timeout: Duration, seconds: UInt16) {
        var fixture = Fixture(isPrivate: true, timeout: timeout, GAPSample.information(listSize: 4))
        #expect(fixture.bringUp().contains(Fixture.timeout(seconds)))
        #expect(fixture.plan.deadline == fixture.now + .seconds(Int(seconds)))
    }

    @Test("A bonded peer is recognized by its private address", arguments: [PrivacyMode.device, .network])
    func bondedPeerIsRecognizedByItsPrivateAddress(mode: PrivacyMode) throws {
        var fixture = Fixture(mode: mode)
        fixture.setPeers([1])
        let address = Toolbox(SwiftCryptography()).resolvablePrivateAddress(irk: 1, random: &fixture.random)
        let stranger = Toolbox(SwiftCryptography()).resolvablePrivateAddress(irk: 2, random: &fixture.random)
        #expect(fixture.plan.identity(of: address) == peer1)
        #expect(fixture.plan.identity(of: stranger) == stranger)
        #expect(fixture.plan.identity(of: peer2) == peer2)
        #expect(fixture.plan.mustBeResolvedByScan(peer1))
        #expect(!fixture.plan.mustBeResolvedByScan(peer2))
        #expect(fixture.plan.isSilenced(peer1) == (mode == .network))
        #expect(!fixture.plan.isSilenced(address))
    }
}
