import BLEByteCoding
import BLEHCI
import BluetoothTypes
import Testing

@testable import BluetoothHost

/// A plan with one train of 4 subevents with 3 response slots each, whose commands a test answers.
private struct Fixture {
    var plan = SubeventDataPlan()

    static let train = AdvertisementIdentifier(value: 1)
    static let configuration = PeriodicSubeventConfiguration(count: 4, responseSlotCount: 3)

    init() {
        plan.add(Self.train, handle: 2, Self.configuration)
    }

    static func call(_ number: UInt32) -> CallToken { CallToken(index: number, generation: 0) }

    static func packet(_ byte: UInt8, _ subevent: UInt8, length: Int = 1) -> PeriodicSubeventData {
        PeriodicSubeventData(
            AdvertisingData(decoding: [UInt8](repeating: byte, count: length)),
            subevent: subevent,
            responseSlots: 0..<2
        )
    }

    mutating func send(_ packets: [PeriodicSubeventData], _ call: UInt32) throws(HostError) {
        try plan.send(packets, of: Self.train, for: Self.call(call))
    }

    /// Has the controller request the data of subevents.
    ///
    /// - Returns: the subevents that the app is asked for.
    mutating func request(_ start: UInt8, _ count: UInt8, handle: UInt8 = 2) -> [UInt8] {
        let effects = plan.requested(
            LEPeriodicAdvertisingSubeventDataRequest(
                advertisingHandle: handle,
                subeventStart: start,
                subeventDataCount: count
            )
        )
        return effects.flatMap { effect -> [UInt8] in
            guard case .event(Self.train, .dataRequested(let subevents)) = effect else { return [] }
            return subevents
        }
    }

    mutating func next() -> PlannedCommand? {
        _ = plan.requestRun()
        return plan.nextCommand()
    }

    mutating func requireNext() throws -> PlannedCommand {
        let next = next()
        return try #require(next)
    }

    /// The packets of the next command, as subevent and first byte.
    mutating func take() throws -> (step: GAPStep, packets: [[UInt8]]) {
        let next = try requireNext()
        let command = try #require(next.command.decode(LESetPeriodicAdvertisingSubeventData.self))
        #expect(command.advertisingHandle == 2)
        return (next.step, command.subevents.map { [$0.subevent, $0.data.bytes.first ?? 0] })
    }

    mutating func refuse(_ step: GAPStep, _ code: HCIErrorCode) -> [SubeventEffect] {
        plan.failed(step, Self.failure(code))
    }

    static func failure(_ code: HCIErrorCode) -> CommandFailure {
        .status(code, LESetPeriodicAdvertisingSubeventData.opcode)
    }
}

@Suite("The plan for the data of subevents")
struct SubeventDataPlanTests {
    @Test("Queued data answers the controller's requests, in one command with the bytes of the specification")
    func queuedDataAnswersRequests() throws {
        var fixture = Fixture()
        try fixture.send([Fixture.packet(7, 3), Fixture.packet(8, 0)], 1)
        #expect(fixture.next() == nil)
        #expect(fixture.request(3, 2).isEmpty)
        let next = try fixture.requireNext()
        #expect(next.command.packet == [0x01, 0x82, 0x20, 12, 2, 2, 3, 0, 2, 1, 7, 0, 0, 2, 1, 8])
        #expect(fixture.next() == nil)
        #expect(fixture.plan.finished(next.step) == [.finish(Fixture.call(1), nil)])
        #expect(fixture.request(3, 2) == [3, 0])
    }

    @Test("Data that is sent after the request is given to the controller at once, and each request is answered once")
    func openRequestIsAnsweredAtOnce() throws {
        var fixture = Fixture()
        #expect(fixture.request(0, 4) == [0, 1, 2, 3])
        #expect(try fixture.plan.openRequests(of: Fixture.train) == [0, 1, 2, 3])
        try fixture.send([Fixture.packet(1, 2)], 1)
        try fixture.send([Fixture.packet(2, 2)], 2)
        let first = try fixture.take()
        #expect(first.packets == [[2, 1]])
        #expect(fixture.plan.finished(first.step) == [.finish(Fixture.call(1), nil)])
        #expect(fixture.next() == nil)
        #expect(fixture.request(2, 1).isEmpty)
        #expect(try fixture.take().packets == [[2, 2]])
    }

