import Testing

@testable import GatewayFleet

struct FleetConsumerTests {
    @Test func observationNamesTheElectedGatewayAndTheNumbersOfAllReceivers() throws {
        var fleet = FleetConsumer()
        #expect(fleet.receive(message("a", 4, rssi: -70), token: 1, at: .zero).isEmpty)
        #expect(fleet.receive(message("b", 7, rssi: -60), token: 2, at: .zero).isEmpty)
        let output = fleet.advance(to: .seconds(2))
        #expect(output.changes.map(\.gateway) == ["b"])
        let (observation, elected) = try #require(output.observations.first)
        #expect(output.observations.count == 1)
        #expect(elected == "b")
        #expect(observation.receivers.map(\.number?.sequence) == [7, 4])
        #expect(observation.tokens == [1, 2])
        #expect(observation.json(elected: elected).hasSuffix(", \"best\": \"b\", \"connect\": \"b\"}"))
    }

    @Test func firstGatewayIsTheStrongestOfTheFirstWindowWhicheverMessageArrivesFirst() {
        var fleet = FleetConsumer()
        #expect(fleet.receive(message("attic", 1, rssi: -81), token: 1, at: .zero).isEmpty)
        #expect(fleet.receive(message("hall", 1, rssi: -66), token: 2, at: .milliseconds(5)).isEmpty)
        #expect(fleet.advance(to: .milliseconds(1999)).isEmpty)
        // The message of another tag ends the window.
        let output = fleet.receive(message("attic", 2, tag: 2), token: 3, at: .seconds(2))
        #expect(output.changes.map(\.gateway) == ["hall"])
        #expect(output.observations.map(\.elected) == ["hall"])
    }

    @Test func endOfTheProgramMakesTheFirstChoice() {
        var fleet = FleetConsumer()
        _ = fleet.receive(message("a", 1), token: 1, at: .zero)
        let output = fleet.finish(at: .seconds(1))
        #expect(output.changes.map(\.gateway) == ["a"])
        #expect(output.observations.map(\.elected) == ["a"])
        #expect(fleet.finish(at: .seconds(1)).isEmpty)
    }

    @Test func eachTokenComesBackOnce() {
        var fleet = FleetConsumer()
        var outputs = [
            fleet.receive(message("a", 1), token: 1, at: .zero),
            fleet.receive(message("a", 1), token: 2, at: .zero),
            fleet.receive(message("b", 1), token: 3, at: .seconds(5)),
            fleet.receive(message("a", 2, 1), token: 4, at: .seconds(5)),
        ]
        outputs.append(fleet.finish(at: .seconds(5)))
        #expect(outputs.flatMap(\.discarded) == [2, 3])
        #expect(outputs.flatMap { $0.observations.flatMap(\.observation.tokens) } == [1, 4])
    }

    @Test func gatewayWithoutFreeConnectionIsReplacedUntilItHasOne() throws {
        var fleet = FleetConsumer()
        _ = fleet.receive(message("a", 1, rssi: -40), token: 1, at: .zero)
        _ = fleet.receive(message("b", 1, rssi: -70), token: 2, at: .zero)
        #expect(fleet.advance(to: .seconds(2)).changes.map(\.gateway) == ["a"])
        let now = Duration.seconds(2)
        let full = try fleet.setConnections(#"{"free": 0, "limit": 3}"#, gateway: "a", at: now)
        #expect(full.changes.map(\.gateway) == ["b"])
        #expect(try fleet.setConnections(#"{"free": 1, "limit": 3}"#, gateway: "a", at: now).isEmpty)
        #expect(fleet.receive(message("b", 2, 1, rssi: -70), token: 3, at: now).changes.map(\.gateway) == ["a"])
        #expect(throws: FleetMessageError.missing("free")) {
            try fleet.setConnections("{}", gateway: "a", at: .zero)
        }
    }

    @Test func offlineGatewayIsReplacedAndCounted() {
        var fleet = FleetConsumer()
        _ = fleet.receive(message("a", 1), token: 1, at: .zero)
        _ = fleet.receive(message("b", 1), token: 2, at: .zero)
        #expect(fleet.advance(to: .seconds(2)).changes.map(\.gateway) == ["a"])
        #expect(fleet.setOnline(false, gateway: "a", at: .seconds(2)).changes.map(\.gateway) == ["b"])
        #expect(fleet.countMalformed() && !fleet.countMalformed())
        let status = fleet.status(at: .seconds(60))
        #expect(status.offlineGatewayCount == 1)
        #expect(status.gatewayCount == 2)
        #expect(status.silentGatewayCount == 2)
        #expect(status.malformedCount == 2)
        #expect(status.messages.received == 2)
        #expect(status.tagCount == 1)
    }
}

/// Messages that an earlier engine took.
struct FleetRestoringTests {
    private func restored(
        _ message: FleetMessage,
        _ token: UInt64,
        isFinished: Bool = false,
        age: Duration = .seconds(1)
    ) -> FleetWindow.Restored {
        .init(message, token: token, isFinished: isFinished, age: age)
    }

