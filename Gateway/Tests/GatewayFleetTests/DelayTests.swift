import Testing

@testable import GatewayFleet

struct DelayTests {
    @Test func delayIsThatBeyondTheSmallestDifference() {
        var offset = ClockOffset()
        #expect(offset.delay(of: .seconds(1000), at: .seconds(5)) == .zero)
        #expect(offset.delay(of: .seconds(1001), at: .seconds(9)) == .seconds(3))
        #expect(offset.delay(of: .seconds(1010), at: .seconds(12)) == .zero)
        #expect(offset.delay(of: .seconds(1011), at: .seconds(14)) == .seconds(1))
    }

    /// Two hours of messages that are sent in order, faster than they were made, for longer than some periods.
    @Test(arguments: [1, 2, 10, 100])
    func delayOfABacklogIsKnownAfterASilenceOfHours(speed: Int) {
        var offset = ClockOffset()
        #expect(offset.delay(of: .zero, at: .seconds(3)) == .zero)
        let count = 7200 * speed / (speed + 1)
        for number in 1...count {
            let time = Duration.seconds(number)
            let now = Duration.seconds(7200) + time / (speed + 1)
            let delay = offset.delay(of: time, at: now)
            #expect(delay == now - time - .seconds(3))
        }
    }

    @Test func clockThatIsSetBackLooksLikeADelayForSomeMinutes() {
        var offset = ClockOffset()
        var delays: [Duration] = []
        for second in 0..<400 {
            let time = Duration.seconds(second < 30 ? second : second - 600)
            delays.append(offset.delay(of: time, at: .seconds(second)))
        }
        #expect(delays[..<30].allSatisfy { $0 == .zero })
        #expect(delays[30..<180].allSatisfy { $0 == .seconds(600) })
        #expect(delays[180...].allSatisfy { $0 == .zero })
    }

    /// A gateway that sends a message every two minutes, and whose clock loses one second in an hour.
    @Test func slowClockIsNoDelay() {
        var offset = ClockOffset()
        for hour in 0..<1000 {
            for message in 0..<30 {
                let now = Duration.seconds(hour * 3600 + message * 120)
                #expect(offset.delay(of: now - .seconds(hour), at: now) <= .seconds(1))
            }
        }
    }

    @Test(arguments: [(7200, 7200), (61, 61), (60, 0), (0, 0), (-3600, 0)])
    func firstMessageIsMeasuredByTheSystemsClock(age: Int, delay: Int) {
        var offset = ClockOffset()
        let (zero, now) = (Duration.seconds(1_000_000), Duration.seconds(10))
        #expect(offset.delay(of: zero + now - .seconds(age), at: now, expected: .zero - zero) == .seconds(delay))
    }

    // MARK: The window