    @Test("A call ends when the controller has accepted its last packet, over several commands")
    func callEndsWithItsLastPacket() throws {
        var fixture = Fixture()
        try fixture.send((0..<4).map { Fixture.packet($0, $0, length: 100) }, 1)
        _ = fixture.request(0, 4)
        let first = try fixture.take()
        #expect(first.packets == [[0, 0], [1, 1]])
        #expect(fixture.plan.finished(first.step).isEmpty)
        let second = try fixture.take()
        #expect(second.packets == [[2, 2], [3, 3]])
        #expect(fixture.plan.finished(second.step) == [.finish(Fixture.call(1), nil)])
    }

    @Test("At most 16 packets wait for a subevent, and those out of range are refused")
    func queueIsBounded() throws {
        var fixture = Fixture()
        for number in 0..<16 { try fixture.send([Fixture.packet(0, 1)], UInt32(number)) }
        #expect(throws: HostError.limitReached("at most 16 packets wait for subevent 1; await an earlier call")) {
            try fixture.send([Fixture.packet(0, 0), Fixture.packet(0, 1)], 16)
        }
        #expect(throws: HostError.invalidArgument("a call sends at most 16 packets in subevent 0")) {
            try fixture.send([PeriodicSubeventData](repeating: Fixture.packet(0, 0), count: 17), 16)
        }
        try fixture.send([Fixture.packet(0, 0)], 17)
        let wrong = [
            [], [Fixture.packet(0, 4)], [Fixture.packet(0, 0, length: 250)],
            [PeriodicSubeventData(AdvertisingData(), subevent: 0, responseSlots: 2..<4)],
        ]
        for packets in wrong { #expect(throws: HostError.self) { try fixture.send(packets, 18) } }
        #expect(throws: HostError.closed) {
            try fixture.plan.send([Fixture.packet(0, 0)], of: AdvertisementIdentifier(value: 9), for: Fixture.call(19))
        }
    }

    @Test("After a refusal of several packets, each is sent alone, and only the call of the bad one fails")
    func refusedPacketFailsAlone() throws {
        var fixture = Fixture()
        for number in 0..<3 { try fixture.send([Fixture.packet(UInt8(number), UInt8(number))], UInt32(number)) }
        _ = fixture.request(0, 4)
        let all = try fixture.take()
        #expect(all.packets.count == 3)
        #expect(fixture.refuse(all.step, .packetTooLong) == [.ignore(Fixture.failure(.packetTooLong))])
        var ended: [SubeventEffect] = []
        for number in 0..<3 {
            let alone = try fixture.take()
            #expect(alone.packets == [[UInt8(number), UInt8(number)]])
            ended += number == 1 ? fixture.refuse(alone.step, .packetTooLong) : fixture.plan.finished(alone.step)
        }
        #expect(
            ended == [
                .finish(Fixture.call(0), nil), .finish(Fixture.call(1), .command(Fixture.failure(.packetTooLong))),
                .finish(Fixture.call(2), nil),
            ]
        )
        #expect(fixture.next() == nil)
    }

    @Test(
        "Data that is too late, too early or without a request waits for the next request, before later data",
        arguments: [HCIErrorCode.tooLate, .tooEarly, .commandDisallowed]
    )
    func untimelyPacketWaitsForTheNextRequest(code: HCIErrorCode) throws {
        var fixture = Fixture()
        try fixture.send([Fixture.packet(1, 0)], 1)
        try fixture.send([Fixture.packet(2, 0)], 2)
        _ = fixture.request(0, 1)
        let late = try fixture.take()
        #expect(fixture.refuse(late.step, code) == [.ignore(Fixture.failure(code))])
        #expect(fixture.next() == nil)
        #expect(fixture.request(0, 1).isEmpty)
        #expect(try fixture.take().packets == [[0, 1]])
    }

    @Test("A cancelled call leaves nothing in the queue")
    func cancelledCallLeavesNothing() throws {
        var fixture = Fixture()
        try fixture.send([Fixture.packet(1, 0), Fixture.packet(1, 1)], 1)
        try fixture.send([Fixture.packet(2, 1)], 2)
        fixture.plan.remove(Fixture.call(1), of: Fixture.train)
        #expect(fixture.request(0, 2) == [0])
        #expect(try fixture.take().packets == [[1, 2]])
    }

    @Test("After a reset, data that the controller has not accepted waits again, and requests are forgotten")
    func resetKeepsTheData() throws {
        var fixture = Fixture()
        try fixture.send([Fixture.packet(1, 0)], 1)
        try fixture.send([Fixture.packet(2, 0)], 2)
        _ = fixture.request(0, 2)
        let lost = try fixture.take()
        fixture.plan.controllerLost()
        #expect(fixture.plan.finished(lost.step).isEmpty)
        #expect(fixture.next() == nil)
        #expect(try fixture.plan.openRequests(of: Fixture.train).isEmpty)
        #expect(fixture.request(0, 2) == [1])
        #expect(try fixture.take().packets == [[0, 1]])
    }

    @Test("Calls end with the advertisement, also those of packets in a command")
    func callsEndWithTheAdvertisement() throws {
        var fixture = Fixture()
        try fixture.send([Fixture.packet(1, 0)], 1)
        try fixture.send([Fixture.packet(2, 1)], 2)
        _ = fixture.request(0, 1)
        let sent = try fixture.take()
        #expect(
            fixture.plan.remove([Fixture.train], .closed) == [
                .finish(Fixture.call(1), .closed), .finish(Fixture.call(2), .closed), .event(Fixture.train, .ended),
            ]
        )
        #expect(fixture.plan.finished(sent.step).isEmpty)
        #expect(fixture.next() == nil)
    }

    @Test("Requests of unknown trains and subevents are ignored, and the others wrap at the last subevent")
    func strangeRequestsAreIgnored() throws {
        var fixture = Fixture()
        #expect(fixture.request(0, 4, handle: 3).isEmpty)
        #expect(fixture.request(4, 1).isEmpty)
        #expect(fixture.request(0, 0).isEmpty)
        #expect(fixture.request(2, 255) == [2, 3, 0, 1])
        #expect(try fixture.plan.openRequests(of: Fixture.train) == [2, 3, 0, 1])
    }
}