    @Test func unfinishedMessagesAreCollectedWithThoseThatFollow() {
        var fleet = FleetWindow()
        let (observations, discarded) = fleet.restore(
            [restored(message("a", 1), 5), restored(message("b", 1), 6)],
            at: .zero
        )
        #expect(observations.isEmpty && discarded.isEmpty)
        #expect(fleet.receive(message("c", 1), token: 7, at: .seconds(1)).kind == .another)
        #expect(fleet.receive(message("a", 1), token: 8, at: .seconds(1)).kind == .duplicate)
        #expect(fleet.advance(to: .seconds(2)).map(\.tokens) == [[5, 6, 7]])
    }

    @Test func finishedMessageIsADuplicateAndItsTransmissionIsKnown() {
        var fleet = FleetWindow()
        let (observations, discarded) = fleet.restore(
            [restored(message("a", 1), 5, isFinished: true), restored(message("b", 3), 6, isFinished: true)],
            at: .zero
        )
        #expect(observations.isEmpty && discarded.isEmpty)
        #expect(fleet.receive(message("a", 1), at: .zero).kind == .duplicate)
        #expect(fleet.receive(message("c", 1), at: .zero).kind == .late)
        #expect(fleet.receive(message("b", 4), at: .zero).kind == .first)
        #expect(fleet.finish(at: .zero).count == 1)
    }

    @Test(
        arguments: [
            (.seconds(29), .late), (.seconds(30), .first), (.seconds(3600), .first), (.seconds(-1), .first),
        ] as [(Duration, FleetWindow.Kind)]
    )
    func transmissionIsForgottenByItsAge(age: Duration, kind: FleetWindow.Kind) {
        var fleet = FleetWindow()
        _ = fleet.restore([restored(message("a", 1), 5, isFinished: true, age: age)], at: .zero)
        #expect(fleet.receive(message("b", 1), at: .zero).kind == kind)
        #expect(fleet.receive(message("a", 1), at: .zero).kind == .duplicate)
    }

    /// The clock was set back after the message had arrived. It counts as one that arrives now.
    @Test func delayIsMeasuredAgainstAMessageOfUnknownAge() {
        var fleet = FleetWindow()
        let known = restored(
            message("a", 1, time: "2026-11-24T16:48:00Z"),
            5,
            isFinished: true,
            age: .seconds(-3600)
        )
        _ = fleet.restore([known], at: .zero)
        let later = message("a", 2, 1, time: "2026-11-24T16:48:05Z")
        #expect(fleet.receive(later, at: .seconds(15)).delay == .seconds(10))
    }

    @Test func memoryOfARestoredTransmissionEnds() {
        var fleet = FleetWindow()
        _ = fleet.restore([restored(message("a", 1), 5, isFinished: true, age: .seconds(20))], at: .zero)
        #expect(fleet.groupCount == 1)
        #expect(fleet.advance(to: .seconds(9)).isEmpty)
        #expect(fleet.groupCount == 1)
        #expect(fleet.advance(to: .seconds(10)).isEmpty)
        #expect(fleet.groupCount == 0)
    }

    @Test func repetitionAmongRestoredMessagesIsDiscarded() {
        var fleet = FleetWindow()
        let (_, discarded) = fleet.restore(
            [
                restored(message("a", 1), 5), restored(message("a", 1), 6),
                restored(message("b", 1), 7, isFinished: true), restored(message("b", 1), 8),
            ],
            at: .zero
        )
        #expect(discarded == [6, 8, 5])
        #expect(fleet.finish(at: .zero).isEmpty)
    }

    /// What an engine and its successor return together, whichever message is the last one of the first engine.
    @Test(arguments: 0..<12)
    func nothingIsLostOrTwiceAcrossARestart(cut: Int) {
        let messages = (0..<12).map { message("g\($0 % 3)", UInt64($0 / 3 + 1), $0 / 3, rssi: -50 - $0) }
        var first = FleetWindow()
        var finished: Set<UInt64> = []
        var lines: [CombinedObservation] = []
        for (index, message) in messages[..<cut].enumerated() {
            let outcome = first.receive(message, token: UInt64(index), at: .seconds(index))
            lines += outcome.observations
            if outcome.kind == .late { finished.insert(UInt64(index)) }
        }
        finished.formUnion(lines.flatMap(\.tokens))
        var second = FleetWindow()
        let known = messages[..<cut].enumerated().map { index, message in
            restored(
                message,
                UInt64(index),
                isFinished: finished.contains(UInt64(index)),
                age: .seconds(cut - index)
            )
        }
        let (observations, discarded) = second.restore(known, at: .zero)
        lines += observations
        #expect(discarded.isEmpty)
        // The broker sends the last one again.
        for index in max(0, cut - 1)..<messages.count {
            lines += second.receive(messages[index], token: UInt64(index), at: .seconds(index - cut + 1)).observations
        }
        lines += second.finish(at: .seconds(20))
        // The third message of a transmission comes after its window of 2 seconds, unless the restart has prolonged it.
        #expect(lines.count == 4)
        let tokens = lines.flatMap(\.tokens)
        #expect(Set(tokens).count == tokens.count)
    }
}
