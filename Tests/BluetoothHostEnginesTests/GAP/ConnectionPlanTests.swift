import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

@Suite("The plan of initiating connections")
struct ConnectionPlanTests {
    // MARK: Commands

    @Test func onePeerIsNamedByTheCommand() {
        var world = ConnectionWorld()
        world.connect(1, to: 1)
        world.settle()
        #expect(world.sent == [ConnectionWorld.create(1)])
        #expect(world.controller.agrees(with: world.plan.controller) && !world.plan.isResting)
    }

    @Test func severalPeersAreWrittenToTheAcceptList() {
        var world = ConnectionWorld()
        world.connect(1, to: 2, 1)
        world.connect(2, to: 3)
        world.settle()
        #expect(
            world.sent == [
                ConnectionWorld.clear, ConnectionWorld.add(1), ConnectionWorld.add(2), ConnectionWorld.add(3),
                ConnectionWorld.create(nil),
            ]
        )
        #expect(world.controller.state == .initiating(ConnectionWorld.peers(1, 2, 3)))
    }

    @Test func anotherPeerCancelsAndWritesTheListAgain() {
        var world = ConnectionWorld.initiating(1)
        world.connect(2, to: 2)
        world.settle()
        #expect(
            world.sent == [
                ConnectionWorld.cancel, ConnectionWorld.clear, ConnectionWorld.add(1), ConnectionWorld.add(2),
                ConnectionWorld.create(nil),
            ]
        )
        #expect(world.outcomes.isEmpty)
    }

    @Test func secondAttemptForThePeerSendsNothing() {
        var world = ConnectionWorld.initiating(1)
        world.connect(2, to: 1)
        world.settle()
        #expect(world.sent.isEmpty)
        world.connected(to: 1)
        world.settle()
        #expect(world.outcomes == [1: [.connected], 2: [.connected]] && world.plan.isResting && world.sent.isEmpty)
    }

    @Test func listIsAdaptedToPeersThatChangeWhileItIsWritten() {
        var world = ConnectionWorld()
        world.connect(1, to: 1)
        world.connect(2, to: 2)
        world.pass()
        world.reply()
        world.pass()
        world.connect(3, to: 3)
        world.cancel(1)
        world.settle()
        #expect(
            world.sent == [
                ConnectionWorld.clear, ConnectionWorld.add(1), ConnectionWorld.clear, ConnectionWorld.add(2),
                ConnectionWorld.add(3), ConnectionWorld.create(nil),
            ]
        )
    }

    @Test("An attempt in a subevent precedes the others, and is repeated until the device answers or the time is over")
    func attemptInASubeventPrecedesTheOthers() throws {
        var plan = ConnectionPlan()
        let advertisement = AdvertisementIdentifier(value: 9)
        var context = ConnectionPlan.Context(usesExtendedCommands: true)
        let start = Instant(nanoseconds: 0)
        /// The opcodes of the commands until the plan has none, each answered with success.
        func settle(at now: Instant = start) -> [HCIOpcode] {
            var opcodes: [HCIOpcode] = []
            _ = plan.requestRun()
            while let next = plan.nextCommand(context, at: now) {
                opcodes.append(next.command.opcode)
                _ = plan.finished(next.step, at: now)
                _ = plan.requestRun()
            }
            return opcodes
        }
        plan.add(ConnectionAttempt(identifier: 1, addresses: [ConnectionWorld.peer(1)], parameters: .init()))
        #expect(settle() == [LEExtendedCreateConnection.opcode])
        plan.add(
            ConnectionAttempt(
                identifier: 2,
                addresses: [ConnectionWorld.peer(2)],
                parameters: .init(),
                deadline: start + .seconds(10),
                subevent: SubeventTarget(advertisement: advertisement, number: 4)
            )
        )
        #expect(settle() == [], "the train does not run")
        context.trains[advertisement] = RunningTrain(advertisingHandle: 3, phy: .le2M)
        #expect(settle() == [LECreateConnectionCancel.opcode])
        #expect(plan.connectionFailed(.unknownConnectionIdentifier, asCentral: true, at: start) == [.run, .runScan])
        _ = plan.requestRun()
        let create = plan.nextCommand(context, at: start)
        let next = try #require(create)
        let packet = next.command.packet
        #expect(Array(packet[1..<10]) == [0x85, 0x20, 28, 3, 4, 0, 0, 1, 2] as [UInt8], "\(packet)")
        #expect(packet[15] == 0x02, "the parameters are those of LE 2M")
        _ = plan.finished(next.step, at: start)
        for _ in 0..<3 {
            #expect(plan.connectionFailed(.connectionFailedToBeEstablished, asCentral: true, at: start) == [.run])
            #expect(settle() == [LEExtendedCreateConnectionV2.opcode])
        }
        #expect(plan.advance(to: start + .seconds(10), context).count == 2)
        #expect(settle() == [LECreateConnectionCancel.opcode])
        _ = plan.connectionFailed(.unknownConnectionIdentifier, asCentral: true, at: start)
        #expect(settle() == [LEExtendedCreateConnection.opcode], "the first attempt continues")
        #expect(plan.attempts.map(\.identifier) == [1])
    }

    @Test("Attempts in subevents take turns, and end with their advertisement")
    func attemptsInSubeventsTakeTurns() throws {
        var plan = ConnectionPlan()
        let start = Instant(nanoseconds: 0)
        let advertisements = [AdvertisementIdentifier(value: 1), AdvertisementIdentifier(value: 2)]
        var context = ConnectionPlan.Context(usesExtendedCommands: true)
        for (index, advertisement) in advertisements.enumerated() {
            context.trains[advertisement] = RunningTrain(advertisingHandle: UInt8(index), phy: .le1M)
            plan.add(
                ConnectionAttempt(
                    identifier: UInt64(index),
                    addresses: [ConnectionWorld.peer(UInt64(index))],
                    parameters: .init(),
                    deadline: start + .seconds(30),
                    subevent: SubeventTarget(advertisement: advertisement, number: 7)
                )
            )
        }
        var handles: [UInt8] = []
        for _ in 0..<4 {
            _ = plan.requestRun()
            let command = plan.nextCommand(context, at: start)
            let next = try #require(command)
            handles.append(next.command.packet[4])
            _ = plan.finished(next.step, at: start)
            _ = plan.connectionFailed(.connectionFailedToBeEstablished, asCentral: true, at: start)
        }
        #expect(handles == [0, 1, 0, 1])
        let ended = plan.advertisementEnded(advertisements[0])
        guard case .fail(let attempt, .closed)? = ended.first else {
            Issue.record("\(ended)")
            return
        }
        #expect(attempt.identifier == 0 && plan.attempts.map(\.identifier) == [1])
        #expect(plan.advertisementEnded(advertisements[0]) == [])
    }

    @Test func controllerWithExtendedCommandsGetsTheExtendedCommand() {
        var plan = ConnectionPlan()
        let (parameters, peer) = (ConnectionParameters(), ConnectionWorld.peer(1))
        plan.add(ConnectionAttempt(identifier: 1, addresses: [peer], parameters: parameters))
        let context = ConnectionPlan.Context(usesExtendedCommands: true, ownAddressType: .random)
        _ = plan.requestRun()
        let next = plan.nextCommand(context, at: Instant(nanoseconds: 0))
        let expected = LEExtendedCreateConnection(
            initiatorFilterPolicy: .peerAddress,
            ownAddressType: .random,
            peerAddress: peer,
            le1M: .init(
                scanInterval: 0x60,
                scanWindow: 0x60,
                connectionIntervalMin: parameters.intervalMinimum,
                connectionIntervalMax: parameters.intervalMaximum,
                maxLatency: parameters.latencyInEvents,
                supervisionTimeout: parameters.timeout
            )
        )
        #expect(next?.command == GAPCommand(expected))
    }

    @Test(arguments: [(true, true), (true, false), (false, true), (false, false)])
    func codedPHYIsUsedForPeersReceivedOnIt(isSupported: Bool, wasReceived: Bool) {
        var plan = ConnectionPlan()
        for number: UInt64 in 1...2 {
            plan.add(
                ConnectionAttempt(
                    identifier: number,
                    addresses: [ConnectionWorld.peer(number)],
                    parameters: ConnectionParameters(),
                    usesCodedPHY: wasReceived && number == 2
                )
            )
        }
        let context = ConnectionPlan.Context(
            usesExtendedCommands: true,
            canInitiateOnCodedPHY: isSupported,
            acceptListSize: 1
        )
        var creations: [LEExtendedCreateConnection] = []
        for time: UInt64 in 0...1 {
            _ = plan.requestRun()
            let next = plan.nextCommand(context, at: Instant(nanoseconds: time))
            if let next, let creation = next.command.decode(LEExtendedCreateConnection.self) {
                creations.append(creation)
                _ = plan.finished(next.step, at: Instant(nanoseconds: time))
            }
            plan.connected(at: Instant(nanoseconds: time))
            _ = plan.takeAttempts(forAnyOf: [ConnectionWorld.peer(1)])
        }
        #expect(creations.map(\.peerAddress) == [ConnectionWorld.peer(1), ConnectionWorld.peer(2)])
        #expect(creations.allSatisfy { $0.le1M != nil && $0.le2M == nil })
        #expect(creations.first?.leCoded == nil)
        #expect(creations.last?.leCoded == (isSupported && wasReceived ? creations.last?.le1M : nil))
    }

    @Test func peerOnTheResolvingListIsNamedByItsIdentityTypeIfNeeded() {
        var world = ConnectionWorld()
        world.context.peersWithIdentityTypes = ConnectionWorld.peers(1)
        world.connect(1, to: 1)
        world.settle()
        #expect(world.sent == [ConnectionWorld.create(1, type: .randomIdentity)])
    }

    @Test func changeOfAddressesWaitsForTheEndOfInitiating() {
        var world = ConnectionWorld.initiating(1)
        world.context.isHeld = true
        world.request()
        world.settle(reportingEnds: false)
        #expect(world.sent == [ConnectionWorld.cancel] && !world.plan.isResting)
        world.reportEnd()
        world.settle()
        #expect(world.plan.isResting && world.outcomes.isEmpty)
        world.context.isHeld = false
        world.request()
        world.settle()
        #expect(world.sent == [ConnectionWorld.cancel, ConnectionWorld.create(1)])
    }

    // MARK: Ends of attempts

    @Test func attemptThatTimesOutCancels() {
        var world = ConnectionWorld()
        world.connect(1, to: 1, timeout: .seconds(5))
        world.settle()
        #expect(world.plan.deadline == world.now + .seconds(5))
        world.advance(.seconds(5))
        #expect(world.outcomes == [1: [.failed(.timedOut)]])
        world.settle()
        #expect(world.sent.last == ConnectionWorld.cancel && world.plan.isResting && world.plan.deadline == nil)
        #expect(!world.plan.mayInitiate)
    }

    @Test func cancelledAttemptThatWasNotBegunSendsNothing() {
        var world = ConnectionWorld()
        world.connect(1, to: 1)
        world.cancel(1)
        world.cancel(1)
        world.settle()
        #expect(world.sent.isEmpty && world.outcomes == [1: [.failed(.cancelled)]])
    }

    @Test func connectionAfterTheCancellationIsWantedByNoOne() {
        var world = ConnectionWorld.initiating(1)
        world.cancel(1)
        world.settle(reportingEnds: false)
        let isWanted = world.connected(to: 1)
        world.settle()
        #expect(
            !isWanted && world.plan.isResting && world.plan.deadline == nil && world.sent == [ConnectionWorld.cancel]
        )
    }

    @Test func connectionAfterTheCancellationServesAnotherAttempt() {
        var world = ConnectionWorld.initiating(1)
        world.cancel(1)
        world.settle(reportingEnds: false)
        world.connect(2, to: 1)
        world.settle(reportingEnds: false)
        #expect(world.sent == [ConnectionWorld.cancel])
        world.connected(to: 1)
        #expect(world.outcomes[2] == [.connected])
    }

    @Test func connectionBeforeTheReplyToTheCancellationIsNotWaitedFor() {
        var world = ConnectionWorld.initiating(1)
        world.cancel(1)
        world.pass()
        world.connected(to: 1)
        world.reply()
        world.settle()
        #expect(world.sent == [ConnectionWorld.cancel] && world.plan.isResting && world.plan.deadline == nil)
    }

    @Test func failedInitiationFailsItsAttempts() {
        var world = ConnectionWorld.initiating(1)
        world.controller.state = .idle
        world.fail(.connectionTimeout)
        world.settle()
        #expect(world.outcomes == [1: [.failed(.disconnected(.controller(.connectionTimeout)))]])
        #expect(world.plan.isResting && world.sent.isEmpty)
    }

    @Test func attemptsContinueOnTheNextController() {
        var world = ConnectionWorld.initiating(1)
        world.connect(2, to: 2)
        world.pass()
        world.resetController()
        world.settle()
        #expect(world.outcomes.isEmpty)
        #expect(
            world.sent == [
                ConnectionWorld.cancel, ConnectionWorld.clear, ConnectionWorld.add(1), ConnectionWorld.add(2),
                ConnectionWorld.create(nil),
            ]
        )
    }

    @Test func replyToACommandOfAnEarlierControllerHasNoEffect() {
        var world = ConnectionWorld()
        world.connect(1, to: 1)
        world.pass()
        let step = world.pending?.step
        world.plan.controllerLost(at: world.now)
        if let step {
            let effects = world.plan.failed(step, ConnectionWorld.refusal, at: world.now)
            #expect(effects.isEmpty)
            _ = world.plan.finished(step, at: world.now)
        }
        world.pending = nil
        world.isPassDue = true
        world.settle()
        #expect(world.sent == [ConnectionWorld.create(1), ConnectionWorld.create(1)] && world.outcomes.isEmpty)
    }
}