@Suite("Responses from reports")
struct ResponseAssemblerTests {
    /// A response of a report: slot, status and data.
    private typealias Part = (slot: UInt8, status: DataStatus, data: [UInt8])

    private struct Outcome: Equatable {
        var slot: UInt8
        var outcome: PeriodicResponse.Outcome
        var data: [UInt8]

        init(_ slot: UInt8, _ outcome: PeriodicResponse.Outcome, _ data: [UInt8] = []) {
            (self.slot, self.outcome, self.data) = (slot, outcome, data)
        }
    }

    private static func receive(
        _ parts: [Part],
        subevent: UInt8 = 1,
        status: UInt8 = 0,
        count: UInt8? = nil,
        after time: Duration = .zero,
        by assembler: inout ResponseAssembler,
        into events: inout [SubeventEvent]
    ) throws(PacketDecodingError) {
        var responses = PacketBuffer()
        for part in parts {
            LEPeriodicAdvertisingResponseReport.Response(
                txPower: 4,
                rssi: -50,
                responseSlot: part.slot,
                dataStatus: part.status,
                data: part.data.rawSpan
            ).encode(into: &responses)
        }
        let report = LEPeriodicAdvertisingResponseReport(
            advertisingHandle: 2,
            subevent: subevent,
            txStatus: status,
            numResponses: count ?? UInt8(parts.count),
            responses: responses.bytes
        )
        try assembler.receive(report, of: Fixture.configuration, at: GAPSample.start + time, into: &events)
    }

    private static func outcomes(_ events: [SubeventEvent]) -> [Outcome] {
        events.compactMap { event in
            guard case .response(let response) = event else { return nil }
            #expect(response.rssi == -50 && response.txPower == 4)
            return Outcome(response.slot, response.outcome, response.data.bytes)
        }
    }

