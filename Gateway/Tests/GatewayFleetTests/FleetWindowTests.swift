import Testing

@testable import GatewayFleet

/// A message of a gateway; `content` makes its readings.
func message(
    _ gateway: String,
    _ sequence: UInt64? = nil,
    boot: UInt32 = 1,
    tag: UInt64 = 1,
    _ content: Int = 0,
    rssi: Int? = -50,
    time: String = "2026-11-24T16:48:19.375Z"
) -> FleetMessage {
    FleetMessage(
        gateway: gateway,
        number: sequence.map { .init(boot: boot, sequence: $0) },
        address: tag,
        time: time,
        rssi: rssi,
        format: "ruuvi_5",
        readings: "{\"temperature\": {\"value\": \(content)}}"
    )
}

struct FleetWindowTests {
    @Test func receptionsOfOneTransmissionAreOneObservationWithTheStrongestFirst() throws {
        var fleet = FleetWindow()
        #expect(fleet.receive(message("a", 1, rssi: -70), token: 7, at: .zero).kind == .first)
        #expect(fleet.receive(message("b", 1, rssi: nil), token: 8, at: .seconds(1)).kind == .another)
        #expect(fleet.receive(message("c", 9, rssi: -40), token: 9, at: .milliseconds(1999)).kind == .another)
        #expect(fleet.advance(to: .milliseconds(1999)).isEmpty)
        #expect(fleet.nextEnd == .seconds(2))
        let observations = fleet.advance(to: .seconds(2))
        let observation = try #require(observations.first)
        #expect(observations.count == 1)
        #expect(observation.receivers.map(\.gateway) == ["c", "a", "b"])
        #expect(observation.tokens == [7, 8, 9])
        #expect(
            observation.json == """
                {"time": "2026-11-24T16:48:19.375Z", "address": "00:00:00:00:00:01", "format": "ruuvi_5", "readings": \
                {"temperature": {"value": 0}}, "receivers": [{"gateway": "c", "boot": "00000001", "sequence": 9, \
                "rssi": -40, "time": "2026-11-24T16:48:19.375Z"}, {"gateway": "a", "boot": "00000001", \
                "sequence": 1, "rssi": -70, "time": "2026-11-24T16:48:19.375Z"}, {"gateway": "b", "boot": \
                "00000001", "sequence": 1, "time": "2026-11-24T16:48:19.375Z"}], "best": "c"}
                """
        )
        #expect(fleet.openWindowCount == 0 && fleet.nextEnd == nil)
    }

    @Test func otherContentOrTagIsAnotherTransmission() {
        var fleet = FleetWindow()
        _ = fleet.receive(message("a", 1, 0), at: .zero)
        #expect(fleet.receive(message("b", 1, 1), at: .zero).kind == .first)
        #expect(fleet.receive(message("c", 1, tag: 2, 0), at: .zero).kind == .first)
        #expect(fleet.finish(at: .zero).count == 3)
    }

    @Test func numberThatCameBeforeIsADuplicateAlsoAfterTheWindow() {
        var fleet = FleetWindow()
        _ = fleet.receive(message("a", 1), at: .zero)
        #expect(fleet.receive(message("a", 1), at: .zero).kind == .duplicate)
        #expect(fleet.receive(message("a", 1, 5), at: .seconds(3000)).kind == .duplicate)
        #expect(fleet.receive(message("a", 1, boot: 2, 5), at: .seconds(3000)).kind == .first)
        #expect(fleet.receive(message("a", 1, 6), at: .seconds(3000)).kind == .duplicate)
        #expect(fleet.counters.duplicates == 3)
        #expect(fleet.counters.restarts == 1)
    }

    @Test func gapsAreMissingUntilTheirMessagesCome() {
        var fleet = FleetWindow()
        for sequence: UInt64 in [10, 11, 15] { _ = fleet.receive(message("a", sequence, Int(sequence)), at: .zero) }
        #expect(fleet.counters.missing == 3)
        _ = fleet.receive(message("a", 13, 13), at: .zero)
        #expect(fleet.counters.missing == 2)
        #expect(fleet.counters.reordered == 1)
        // What came before the first one is not missing.
        _ = fleet.receive(message("a", 9, 9), at: .zero)
        #expect(fleet.counters.missing == 2)
        #expect(fleet.finish(at: .zero).count == 5)
    }

    @Test func greatestNumbersDoNotTrap() {
        var fleet = FleetWindow()
        for sequence in [0, UInt64.max, UInt64.max - 1, 1, UInt64.max] {
            _ = fleet.receive(message("a", sequence, Int(sequence % 1000)), at: .zero)
        }
        _ = fleet.receive(message("b", 0), at: .zero)
        _ = fleet.receive(message("b", .max), at: .zero)
        #expect(fleet.counters.missing == .max)
        #expect(fleet.counters.duplicates == 2)
    }

    @Test func secondMessageOfAGatewayIsAnotherTransmission() {
        var fleet = FleetWindow()
        _ = fleet.receive(message("a", 1), at: .zero)
        _ = fleet.receive(message("b", 1), at: .zero)
        let outcome = fleet.receive(message("a", 2), at: .seconds(1))
        #expect(outcome.kind == .first)
        #expect(outcome.observations.map { $0.receivers.count } == [2])
        #expect(fleet.receive(message("b", 2), at: .seconds(1)).kind == .another)
        #expect(fleet.advance(to: .milliseconds(2999)).isEmpty)
        #expect(fleet.advance(to: .seconds(3)).map { $0.receivers.count } == [2])
    }

    @Test func messageWithoutNumberIsADuplicateIfItIsTheSame() {
        var fleet = FleetWindow()
        _ = fleet.receive(message("a"), at: .zero)
        #expect(fleet.receive(message("a"), at: .zero).kind == .duplicate)
        #expect(fleet.receive(message("a", time: "2026-11-24T16:48:20Z"), at: .zero).kind == .first)
    }

    @Test func messageAfterTheEndOfItsWindowIsLate() {
        var fleet = FleetWindow()
        _ = fleet.receive(message("a", 1), at: .zero)
        let outcome = fleet.receive(message("b", 1), at: .seconds(5))
        #expect(outcome.kind == .late)
        #expect(outcome.observations.map { $0.receivers.count } == [1])
        #expect(fleet.receive(message("b", 2), at: .seconds(6)).kind == .first)
        #expect(fleet.counters.late == 1)
    }

    @Test func endedWindowsAreForgottenAfterTheMemory() {
        var fleet = FleetWindow()
        _ = fleet.receive(message("a", 1), at: .zero)
        _ = fleet.advance(to: .milliseconds(31_999))
        #expect(fleet.groupCount == 1)
        #expect(fleet.receive(message("b", 1), at: .seconds(32)).kind == .first)
        #expect(fleet.groupCount == 1)
    }

    @Test func tagThatReturnsToEarlierReadingsIsNotLate() {
        var fleet = FleetWindow()
        _ = fleet.receive(message("b", 1, tag: 9, time: "2026-11-24T16:48:00.000Z"), at: .zero)
        _ = fleet.receive(message("a", 1, 20), at: .zero)
        _ = fleet.receive(message("a", 2, 21), at: .seconds(4))
        // Sent at the second 8, not delayed.
        #expect(fleet.receive(message("b", 2, 20, time: "2026-11-24T16:48:08.000Z"), at: .seconds(8)).kind == .first)
    }

    @Test func delayedMessageOfEarlierReadingsIsLate() {
        var fleet = FleetWindow()
        _ = fleet.receive(message("b", 1, tag: 9, time: "2026-11-24T16:48:00.000Z"), at: .zero)
        _ = fleet.receive(message("a", 1, 20), at: .zero)
        _ = fleet.receive(message("a", 2, 21), at: .seconds(4))
        // Sent at the second 0, eight seconds delayed.
        #expect(fleet.receive(message("b", 2, 20, time: "2026-11-24T16:48:00.000Z"), at: .seconds(8)).kind == .late)
    }

    @Test(arguments: ["1970-01-01T00:00:00Z", "2038-01-19T03:14:08.123Z", "not a time", "9999-99-99T99:99:99Z"])
    func clocksOfGatewaysDoNotMatter(time: String) {
        var fleet = FleetWindow()
        _ = fleet.receive(message("a", 1), at: .zero)
        #expect(fleet.receive(message("b", 1, time: time), at: .zero).kind == .another)
        #expect(fleet.receive(message("c", 1, time: "2026-11-24T16:48:19.375Z"), at: .seconds(1)).kind == .another)
        #expect(fleet.advance(to: .seconds(2)).map { $0.receivers.count } == [3])
    }

    @Test func timesOfMessagesAreParsed() {
        #expect(ClockOffset.parse("1970-01-01T00:00:00Z") == .zero)
        #expect(ClockOffset.parse("2000-02-29T12:00:00.5Z") == .milliseconds(951_825_600_500))
        #expect(ClockOffset.parse("2026-11-24T16:48:19.375Z") == .milliseconds(1_795_538_899_375))
        for text in [
            "", "2026-11-24T16:48:19+01:00", "2026-13-24T16:48:19Z", "2026-11-24 16:48:19Z", "x026-11-24T16:48:19Z",
        ] {
            #expect(ClockOffset.parse(text) == nil, "\(text)")
        }
    }

    @Test func oldestWindowEndsEarlyIfTooManyAreOpen() {
        var configuration = FleetWindow.Configuration()
        configuration.openLimit = 2
        var fleet = FleetWindow(configuration)
        let counts = (0..<5).map { fleet.receive(message("a", UInt64($0), $0), at: .zero).observations.count }
        #expect(counts == [0, 0, 1, 1, 1])
        #expect(fleet.openWindowCount == 2)
        #expect(fleet.counters.endedEarly == 3)
    }

    @Test func readingsOfOpenWindowsAreBounded() {
        var configuration = FleetWindow.Configuration()
        configuration.byteLimit = 100
        var fleet = FleetWindow(configuration)
        var count = 0
        for number in 0..<100 {
            count += fleet.receive(message("a", UInt64(number), number), at: .zero).observations.count
        }
        #expect(fleet.openWindowCount <= 3 && fleet.openWindowCount > 0)
        #expect(count + fleet.openWindowCount == 100)
    }

    @Test func endedWindowsAreBounded() {
        var configuration = FleetWindow.Configuration()
        configuration.closedLimit = 10
        var fleet = FleetWindow(configuration)
        for number in 0..<100 { _ = fleet.receive(message("a", UInt64(number), number), at: .zero) }
        _ = fleet.advance(to: .seconds(2))
        #expect(fleet.groupCount == 10)
    }

    @Test func gatewaysBeyondTheLimitAreRefusedUntilOthersAreSilentForAnHour() {
        var configuration = FleetWindow.Configuration()
        configuration.gatewayLimit = 2
        var fleet = FleetWindow(configuration)
        _ = fleet.receive(message("a", 1), at: .zero)
        _ = fleet.receive(message("b", 1), at: .seconds(100))
        #expect(fleet.receive(message("c", 1), at: .seconds(101)).kind == .refused)
        _ = fleet.advance(to: .seconds(3660))
        #expect(fleet.gatewayCount == 1)
        #expect(fleet.receive(message("c", 1), at: .seconds(3661)).kind == .first)
    }

    @Test func weakestReceiversAreDroppedBeyondTheLimit() {
        var configuration = FleetWindow.Configuration()
        configuration.receiverLimit = 2
        var fleet = FleetWindow(configuration)
        for (index, rssi) in [-80, -60, -90, -50].enumerated() {
            _ = fleet.receive(message("g\(index)", 1, rssi: rssi), token: UInt64(index), at: .zero)
        }
        let observations = fleet.finish(at: .zero)
        #expect(observations.first?.receivers.map(\.rssi) == [-50, -60])
        #expect(observations.first?.tokens == [0, 1, 2, 3])
        #expect(fleet.counters.receiversDropped == 2)
    }

    @Test func silentGatewaysAreCounted() {
        var fleet = FleetWindow()
        _ = fleet.receive(message("a", 1), at: .zero)
        _ = fleet.receive(message("b", 1), at: .seconds(50))
        #expect(fleet.silentGatewayCount(for: .seconds(60), at: .seconds(59)) == 0)
        #expect(fleet.silentGatewayCount(for: .seconds(60), at: .seconds(60)) == 1)
        #expect(fleet.gatewayCount == 2)
    }
}
