import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("The plan of initiating connections: refused commands, lost events and turns")
struct ConnectionPlanFailureTests {
    @Test func refusedInitiationFailsItsAttempts() {
        var world = ConnectionWorld()
        world.connect(1, to: 1)
        world.pass()
        world.reply(ConnectionWorld.refusal)
        world.settle()
        #expect(world.outcomes == [1: [.failed(.command(ConnectionWorld.refusal))]])
        #expect(world.plan.isResting && world.sent.count == 1)
    }

    @Test func refusedAddressFailsItsAttemptsAndTheListIsWrittenAgain() {
        var world = ConnectionWorld()
        let failure = CommandFailure.status(.hardwareFailure, LEAddDeviceToFilterAcceptList.opcode)
        for peer in 1...3 as ClosedRange<UInt64> { world.connect(peer, to: peer) }
        world.pass()
        world.reply()
        world.pass()
        world.reply(failure)
        #expect(world.outcomes == [1: [.failed(.command(failure))]] && world.plan.acceptList == nil)
        world.settle()
        #expect(
            world.sent.dropFirst(2) == [
                ConnectionWorld.clear, ConnectionWorld.add(2), ConnectionWorld.add(3), ConnectionWorld.create(nil),
            ]
        )
        #expect(world.outcomes.count == 1)
        #expect(world.controller.agrees(with: world.plan.controller))
    }

    @Test func refusedClearingOfTheListFailsTheAttempts() {
        var world = ConnectionWorld()
        world.connect(1, to: 1)
        world.connect(2, to: 2)
        world.pass()
        world.reply(.status(.hardwareFailure, LEClearFilterAcceptList.opcode))
        world.settle()
        #expect(world.outcomes.count == 2 && world.sent == [ConnectionWorld.clear] && world.plan.isResting)
    }

    /// The controller holds fewer addresses than it has reported.
    @Test func peersThatDoNotFitOnTheListTakeTurns() {
        var world = ConnectionWorld()
        for peer in 1...3 as ClosedRange<UInt64> { world.connect(peer, to: peer) }
        for _ in 0..<2 {
            world.pass()
            world.reply()
        }
        world.pass()
        #expect(world.sent.last == ConnectionWorld.add(2))
        let full = CommandFailure.status(.memoryCapacityExceeded, LEAddDeviceToFilterAcceptList.opcode)
        world.reply(full)
        world.settle()
        #expect(world.outcomes.isEmpty && world.sent.last == ConnectionWorld.create(1))
        world.advance(.seconds(4))
        world.settle()
        #expect(world.controller.state == .initiating(ConnectionWorld.peers(2)) && world.outcomes.isEmpty)
        world.resetController()
        world.settle()
        #expect(world.sent.last == ConnectionWorld.create(nil), "the next controller may hold more")
    }

    @Test func unclearReplyToTheInitiationCancelsIt() {
        var world = ConnectionWorld()
        world.connect(1, to: 1)
        world.pass()
        _ = world.controller.perform(ConnectionWorld.create(1))
        world.reply(ConnectionWorld.unclear)
        #expect(world.plan.controller == .unknown && world.outcomes[1]?.count == 1)
        world.settle()
        #expect(
            world.sent == [ConnectionWorld.create(1), ConnectionWorld.cancel] && world.controller.state == .idle
                && world.plan.isResting
        )
    }

    @Test func cancellationThatComesTooLateIsEndedByTheEvent() {
        var world = ConnectionWorld.initiating(1)
        world.cancel(1)
        world.pass()
        world.reply(.status(.commandDisallowed, LECreateConnectionCancel.opcode))
        #expect(world.plan.deadline == world.now + .seconds(2))
        world.connected(to: 1)
        world.settle()
        #expect(world.sent == [ConnectionWorld.cancel] && world.plan.isResting && world.plan.deadline == nil)
    }

    @Test func refusedCancellationIsTriedOnceMore() {
        var world = ConnectionWorld.initiating(1)
        world.cancel(1)
        world.pass()
        world.reply(ConnectionWorld.refusal)
        world.settle()
        world.advance(.seconds(2))
        world.settle()
        #expect(
            world.sent == [ConnectionWorld.cancel, ConnectionWorld.cancel] && world.controller.state == .idle
                && world.plan.isResting
        )
    }

    @Test func controllerThatRefusesEachCancellationIsNotAskedForEver() {
        var world = ConnectionWorld.initiating(1)
        world.cancel(1)
        for _ in 0..<10 {
            world.pass()
            world.reply(ConnectionWorld.refusal)
            world.pass()
            world.advance(.seconds(2))
        }
        #expect(world.sent == [ConnectionWorld.cancel, ConnectionWorld.cancel] && world.plan.isResting)
    }

    @Test func nextInitiationWaitsTwoSecondsForTheEndOfTheLast() {
        var world = ConnectionWorld.initiating(1)
        world.cancel(1)
        world.connect(2, to: 2)
        world.settle(reportingEnds: false)
        #expect(world.sent == [ConnectionWorld.cancel])
        world.controller.state = .idle
        world.advance(.seconds(2))
        world.settle()
        #expect(world.sent == [ConnectionWorld.cancel, ConnectionWorld.create(2)])
    }

    /// A plan that is about to initiate to peer 2, because the end of the cancelled initiation to peer 1 was not
    /// reported. The controller has confirmed the cancellation and continues.
    private func worldWithALostEnd() -> ConnectionWorld {
        var world = ConnectionWorld.initiating(1)
        world.cancel(1)
        world.connect(2, to: 2)
        world.pass()
        _ = world.controller.perform(ConnectionWorld.cancel)
        world.controller.state = .initiating(ConnectionWorld.peers(1))
        if let step = world.pending?.step { world.finished(step) }
        world.pending = nil
        world.isPassDue = true
        world.settle()
        world.advance(.seconds(2))
        return world
    }

    @Test func initiationThatIsRefusedForAnotherReasonDoesNotHideALostEnd() {
        var world = worldWithALostEnd()
        world.pass()
        world.reply(ConnectionWorld.refusal)
        world.connect(3, to: 3)
        world.settle()
        #expect(
            world.outcomes == [1: [.failed(.cancelled)], 2: [.failed(.command(ConnectionWorld.refusal))]]
        )
        #expect(world.controller.state == .initiating(ConnectionWorld.peers(3)))
        #expect(world.controller.agrees(with: world.plan.controller))
    }

    @Test func initiationThatIsRefusedAfterALostEndIsTriedAgain() {
        var world = worldWithALostEnd()
        world.settle()
        #expect(
            world.sent == [
                ConnectionWorld.cancel, ConnectionWorld.create(2), ConnectionWorld.cancel, ConnectionWorld.create(2),
            ]
        )
        #expect(world.outcomes == [1: [.failed(.cancelled)]])
        #expect(world.controller.agrees(with: world.plan.controller))
    }

    @Test func changeOfTheListThatIsRefusedAfterALostEndIsTriedAgain() {
        var world = ConnectionWorld.initiating(1, 2)
        world.cancel(1)
        world.connect(3, to: 3)
        world.pass()
        _ = world.controller.perform(ConnectionWorld.cancel)
        world.controller.state = .initiating(ConnectionWorld.peers(1, 2))
        if let step = world.pending?.step { world.finished(step) }
        world.pending = nil
        world.isPassDue = true
        world.settle()
        world.advance(.seconds(2))
        world.settle()
        #expect(world.outcomes == [1: [.failed(.cancelled)]])
        #expect(world.controller.state == .initiating(ConnectionWorld.peers(2, 3)))
        #expect(world.controller.agrees(with: world.plan.controller))
    }

    @Test func lateEndOfAnEarlierInitiationStartsTheCurrentOneAgain() {
        var world = ConnectionWorld.initiating(1)
        world.fail(.unknownConnectionIdentifier)
        world.settle()
        #expect(world.sent == [ConnectionWorld.cancel, ConnectionWorld.create(1)] && world.outcomes.isEmpty)
    }

    @Test func existingLinkIsReportedAndTheAttemptWaitsForARequest() {
        var world = ConnectionWorld()
        world.connect(1, to: 1)
        world.pass()
        world.reply(.status(.connectionAlreadyExists, LECreateConnection.opcode))
        world.settle()
        #expect(world.existing == [ConnectionWorld.peers(1)] && world.outcomes.isEmpty && world.sent.count == 1)
        let link = LinkIdentifier(handle: ConnectionHandle(0x40), serial: 1)
        world.plan.retry(afterEndOf: link)
        world.plan.retry(afterEndOf: link)
        let wasWaiting = (world.plan.linkEnded(link), world.plan.linkEnded(link))
        #expect(wasWaiting == (true, false))
        world.request()
        world.settle()
        #expect(world.sent == [ConnectionWorld.create(1), ConnectionWorld.create(1)])
    }

    // MARK: Turns

    @Test func peersThatDoNotFitTakeTurns() {
        var world = ConnectionWorld()
        world.context.acceptListSize = 1
        for peer in 1...3 as ClosedRange<UInt64> { world.connect(peer, to: peer) }
        var turns: [SimulatedInitiator.State] = []
        for _ in 0..<6 {
            world.settle()
            turns.append(world.controller.state)
            world.advance(.seconds(4))
        }
        #expect(turns == [1, 2, 3, 1, 2, 3].map { .initiating(ConnectionWorld.peers($0)) })
    }

    @Test func scanAndPeersTakeTurnsOnAControllerThatCannotDoBoth() {
        var world = ConnectionWorld()
        world.context.isScanKeptWaiting = true
        world.connect(1, to: 1)
        world.settle()
        #expect(world.plan.deadline == world.now + .seconds(4))
        world.advance(.seconds(4))
        world.settle()
        #expect(world.plan.wantedInitiation(world.context) == nil && world.controller.state == .idle)
        world.advance(.seconds(4))
        world.settle()
        #expect(world.sent == [ConnectionWorld.create(1), ConnectionWorld.cancel, ConnectionWorld.create(1)])
        // The scan ends.
        world.advance(.seconds(4))
        world.settle()
        world.context.isScanKeptWaiting = false
        let hasEnded = world.plan.updateTurns(world.context, at: world.now)
        #expect(hasEnded && world.plan.deadline == nil)
    }

    @Test func peerThatIsFoundInTheTurnOfScansHasAWholeTurn() {
        var world = ConnectionWorld()
        world.context.isScanKeptWaiting = true
        world.context.unresolvedPeers = ConnectionWorld.peers(1)
        world.connect(1, to: 1)
        world.connect(2, to: 2)
        world.settle()
        world.advance(.seconds(4))
        world.settle()
        #expect(world.controller.state == .idle)
        world.advance(.seconds(3))
        world.plan.found(ConnectionWorld.peer(1), at: ConnectionWorld.peer(9), world.now)
        world.request()
        world.settle()
        #expect(world.controller.state == .initiating(ConnectionWorld.peers(2, 9)))
        #expect(world.plan.turnDeadline == world.now + .seconds(4))
    }

    @Test func initiatingWaitsUntilScanningHasStopped() {
        var world = ConnectionWorld()
        world.context.isScanning = true
        world.context.canInitiateWhileScanning = false
        world.connect(1, to: 1)
        world.connect(2, to: 2)
        world.settle()
        #expect(world.sent.isEmpty)
        let wasWaiting = world.plan.scanPassEnded()
        #expect(wasWaiting)
        // A scan that could not be stopped does not keep the initiation waiting.
        world.request()
        world.settle()
        #expect(
            world.sent == [
                ConnectionWorld.clear, ConnectionWorld.add(1), ConnectionWorld.add(2), ConnectionWorld.create(nil),
            ]
        )
        let isWaiting = world.plan.scanPassEnded()
        #expect(!isWaiting)
    }

    // MARK: Peers that must be found

    @Test func peerThatMustBeFoundIsConnectedToAtItsPrivateAddress() {
        var world = ConnectionWorld()
        let found = DeviceAddress(0x4000_0000_0009, isRandom: true)
        world.context.unresolvedPeers = ConnectionWorld.peers(1)
        world.connect(1, to: 1)
        world.settle()
        #expect(world.sent.isEmpty && world.plan.awaitsResolution(of: ConnectionWorld.peer(1)))
        world.plan.found(ConnectionWorld.peer(1), at: found, world.now)
        world.request()
        world.settle()
        #expect(world.controller.state == .initiating([found]))
        #expect(
            !world.plan.awaitsResolution(of: ConnectionWorld.peer(1)) && world.plan.deadline == world.now + .seconds(5)
        )
        world.advance(.seconds(5))
        world.settle()
        #expect(world.controller.state == .idle && world.plan.awaitsResolution(of: ConnectionWorld.peer(1)))
        // A failure at the private address is the failure of the attempt.
        world.plan.found(ConnectionWorld.peer(1), at: found, world.now)
        world.request()
        world.pass()
        world.reply(ConnectionWorld.refusal)
        #expect(world.outcomes == [1: [.failed(.command(ConnectionWorld.refusal))]])
        #expect(world.plan.foundPeers.isEmpty && world.plan.deadline == nil)
    }

    /// The peer changes its address with each sixth advertisement, and the first search finds the last one at an
    /// address.
    @Test func searchesDoNotKeepTheirPhaseTowardsThePeersAddresses() throws {
        var world = ConnectionWorld()
        let start = world.now
        let interval = Duration.microseconds(886_700)
        let address = { (advertisement: Int) in
            DeviceAddress(UInt64(0x4000_0000_0000 + advertisement / 6), isRandom: true)
        }
        var advertisement = 5
        var isReached = false
        for _ in 0..<10 where !isReached {
            let found = advertisement
            world.plan.found(ConnectionWorld.peer(1), at: address(found), start + interval * found)
            let deadline = try #require(world.plan.foundPeers[ConnectionWorld.peer(1)]).deadline
            repeat {
                advertisement += 1
                isReached = isReached || address(advertisement) == address(found)
            } while start + interval * (advertisement + 1) <= deadline
            advertisement += 1
        }
        #expect(isReached)
    }

    @Test("A device that does not answer ends its own attempt, and no other", arguments: [1, nil] as [UInt64?])
    func deviceThatDoesNotAnswerEndsItsOwnAttempt(reported: UInt64?) {
        var world = ConnectionWorld.initiating(1, 2)
        world.controller.state = .idle
        world.fail(.connectionFailedToBeEstablished, of: reported)
        world.settle()
        if reported == 1 {
            let error = HostError.disconnected(.controller(.connectionFailedToBeEstablished))
            #expect(world.outcomes == [1: [.failed(error)]] && world.sent == [ConnectionWorld.create(2)])
        } else {
            #expect(world.outcomes.isEmpty && world.sent.last == ConnectionWorld.create(nil), "it is not known which")
        }
    }

    @Test("Refused parameters end the attempts that have chosen them, and no other")
    func refusedParametersEndTheAttemptsThatHaveChosenThem() {
        var world = ConnectionWorld()
        let fast = ConnectionParameters(interval: .microseconds(7500)...(.microseconds(7500)))
        world.connect(1, to: 1, parameters: fast)
        world.connect(2, to: 2)
        while world.controller.state == .idle, world.sent.last != ConnectionWorld.create(nil) {
            world.pass()
            if world.sent.count == 4 { break }
            world.reply()
        }
        world.reply(.status(.invalidHCICommandParameters, LECreateConnection.opcode))
        world.settle()
        #expect(world.outcomes.keys.sorted() == [1])
        #expect(world.sent.last == ConnectionWorld.create(2))
    }
}
