import Testing

@testable import GatewayFleet

struct RetainedElectionTests {
    private let tag: UInt64 = 1
    private let hall = #"{"address": "00:00:00:00:00:01", "connect": "hall", "previous": null, "rssi": -60.0}"#

    private func time(_ seconds: Int) -> String {
        func digits(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return "2026-11-24T\(digits(12 + seconds / 3600)):\(digits(seconds / 60 % 60)):\(digits(seconds % 60))Z"
    }

    @Test func electionOfAnEarlierConsumerThatIsNotRenewedIsRemovedAfterFourMinutes() {
        var fleet = FleetConsumer()
        fleet.addRetainedElection(of: tag, payload: hall, at: .seconds(5))
        #expect(fleet.advance(to: .milliseconds(244_999)).isEmpty)
        let output = fleet.advance(to: .seconds(245))
        #expect(output.changes == [.init(address: tag, gateway: nil, previous: "hall", rssi: nil)])
        #expect(fleet.advance(to: .seconds(1000)).isEmpty)
    }

    @Test(arguments: [1, 200, 239])
    func electionThatIsRenewedStays(second: Int) {
        var fleet = FleetConsumer()
        fleet.addRetainedElection(of: tag, payload: hall, at: .zero)
        _ = fleet.receive(message("attic", 1, time: time(second - 1)), token: 1, at: .seconds(second - 1))
        #expect(fleet.advance(to: .seconds(second + 1)).changes.map(\.gateway) == ["attic"])
        // It is heard for as long as the earlier election would have been kept.
        for later in stride(from: second + 1, through: 245, by: 30) {
            let heard = message("attic", UInt64(later), time: time(later))
            #expect(fleet.receive(heard, token: UInt64(later), at: .seconds(later)).changes == [])
        }
        #expect(fleet.advance(to: .seconds(245)).changes.isEmpty)
    }

    @Test func electionThatWasRenewedAndEndedIsNotRemovedTwice() {
        var fleet = FleetConsumer()
        fleet.addRetainedElection(of: tag, payload: hall, at: .zero)
        _ = fleet.receive(message("hall", 1), token: 1, at: .zero)
        _ = fleet.advance(to: .seconds(2))
        #expect(fleet.setOnline(false, gateway: "hall", at: .seconds(3)).changes.map(\.gateway) == [nil])
        #expect(fleet.advance(to: .seconds(500)).changes.isEmpty)
    }

    /// The broker sends them again after a lost connection, with those published while the consumer was disconnected.
    @Test func electionThatComesAgainIsRemovedOnce() {
        var fleet = FleetConsumer()
        _ = fleet.receive(message("hall", 1, tag: 2, time: time(0)), token: 1, at: .zero)
        _ = fleet.advance(to: .seconds(2))
        for second in 10...12 {
            fleet.addRetainedElection(of: tag, payload: hall, at: .seconds(second))
            fleet.addRetainedElection(of: 2, payload: hall, at: .seconds(second))
        }
        for later in stride(from: 20, through: 290, by: 30) {
            let heard = message("hall", UInt64(later), tag: 2, time: time(later))
            #expect(fleet.receive(heard, token: UInt64(later), at: .seconds(later)).changes == [])
        }
        #expect(fleet.advance(to: .seconds(300)).changes.map(\.address) == [tag])
    }

    @Test(arguments: ["{", "hall", "{}", #"{"connect": null}"#, #"{"connect": 7}"#, #"{"connect": "a/b"}"#])
    func electionWithoutAGatewayIsRemoved(payload: String) {
        var fleet = FleetConsumer()
        fleet.addRetainedElection(of: tag, payload: payload, at: .zero)
        let output = fleet.advance(to: .seconds(240))
        #expect(output.changes == [.init(address: tag, gateway: nil, previous: nil, rssi: nil)])
    }

    @Test func emptyMessageIsNoElection() {
        var fleet = FleetConsumer()
        fleet.addRetainedElection(of: tag, payload: "", at: .zero)
        #expect(fleet.advance(to: .seconds(240)).isEmpty)
    }

    @Test func electionsAreBoundedAndRemovedSomeAtATime() {
        var elections = RetainedElections(limit: 1000, time: .seconds(1))
        for number in 0..<2000 { elections.insert(UInt64(number), gateway: "hall", at: .zero) }
        elections.remove(0)
        let counts = (0..<5).map { _ in elections.takeEnded(at: .seconds(1)).count }
        #expect(counts == [256, 256, 256, 231, 0])
        elections.insert(0, gateway: nil, at: .seconds(1))
        #expect(elections.takeEnded(at: .seconds(2)).count == 1)
    }

    @Test func topicOfAnElectionIsThatOfItsTag() {
        let topics = FleetTopics(prefix: "home")
        #expect(topics.electionFilter == "home/fleet/gateways/+")
        #expect(topics.electedTag(of: topics.election(of: 0xC0DE_0000_0002)) == 0xC0DE_0000_0002)
        for topic in [
            "home/fleet/gateways/", "home/fleet/gateways/c0de00000002", "home/fleet/sensors/C0DE00000002",
            "home/fleet/gateways/C0DE00000002/x", "other/fleet/gateways/C0DE00000002",
        ] {
            #expect(topics.electedTag(of: topic) == nil, "\(topic)")
        }
    }
}
