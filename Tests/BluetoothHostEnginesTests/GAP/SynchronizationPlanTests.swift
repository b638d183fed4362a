import BLEByteCoding
import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

private typealias Fixture = SynchronizationPlanFixture

extension SynchronizationPlanFixture {
    fileprivate mutating func start(_ number: UInt64) throws -> SynchronizationIdentifier {
        let identifier = nextIdentifier()
        try plan.start(identifier, PeriodicTrainRequest(address: GAPSample.address(number), sid: 1))
        return identifier
    }

    fileprivate static let events: LEEventMask = [
        .periodicAdvertisingSyncEstablished, .periodicAdvertisingReport, .periodicAdvertisingSyncLost,
    ]

    /// The command that adds the plan's events to those of other parts of the host.
    fileprivate var mask: GAPCommand {
        GAPCommand(LESetEventMask(leEventMask: information.leEvents.union(Self.events)))
    }

    fileprivate static func create(_ number: UInt64) -> GAPCommand {
        GAPCommand(
            LEPeriodicAdvertisingCreateSync(
                advertisingSID: 1,
                advertiserAddress: GAPSample.address(number),
                skip: 0,
                syncTimeout: 1000
            )
        )
    }

    fileprivate static let cancel = GAPCommand(LEPeriodicAdvertisingCreateSyncCancel())

    fileprivate static func terminate(_ handle: UInt16) -> GAPCommand {
        GAPCommand(LEPeriodicAdvertisingTerminateSync(syncHandle: handle))
    }

    fileprivate mutating func established(
        _ handle: UInt16,
        _ status: HCIErrorCode = .success
    ) -> [SynchronizationEffect] {
        plan.established(
            LEPeriodicAdvertisingSyncEstablishedV2(
                status: status,
                syncHandle: handle,
                advertisingSID: 1,
                advertiserAddress: PeerAddress(type: .random, value: 0xC000_0000_0001),
                advertiserPHY: .le1M,
                periodicAdvertisingInterval: 80,
                advertiserClockAccuracy: 0
            )
        )
    }

    fileprivate mutating func report(
        _ handle: UInt16,
        _ data: [UInt8],
        _ status: DataStatus = .complete,
        after time: Duration = .zero
    ) -> Report? {
        plan.receive(
            LEPeriodicAdvertisingReport(
                syncHandle: handle,
                txPower: 127,
                rssi: -60,
                dataStatus: status,
                data: data.rawSpan
            ),
            at: GAPSample.start + time
        ).map { Report($0.identifier, $0.data, isTruncated: $0.isTruncated) }
    }
}

/// The data that reaches a synchronization.
private struct Report: Equatable {
    let identifier: SynchronizationIdentifier
    let data: [UInt8]
    let isTruncated: Bool

    init(_ identifier: SynchronizationIdentifier, _ data: [UInt8], isTruncated: Bool = false) {
        self.identifier = identifier
        self.data = data
        self.isTruncated = isTruncated
    }
}

private let train = PeriodicTrain(interval: .milliseconds(100), phy: .le1M)

@Suite("The plan for synchronizations")
struct SynchronizationPlanTests {
    @Test("The event mask is set once, then each synchronization is created after the one before it")
    func synchronizationsAreCreatedOneAfterTheOther() throws {
        var fixture = Fixture()
        let first = try fixture.start(1)
        let second = try fixture.start(2)
        #expect(fixture.settle() == [fixture.mask, Fixture.create(1)])
        #expect(fixture.established(7) == [.synchronized(first, train)])
        #expect(fixture.settle() == [Fixture.create(2)])
        #expect(fixture.plan.isSearching)
        #expect(fixture.established(8) == [.synchronized(second, train)])
        #expect(fixture.settle() == [])
        #expect(!fixture.plan.isSearching && fixture.plan.deadline == nil)
    }

