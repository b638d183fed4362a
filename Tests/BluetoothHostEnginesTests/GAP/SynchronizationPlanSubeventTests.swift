import BLEByteCoding
import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

private typealias Fixture = SynchronizationPlanFixture

extension SynchronizationPlanFixture {
    fileprivate static func request(_ subevents: [UInt8], sid: UInt8 = 1) -> PeriodicTrainRequest {
        PeriodicTrainRequest(address: GAPSample.address(1), sid: sid, subevents: subevents, respondsWithTXPower: true)
    }

    fileprivate mutating func start(_ subevents: [UInt8], sid: UInt8 = 1) throws -> SynchronizationIdentifier {
        let identifier = nextIdentifier()
        try plan.start(identifier, Self.request(subevents, sid: sid))
        return identifier
    }

    fileprivate mutating func established(_ handle: UInt16, subevents: UInt8 = 8) -> [SynchronizationEffect] {
        plan.established(
            LEPeriodicAdvertisingSyncEstablishedV2(
                syncHandle: handle,
                advertisingSID: 1,
                advertiserAddress: PeerAddress(type: .random, value: 0xC000_0000_0001),
                advertiserPHY: .le1M,
                periodicAdvertisingInterval: 80,
                advertiserClockAccuracy: 0,
                numSubevents: subevents,
                subeventInterval: 8,
                responseSlotDelay: 4,
                responseSlotSpacing: 10
            )
        )
    }

    fileprivate mutating func report(
        _ data: [UInt8],
        event: UInt16 = 5,
        subevent: UInt8 = 2,
        _ status: DataStatus = .complete
    ) -> Report? {
        plan.receive(
            LEPeriodicAdvertisingReportV2(
                syncHandle: 7,
                txPower: 127,
                rssi: -60,
                periodicEventCounter: event,
                subevent: subevent,
                dataStatus: status,
                data: data.rawSpan
            ),
            at: GAPSample.start
        ).map { Report(data: $0.data, isTruncated: $0.isTruncated) }
    }

    fileprivate static func train(subevents: UInt8 = 8) -> PeriodicTrain {
        PeriodicTrain(
            interval: .milliseconds(100),
            phy: .le1M,
            subevents: PeriodicSubeventTiming(
                count: subevents,
                interval: 8,
                responseSlotDelay: 4,
                responseSlotSpacing: 10
            )
        )
    }

    fileprivate static func choose(_ subevents: [UInt8], _ handle: UInt16 = 7) -> GAPCommand {
        GAPCommand(
            LESetPeriodicSyncSubevent(
                syncHandle: handle,
                periodicAdvertisingProperties: .includeTXPower,
                subevents: subevents
            )
        )
    }

    fileprivate static func terminate(_ handle: UInt16) -> GAPCommand {
        GAPCommand(LEPeriodicAdvertisingTerminateSync(syncHandle: handle))
    }
}

private struct Report: Equatable {
    var data: [UInt8]
    var isTruncated = false
}

@Suite("Subevents in the plan for synchronizations")
struct SynchronizationPlanSubeventTests {
    @Test("Subevents are chosen after the train was found, and the newer events are enabled before")
    func subeventsAreChosenAfterTheTrainWasFound() throws {
        var fixture = Fixture()
        let identifier = try fixture.start([2, 5])
        let mask = try fixture.requireNext()
        let events: LEEventMask = [
            .periodicAdvertisingSyncEstablished, .periodicAdvertisingReport, .periodicAdvertisingSyncLost,
            .periodicAdvertisingSyncEstablishedV2, .periodicAdvertisingReportV2,
            .enhancedConnectionCompleteV2,
        ]
        #expect(mask.command == GAPCommand(LESetEventMask(leEventMask: events)) && mask.events == events)
        fixture.plan.finished(mask.step)
        #expect(fixture.settle().count == 1)
        #expect(fixture.established(7) == [.synchronized(identifier, Fixture.train())])
        #expect(fixture.settle() == [Fixture.choose([2, 5])])
        #expect(fixture.settle().isEmpty)
    }

    @Test("After a loss and after a reset, subevents are chosen again")
    func subeventsAreChosenAgain() throws {
        var fixture = Fixture()
        let identifier = try fixture.start([2])
        _ = fixture.settle()
        _ = fixture.established(7)
        _ = fixture.settle()
        #expect(fixture.plan.lost(7) == [.lost(identifier)])
        #expect(fixture.settle().count == 1)
        _ = fixture.established(8)
        #expect(fixture.settle() == [Fixture.choose([2], 8)])
        #expect(fixture.plan.controllerLost() == [.lost(identifier)])
        #expect(fixture.settle().count == 2)
        _ = fixture.established(9)
        #expect(fixture.settle() == [Fixture.choose([2], 9)])
    }