    @Test("Each slot has its response, and fragments are put together over reports")
    func fragmentsArePutTogether() throws {
        var assembler = ResponseAssembler()
        var events: [SubeventEvent] = []
        let first: [Part] = [(0, .complete, [1]), (1, .failedToReceive, []), (2, .incompleteMoreToCome, [2])]
        try Self.receive(first, by: &assembler, into: &events)
        try Self.receive([(2, .incompleteMoreToCome, [3])], by: &assembler, into: &events)
        try Self.receive([(2, .complete, [4])], by: &assembler, into: &events)
        #expect(
            Self.outcomes(events) == [.init(0, .received, [1]), .init(1, .failed), .init(2, .received, [2, 3, 4])]
        )
    }

    @Test("A response whose rest does not follow counts as truncated, and at most one is kept")
    func restOfAnotherSlotIsMissing() throws {
        var assembler = ResponseAssembler()
        var events: [SubeventEvent] = []
        try Self.receive([(0, .incompleteMoreToCome, [1]), (1, .complete, [2])], by: &assembler, into: &events)
        try Self.receive([(2, .incompleteMoreToCome, [3])], by: &assembler, into: &events)
        try Self.receive([(2, .complete, [4])], subevent: 0, by: &assembler, into: &events)
        try Self.receive([(2, .incompleteMoreToCome, [5]), (2, .failedToReceive, [])], by: &assembler, into: &events)
        #expect(
            Self.outcomes(events) == [
                .init(0, .truncated, [1]), .init(1, .received, [2]), .init(2, .truncated, [3]),
                .init(2, .received, [4]), .init(2, .truncated, [5]),
            ]
        )
    }

    @Test("A response of a later event is not appended to one whose rest is missing")
    func restOfAnotherEventIsMissing() throws {
        var assembler = ResponseAssembler()
        var events: [SubeventEvent] = []
        try Self.receive([(0, .incompleteMoreToCome, [1])], by: &assembler, into: &events)
        try Self.receive([(0, .complete, [2])], after: .milliseconds(80), by: &assembler, into: &events)
        try Self.receive([(0, .incompleteMoreToCome, [3])], after: .milliseconds(160), by: &assembler, into: &events)
        try Self.receive([(0, .complete, [4])], after: .milliseconds(200), by: &assembler, into: &events)
        #expect(
            Self.outcomes(events) == [
                .init(0, .truncated, [1]), .init(0, .received, [2]), .init(0, .received, [3, 4]),
            ]
        )
    }

    @Test("Fragments of more than one PDU are cut")
    func endlessFragmentsAreCut() throws {
        var assembler = ResponseAssembler()
        var events: [SubeventEvent] = []
        let bytes = [UInt8](repeating: 9, count: 200)
        for _ in 0..<50 { try Self.receive([(0, .incompleteMoreToCome, bytes)], by: &assembler, into: &events) }
        try Self.receive([(0, .complete, bytes)], by: &assembler, into: &events)
        #expect(Self.outcomes(events) == [.init(0, .truncated, [UInt8](repeating: 9, count: 255))])
    }

    @Test("A malformed report is an error after the responses before the fault")
    func malformedReportIsAnError() {
        var assembler = ResponseAssembler()
        var events: [SubeventEvent] = []
        #expect(throws: PacketDecodingError.invalidValue(3, field: "Response_Slot")) {
            try Self.receive([(0, .complete, [1]), (3, .complete, [2])], by: &assembler, into: &events)
        }
        #expect(throws: PacketDecodingError.invalidValue(4, field: "Subevent")) {
            try Self.receive([(0, .complete, [1])], subevent: 4, by: &assembler, into: &events)
        }
        #expect(throws: PacketDecodingError.self) {
            try Self.receive([(1, .complete, [2])], count: 2, by: &assembler, into: &events)
        }
        #expect(Self.outcomes(events) == [.init(0, .received, [1]), .init(1, .received, [2])])
    }

    @Test("A packet that was not sent is reported")
    func unsentPacketIsReported() throws {
        var assembler = ResponseAssembler()
        var events: [SubeventEvent] = []
        try Self.receive([], status: 1, by: &assembler, into: &events)
        #expect(events == [.notSent(subevent: 1)])
    }
}