    @Test("Reports reach the synchronization of their train, put together from fragments")
    func reportsReachTheSynchronizationOfTheirTrain() throws {
        var fixture = Fixture()
        let identifier = try fixture.start(1)
        _ = fixture.settle()
        let early = fixture.report(7, [1])
        _ = fixture.established(7)
        let foreign = fixture.report(8, [1])
        #expect(early == nil && foreign == nil)
        let whole = fixture.report(7, [2, 3])
        #expect(whole == Report(identifier, [2, 3]))
        let fragments = [
            fixture.report(7, [4], .incompleteMoreToCome), fixture.report(7, [5], .incompleteMoreToCome),
            fixture.report(7, [6]), fixture.report(7, [7], .truncated),
        ]
        #expect(
            fragments == [nil, nil, Report(identifier, [4, 5, 6]), Report(identifier, [7], isTruncated: true)]
        )
    }

    @Test("The data of an event is not appended to that of an earlier one whose rest is missing")
    func eventsAreNotMixed() throws {
        var fixture = Fixture()
        let identifier = try fixture.start(1)
        _ = fixture.settle()
        _ = fixture.established(7)
        let lost = fixture.report(7, [1], .incompleteMoreToCome)
        let fragments = [
            fixture.report(7, [2], .incompleteMoreToCome, after: .milliseconds(100)),
            fixture.report(7, [3], after: .milliseconds(150)),
        ]
        // The host cannot know whether these were the rest of the first.
        #expect(lost == nil && fragments == [nil, Report(identifier, [2, 3], isTruncated: true)])
        let next = [
            fixture.report(7, [4], .incompleteMoreToCome, after: .milliseconds(200)),
            fixture.report(7, [5], .incompleteMoreToCome, after: .milliseconds(250)),
            fixture.report(7, [6], after: .milliseconds(300)),
        ]
        #expect(next == [nil, nil, Report(identifier, [4, 5, 6])])
    }

    @Test("Fragments without an end take no more memory than the longest data")
    func fragmentsWithoutAnEndAreBounded() throws {
        var fixture = Fixture()
        _ = try fixture.start(1)
        _ = fixture.settle()
        _ = fixture.established(7)
        for _ in 0..<100 {
            let fragment = fixture.report(7, [UInt8](repeating: 1, count: 247), .incompleteMoreToCome)
            #expect(fragment == nil)
        }
        let report = fixture.report(7, [1])
        #expect(report?.data.count == 1650 && report?.isTruncated == true)
    }

    @Test("A lost train is searched for again, after those that wait")
    func lostTrainIsSearchedForAgain() throws {
        var fixture = Fixture()
        let first = try fixture.start(1)
        _ = fixture.settle()
        _ = fixture.established(7)
        _ = try fixture.start(2)
        #expect(fixture.settle() == [Fixture.create(2)])
        #expect(fixture.plan.lost(7) == [.lost(first)])
        #expect(fixture.plan.lost(7) == [])
        _ = fixture.established(8)
        #expect(fixture.settle() == [Fixture.create(1)])
    }

    @Test("A creation that nobody wants any more is cancelled, whatever its outcome")
    func creationThatNobodyWantsIsCancelled() throws {
        var fixture = Fixture()
        let identifier = try fixture.start(1)
        _ = fixture.settle()
        fixture.plan.stop(identifier)
        #expect(fixture.settle() == [Fixture.cancel])
        #expect(fixture.established(0, .operationCancelledByHost) == [])
        #expect(fixture.settle() == [])
        // The train is found at the same time.
        let other = try fixture.start(2)
        _ = fixture.settle()
        fixture.plan.stop(other)
        let cancel = try fixture.requireNext()
        #expect(fixture.established(9) == [])
        #expect(
            fixture.plan.failed(cancel.step, .status(.commandDisallowed, cancel.command.opcode))
                == [.ignore(.status(.commandDisallowed, cancel.command.opcode))]
        )
        #expect(fixture.settle() == [Fixture.terminate(9)])
        #expect(fixture.settle() == [])
    }

    @Test("A synchronization that is stopped is terminated; a controller that has ended it does no harm")
    func stoppedSynchronizationIsTerminated() throws {
        var fixture = Fixture()
        let identifier = try fixture.start(1)
        _ = fixture.settle()
        _ = fixture.established(7)
        fixture.plan.stop(identifier)
        let terminate = try fixture.requireNext()
        #expect(terminate.command == Fixture.terminate(7))
        let failure = CommandFailure.status(.unknownAdvertisingIdentifier, terminate.command.opcode)
        #expect(fixture.plan.failed(terminate.step, failure) == [.ignore(failure)])
        #expect(fixture.settle() == [])
        #expect(fixture.plan.entries.isEmpty)
    }

    @Test("Synchronizations whose trains are not there take turns")
    func synchronizationsTakeTurns() throws {
        var fixture = Fixture()
        _ = try fixture.start(1)
        _ = fixture.settle()
        #expect(fixture.plan.deadline == nil)
        let second = try fixture.start(2)
        let deadline = try #require(fixture.plan.deadline)
        #expect(deadline == fixture.now + SynchronizationPlan.turn)
        let isEarly = fixture.plan.advance(to: fixture.now)
        fixture.now = deadline
        let isDue = fixture.plan.advance(to: deadline)
        #expect(!isEarly && isDue)
        #expect(fixture.settle() == [Fixture.cancel])
        #expect(fixture.established(0, .operationCancelledByHost) == [])
        #expect(fixture.settle() == [Fixture.create(2)])
        #expect(fixture.established(3) == [.synchronized(second, train)])
        #expect(fixture.settle() == [Fixture.create(1)])
    }

    @Test("A cancelled creation whose end is not reported does not delay the others for ever")
    func cancelledCreationWithoutAnEndIsGivenUp() throws {
        var fixture = Fixture()
        let first = try fixture.start(1)
        _ = fixture.settle()
        fixture.plan.stop(first)
        let second = try fixture.start(2)
        #expect(fixture.settle() == [Fixture.cancel])
        #expect(fixture.plan.deadline == fixture.now + SynchronizationPlan.cancellationTimeout)
        fixture.now = fixture.now + SynchronizationPlan.cancellationTimeout
        let isDue = fixture.plan.advance(to: fixture.now)
        #expect(isDue)
        // The controller still creates the first one, so it refuses the second one.
        let create = try fixture.requireNext()
        #expect(create.command == Fixture.create(2))
        #expect(fixture.plan.failed(create.step, GAPSample.refusal(of: create.command, .commandDisallowed)) == [])
        #expect(fixture.settle() == [Fixture.cancel])
        #expect(fixture.established(0, .operationCancelledByHost) == [])
        #expect(fixture.settle() == [Fixture.create(2)])
        // An end that is reported late is not that of the second one.
        #expect(fixture.established(0, .operationCancelledByHost) == [])
        #expect(fixture.settle() == [])
        #expect(fixture.established(7) == [.synchronized(second, train)])
    }

    @Test("A controller that refuses a creation and its cancellation again ends the synchronization with the error")
    func creationThatIsRefusedTwiceEndsWithTheError() throws {
        var fixture = Fixture()
        let first = try fixture.start(1)
        _ = fixture.settle()
        fixture.plan.stop(first)
        let second = try fixture.start(2)
        for attempt in 1...2 {
            let cancel = try fixture.requireNext()
            #expect(cancel.command == Fixture.cancel)
            _ = fixture.plan.failed(cancel.step, GAPSample.refusal(of: cancel.command, .commandDisallowed))
            fixture.now = fixture.now + SynchronizationPlan.cancellationTimeout
            _ = fixture.plan.advance(to: fixture.now)
            let create = try fixture.requireNext()
            let failure = GAPSample.refusal(of: create.command, .commandDisallowed)
            #expect(fixture.plan.failed(create.step, failure) == (attempt == 1 ? [] : [.end(second, failure)]))
        }
        #expect(fixture.settle() == [] && fixture.plan.deadline == nil)
    }

    @Test("A creation whose reply is unclear ends with the error, and is cancelled")
    func creationWithAnUnclearReplyIsCancelled() throws {
        var fixture = Fixture()
        let first = try fixture.start(1)
        let mask = try fixture.requireNext()
        fixture.plan.finished(mask.step)
        let create = try fixture.requireNext()
        let failure = CommandFailure.malformedReply(create.command.opcode, .trailingBytes(count: 1))
        #expect(fixture.plan.failed(create.step, failure) == [.end(first, failure)])
        #expect(fixture.settle() == [Fixture.cancel])
    }

    @Test("A synchronization that the plan has not created is terminated, each handle once")
    func unexpectedSynchronizationIsTerminated() throws {
        var fixture = Fixture()
        let first = try fixture.start(1)
        _ = fixture.settle()
        _ = fixture.established(7)
        for handle in [8, 8, 7] as [UInt16] { #expect(fixture.established(handle) == []) }
        #expect(fixture.settle() == [Fixture.terminate(8)])
        #expect(fixture.report(7, [1]) == Report(first, [1]))
    }

    @Test("A synchronization that the controller refuses ends with the error, and the next one begins")
    func refusedSynchronizationEnds() throws {
        var fixture = Fixture()
        let first = try fixture.start(1)
        _ = try fixture.start(2)
        let mask = try fixture.requireNext()
        fixture.plan.finished(mask.step)
        let create = try fixture.requireNext()
        let failure = GAPSample.refusal(of: create.command)
        #expect(fixture.plan.failed(create.step, failure) == [.end(first, failure)])
        #expect(fixture.settle() == [Fixture.create(2)])
    }

    @Test("After a reset, the trains are lost and everything is set up again")
    func resetLosesTrains() throws {
        var fixture = Fixture()
        let first = try fixture.start(1)
        _ = fixture.settle()
        _ = fixture.established(7)
        _ = try fixture.start(2)
        _ = fixture.next()
        #expect(fixture.plan.controllerLost() == [.lost(first)])
        let report = fixture.report(7, [1])
        #expect(report == nil)
        #expect(fixture.established(7) == [])
        #expect(fixture.settle() == [fixture.mask, Fixture.create(1)])
    }

    @Test("The number of synchronizations is limited, and a train is received once")
    func numberOfSynchronizationsIsLimited() throws {
        var fixture = Fixture()
        for number in 0..<UInt64(SynchronizationPlan.limit) { _ = try fixture.start(number) }
        #expect(throws: HostError.limitReached("there are 64 synchronizations, the maximum; stop another one first")) {
            try fixture.start(1000)
        }
        var other = Fixture()
        _ = try other.start(1)
        #expect(throws: HostError.self) { try other.start(1) }
    }
}