    /// The time of the messages in seconds from 12:00 on.
    private func time(_ seconds: Int) -> String {
        func digits(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return "2026-11-24T\(digits(12 + seconds / 3600)):\(digits(seconds / 60 % 60)):\(digits(seconds % 60))Z"
    }

    @Test func outcomeHasTheDelay() {
        var fleet = FleetWindow()
        #expect(fleet.receive(message("a", 1, 1, time: time(0)), at: .zero).delay == .zero)
        #expect(fleet.receive(message("a", 2, 2, time: time(1)), at: .seconds(91)).delay == .seconds(90))
        #expect(fleet.receive(message("a", 2, 2, time: time(1)), at: .seconds(92)).delay == .zero)
        #expect(fleet.receive(message("b", 1, 1, time: "not a time"), at: .seconds(92)).delay == .zero)
    }

    @Test(arguments: [false, true])
    func delayIsKnownFromMessagesOfAnEarlierEngine(isFinished: Bool) {
        var fleet = FleetWindow()
        let known = FleetWindow.Restored(
            message("a", 1, 1, time: time(0)),
            token: 1,
            isFinished: isFinished,
            age: .seconds(7200)
        )
        _ = fleet.restore([known], at: .zero)
        #expect(fleet.receive(message("a", 2, 2, time: time(10)), at: .seconds(5)).delay == .seconds(7195))
        #expect(fleet.receive(message("a", 3, 3, time: time(7206)), at: .seconds(6)).delay == .zero)
    }

    @Test func delayOfAnUnknownGatewayIsMeasuredByTheSystemsClock() throws {
        let systemTime = try #require(ClockOffset.parse(time(7200)))
        var fleet = FleetWindow()
        let old = fleet.receive(message("a", 1, 1, time: time(0)), at: .seconds(5), systemTime: systemTime)
        let new = fleet.receive(message("b", 1, 2, time: time(7200)), at: .seconds(5), systemTime: systemTime)
        #expect(old.delay == .seconds(7200) && new.delay == .zero)
    }

    /// The consumer's machine starts without a clock. The network then sets the time by three hours.
    @Test(arguments: [false, true])
    func systemsClockThatIsSetIsUsedForLaterGateways(isForward: Bool) throws {
        let systemTime = try #require(ClockOffset.parse(time(4 * 3600)))
        let step = Duration.seconds(isForward ? 3 * 3600 : -3 * 3600)
        var fleet = FleetWindow()
        let first = message("a", 1, 1, time: time(4 * 3600))
        _ = fleet.receive(first, at: .seconds(5), systemTime: systemTime - step)
        let old = message("b", 1, 2, time: time(2 * 3600))
        let new = message("c", 1, 3, time: time(4 * 3600))
        #expect(fleet.receive(old, at: .seconds(5), systemTime: systemTime).delay == .seconds(7200))
        #expect(fleet.receive(new, at: .seconds(5), systemTime: systemTime).delay == .zero)
    }

    /// A message that waited at its gateway for two hours, and arrived when an earlier engine ran, an hour ago.
    @Test(arguments: [false, true])
    func delayOfARestoredMessageIsMeasuredByTheSystemsClock(isFinished: Bool) throws {
        let systemTime = try #require(ClockOffset.parse(time(3 * 3600)))
        let known = FleetWindow.Restored(
            message("a", 1, 1, time: time(0)),
            token: 1,
            isFinished: isFinished,
            age: .seconds(3600)
        )
        var fleet = FleetWindow()
        _ = fleet.restore([known], at: .seconds(5), systemTime: systemTime)
        // The next message also arrives two hours after it was made.
        let next = message("a", 2, 2, time: time(3600))
        #expect(fleet.receive(next, at: .seconds(5), systemTime: systemTime).delay == .seconds(7200))
    }

    // MARK: The election

    /// The hall loses the broker while it hears the tag with a strong signal, then the tag moves to the attic. A
    /// gateway that is silent for an hour is forgotten, and its messages are measured by the system's clock then.
    @Test(arguments: [(3000, nil), (7200, "2026-11-24T12:00:00Z")] as [(Int, String?)])
    func backlogOfAGatewayElectsNothing(outage: Int, timeAtZero: String?) {
        let start = timeAtZero.flatMap { ClockOffset.parse($0) }
        var fleet = FleetConsumer()
        var changes: [String?] = []
        var sequences: [String: UInt64] = [:]
        func hear(_ gateway: String, _ rssi: Int, of second: Int, at now: Duration) {
            let sequence = sequences[gateway, default: 0] + 1
            sequences[gateway] = sequence
            let heard = message(gateway, sequence, Int(sequence), rssi: rssi, time: time(second))
            let output = fleet.receive(heard, token: 0, at: now, systemTime: start.map { $0 + now })
            changes += output.changes.map(\.gateway)
        }
        hear("hall", -40, of: 0, at: .zero)
        changes += fleet.advance(to: .seconds(2)).changes.map(\.gateway)
        #expect(changes == ["hall"])
        changes += fleet.setOnline(false, gateway: "hall", at: .seconds(45)).changes.map(\.gateway)
        for second in outage - 200..<outage { hear("attic", -65, of: second, at: .seconds(second)) }
        changes += fleet.setOnline(true, gateway: "hall", at: .seconds(outage)).changes.map(\.gateway)
        // The tag moved 400 seconds before the end of the outage.
        for number in 0..<outage - 400 {
            let second = outage + number / 1000
            hear("hall", -40, of: 60 + number, at: .seconds(outage) + .milliseconds(number))
            if number % 1000 == 0 { hear("attic", -65, of: second, at: .seconds(second)) }
        }
        changes += fleet.advance(to: .seconds(outage + 10)).changes.map(\.gateway)
        #expect(changes == ["hall", nil, "attic"])
        // The tag comes back to the hall.
        for second in outage + 10..<outage + 20 { hear("hall", -40, of: second, at: .seconds(second)) }
        #expect(changes == ["hall", nil, "attic", "hall"])
    }

    @Test func tagThatHasLeftIsNotElectedAgain() {
        var election = GatewayElection()
        #expect(election.receive(1, by: "hall", rssi: -40, delay: .seconds(60), at: .seconds(100)) == nil)
        #expect(election.tagCount == 0 && election.advance(to: .seconds(200)).isEmpty)
    }

    @Test func timeoutBeginsWithTheReceptionNotWithItsMessage() {
        var election = GatewayElection()
        _ = election.receive(1, by: "hall", rssi: -40, delay: .seconds(50), at: .seconds(100))
        #expect(election.advance(to: .seconds(102)).map(\.gateway) == ["hall"])
        #expect(election.receive(1, by: "attic", rssi: -80, at: .seconds(105)) == nil)
        // A message of the hall that was delayed longer is no later reception.
        #expect(election.receive(1, by: "hall", rssi: -40, delay: .seconds(59), at: .seconds(108)) == nil)
        // The hall heard it last at 50 seconds.
        #expect(election.advance(to: .seconds(120)).map(\.gateway) == ["attic"])
    }
}
