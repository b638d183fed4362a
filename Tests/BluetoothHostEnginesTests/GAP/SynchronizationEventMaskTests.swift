import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

private typealias Fixture = SynchronizationPlanFixture

extension SynchronizationPlanFixture {
    fileprivate mutating func synchronize(
        _ number: UInt64,
        subevents: [UInt8] = []
    ) throws -> SynchronizationIdentifier {
        let identifier = SynchronizationIdentifier(value: number)
        try plan.start(
            identifier,
            PeriodicTrainRequest(address: GAPSample.address(number), sid: 1, subevents: subevents)
        )
        return identifier
    }

    fileprivate mutating func receive(
        _ number: UInt64,
        subevents: [UInt8] = []
    ) throws -> SyncTransferReceptionIdentifier {
        let identifier = SyncTransferReceptionIdentifier(value: number)
        try plan.reception.start(
            .init(identifier: identifier, link: nil, parameters: .init(subevents: subevents)),
            existing: []
        )
        return identifier
    }

    /// Refuses the next command.
    fileprivate mutating func refuseNext() throws -> Refusal {
        let refused = try requireNext()
        let failure = GAPSample.refusal(of: refused.command)
        return Refusal(events: refused.events, failure: failure, effects: plan.failed(refused.step, failure))
    }
}

private struct Refusal {
    /// The events that the command would have enabled.
    let events: LEEventMask
    let failure: CommandFailure
    let effects: [SynchronizationEffect]
}

/// A controller may refuse to report some of the events that the plan requests.
@Suite("Refused events of the plan for synchronizations")
struct SynchronizationEventMaskTests {
    private static let trains = SynchronizationPlan.trainEvents
    private static let subevents = trains.union(SynchronizationPlan.subeventEvents)
    private static let transfers: LEEventMask = .periodicAdvertisingSyncTransferReceived
    private static let allTransfers = transfers.union(.periodicAdvertisingSyncTransferReceivedV2)

    @Test("A refusal of transfers with subevents ends no reception without them", arguments: [false, true])
    func refusedTransfersOfSubeventsEndNoReceptionWithoutThem(isRefusedAgain: Bool) throws {
        var fixture = Fixture()
        let train = try fixture.synchronize(1, subevents: [0])
        _ = fixture.settle()
        let reception = try fixture.receive(2)
        let first = try fixture.refuseNext()
        #expect(first.events == Self.subevents.union(Self.allTransfers))
        #expect(first.effects == [.ignore(first.failure)])
        if isRefusedAgain {
            let second = try fixture.refuseNext()
            #expect(second.events == Self.subevents.union(Self.transfers))
            #expect(second.effects == [.endReception(reception, second.failure)])
            #expect(fixture.settle() == [])
        } else {
            #expect(
                fixture.settle().map(\.opcode) == [
                    LESetEventMask.opcode, LESetDefaultPeriodicAdvertisingSyncTransferParameters.opcode,
                ]
            )
            #expect(fixture.plan.reception.receivers.map(\.identifier) == [reception])
        }
        #expect(fixture.plan.entries.map(\.identifier) == [train])
    }

    @Test("A refusal of the events of subevents ends no synchronization without them", arguments: [false, true])
    func refusedEventsOfSubeventsEndNoSynchronizationWithoutThem(isRefusedAgain: Bool) throws {
        var fixture = Fixture()
        let plain = try fixture.synchronize(1)
        let withSubevents = try fixture.synchronize(2, subevents: [0])
        let first = try fixture.refuseNext()
        #expect(first.events == Self.subevents)
        #expect(first.effects == [.end(withSubevents, first.failure)])
        if isRefusedAgain {
            let second = try fixture.refuseNext()
            #expect(second.events == Self.trains)
            #expect(second.effects == [.end(plain, second.failure)])
            #expect(fixture.settle() == [] && fixture.plan.entries.isEmpty)
        } else {
            #expect(fixture.settle().map(\.opcode) == [LESetEventMask.opcode, LEPeriodicAdvertisingCreateSync.opcode])
            #expect(fixture.plan.entries.map(\.identifier) == [plain])
        }
    }

    @Test("The users of subevents end first, then the others")
    func usersOfSubeventsEndFirst() throws {
        var fixture = Fixture()
        let plain = try (fixture.synchronize(1), fixture.receive(2))
        let withSubevents = try (fixture.synchronize(3, subevents: [0]), fixture.receive(4, subevents: [0]))
        let first = try fixture.refuseNext()
        #expect(first.events == Self.subevents.union(Self.allTransfers))
        #expect(
            first.effects == [
                .end(withSubevents.0, first.failure), .endReception(withSubevents.1, first.failure),
            ]
        )
        let second = try fixture.refuseNext()
        #expect(second.events == Self.trains.union(Self.transfers))
        #expect(second.effects == [.end(plain.0, second.failure), .endReception(plain.1, second.failure)])
        #expect(fixture.settle() == [] && fixture.plan.entries.isEmpty)
    }
}