    @Test("A train without the requested subevents ends its synchronization", arguments: [0, 2] as [UInt8])
    func trainWithoutTheSubeventsEndsTheSynchronization(count: UInt8) throws {
        var fixture = Fixture()
        let identifier = try fixture.start([2])
        _ = fixture.settle()
        let name = "the train of \(GAPSample.address(1)) with SID 1"
        let text = count == 0 ? "\(name) has no subevents" : "\(name) has subevents 0 to 1, not 2"
        #expect(fixture.established(7, subevents: count) == [.endUnusable(identifier, .invalidArgument(text))])
        #expect(fixture.plan.entries.isEmpty)
        #expect(fixture.settle() == [Fixture.terminate(7)])
    }

    @Test("A controller that refuses the subevents ends the synchronization, unless it has lost the train")
    func refusedSubeventsEndTheSynchronization() throws {
        var fixture = Fixture()
        let identifier = try fixture.start([2])
        _ = fixture.settle()
        for code in [HCIErrorCode.unknownAdvertisingIdentifier, .invalidHCICommandParameters] {
            _ = fixture.established(7)
            let choice = try fixture.requireNext()
            let failure = GAPSample.refusal(of: choice.command, code)
            let isLost = code == .unknownAdvertisingIdentifier
            let effects = fixture.plan.failed(choice.step, failure)
            #expect(effects == [isLost ? .ignore(failure) : .end(identifier, failure)])
            guard isLost else { continue }
            #expect(fixture.plan.lost(7) == [.lost(identifier)])
            _ = fixture.settle()
        }
        #expect(fixture.settle() == [Fixture.terminate(7)])
    }

    @Test("Fragments are put together by event and subevent; those of another place are dropped")
    func fragmentsArePutTogetherByPlace() throws {
        var fixture = Fixture()
        let identifier = try fixture.start([2])
        _ = fixture.settle()
        _ = fixture.established(7)
        #expect(fixture.report([1], .incompleteMoreToCome) == nil)
        #expect(fixture.report([2]) == Report(data: [1, 2]))
        #expect(fixture.report([3], .incompleteMoreToCome) == nil)
        #expect(fixture.report([4], event: 6) == Report(data: [4]))
        #expect(fixture.report([5], .incompleteMoreToCome) == nil)
        #expect(fixture.report([6], subevent: 3, .truncated) == Report(data: [6], isTruncated: true))
        #expect(fixture.plan.synchronization(7) == identifier && fixture.plan.handle(of: identifier) == 7)
        #expect(fixture.plan.synchronization(8) == nil)
    }

    @Test("A transferred train gets the subevents of its reception; one without them is reported as failed")
    func transferredTrainGetsTheSubeventsOfItsReception() throws {
        var fixture = Fixture()
        let reception = SyncTransferReceptionIdentifier(value: 3)
        try fixture.plan.reception.start(
            .init(
                identifier: reception,
                link: nil,
                parameters: .init(subevents: [2], respondsWithTXPower: true)
            ),
            existing: []
        )
        let mask = try fixture.requireNext()
        #expect(mask.events.isSuperset(of: .periodicAdvertisingSyncTransferReceivedV2))
        fixture.plan.finished(mask.step)
        _ = fixture.settle()
        var event = LEPeriodicAdvertisingSyncTransferReceivedV2(
            connectionHandle: 0x40,
            serviceData: 5,
            syncHandle: 7,
            advertisingSID: 1,
            advertiserAddress: PeerAddress(GAPSample.address(1)),
            advertiserPHY: .le1M,
            periodicAdvertisingInterval: 80,
            advertiserClockAccuracy: 0,
            numSubevents: 8,
            subeventInterval: 8,
            responseSlotDelay: 4,
            responseSlotSpacing: 10
        )
        let identifier = SynchronizationIdentifier(value: 100)
        let effects = fixture.plan.transferReceived(event, as: identifier)
        guard case .transferred(reception, let transferred)? = effects.first else {
            Issue.record("\(effects)")
            return
        }
        #expect(transferred.train == Fixture.train() && transferred.request.subevents == [2])
        #expect(fixture.settle() == [Fixture.choose([2])])
        (event.syncHandle, event.advertisingSID, event.numSubevents) = (8, 2, 0)
        #expect(
            fixture.plan.transferReceived(event, as: SynchronizationIdentifier(value: 101)) == [
                .transferFailed(reception, 0x40, serviceData: 5, .unsupportedFeatureOrParameterValue)
            ]
        )
        #expect(fixture.settle() == [Fixture.terminate(8)])
    }

    @Test("Subevents out of range, and those requested twice, are refused")
    func subeventsOutOfRangeAreRefused() throws {
        try Fixture.request([0, 127]).check()
        for subevents in [[128], [3, 3]] as [[UInt8]] {
            #expect(throws: HostError.self) { try Fixture.request(subevents).check() }
            #expect(throws: HostError.self) { try PeriodicSyncTransferParameters(subevents: subevents).check() }
        }
    }
}
