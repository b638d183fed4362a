import Testing

@testable import GatewayFleet

struct GatewayElectionTests {
    private let tag: UInt64 = 0xC0DE_0000_0002

    /// An election in which gateways heard the tag at the time zero, and the strongest was chosen after two seconds.
    private func election(_ signals: [(gateway: String, rssi: Int)]) -> GatewayElection {
        var election = GatewayElection()
        for (gateway, rssi) in signals { #expect(election.receive(tag, by: gateway, rssi: rssi, at: .zero) == nil) }
        #expect(election.advance(to: .milliseconds(1999)).isEmpty)
        #expect(election.advance(to: .seconds(2)).count == 1)
        return election
    }

    @Test func firstGatewayIsChosen() {
        var election = GatewayElection()
        #expect(election.receive(tag, by: "a", rssi: -70, at: .zero) == nil)
        let changes = election.advance(to: .seconds(2))
        let change = changes.first
        #expect(changes.count == 1)
        #expect(change == .init(address: tag, gateway: "a", previous: nil, rssi: -70))
        #expect(
            change?.json
                == "{\"address\": \"C0:DE:00:00:00:02\", \"connect\": \"a\", \"previous\": null, \"rssi\": -70.0}"
        )
        #expect(election.receive(tag, by: "a", rssi: -90, at: .seconds(2)) == nil)
        #expect(election.advance(to: .seconds(10)).isEmpty)
    }

    @Test(arguments: ["a", "b", "c"])
    func strongestOfTheCollectionIsChosenWhicheverIsFirst(first: String) {
        var election = GatewayElection()
        let rssi = ["a": -81, "b": -66, "c": -90]
        #expect(election.receive(tag, by: first, rssi: rssi[first]!, at: .zero) == nil)
        for (gateway, rssi) in rssi where gateway != first {
            #expect(election.receive(tag, by: gateway, rssi: rssi, at: .milliseconds(1900)) == nil)
        }
        #expect(election.advance(to: .seconds(3)).map(\.gateway) == ["b"])
    }

    /// Otherwise a tag that transmits every 90 seconds would have the gateway whose message arrives first.
    @Test func firstReceptionAfterTheTimeoutWaitsForTheOthers() {
        var election = election([("hall", -66), ("attic", -81)])
        for round in 1...10 {
            let now = Duration.seconds(90 * round)
            #expect(election.advance(to: now).isEmpty)
            #expect(election.receive(tag, by: "attic", rssi: -81, at: now) == nil)
            // Also if `advance(to:)` is called in between.
            #expect(election.advance(to: now + .milliseconds(1900)).isEmpty)
            #expect(election.receive(tag, by: "hall", rssi: -66, at: now + .milliseconds(1900)) == nil)
        }
        #expect(election.gateway(for: tag) == "hall")
    }

    @Test func collectionTimeIsAtMostHalfOfTheTimeout() {
        var configuration = GatewayElection.Configuration()
        configuration.collectionTime = .seconds(3600)
        var election = GatewayElection(configuration)
        #expect(election.receive(tag, by: "a", rssi: -66, at: .zero) == nil)
        #expect(election.advance(to: .milliseconds(29_999)).isEmpty)
        #expect(election.advance(to: .seconds(30)).map(\.gateway) == ["a"])
    }

    @Test(arguments: [(-54, nil), (-53, "b")] as [(Int, String?)])
    func anotherGatewayMustBeStrongerByTheHysteresis(rssi: Int, expected: String?) {
        var election = election([("a", -69)])
        #expect(election.receive(tag, by: "b", rssi: rssi, at: .seconds(2))?.gateway == expected)
    }

    @Test func signalIsSmoothed() {
        var election = election([("a", -60), ("b", -70)])
        // One strong reception of b is not enough: -70, -60, -52.5, -46.9, -42.7.
        let changes = (1...4).map { election.receive(tag, by: "b", rssi: -30, at: .seconds($0 + 2))?.gateway }
        #expect(changes == [nil, nil, nil, "b"])
    }

    @Test func staleGatewayIsReplacedByOneThatHearsTheTag() {
        var election = election([("a", -40)])
        #expect(election.receive(tag, by: "b", rssi: -90, at: .seconds(50)) == nil)
        #expect(election.advance(to: .seconds(59)).isEmpty)
        let changes = election.advance(to: .seconds(70))
        #expect(changes == [.init(address: tag, gateway: "b", previous: "a", rssi: -90)])
    }

    @Test func staleGatewayStaysIfNoOtherHearsTheTagUntilTheTagIsForgotten() {
        var election = election([("a", -40)])
        #expect(election.advance(to: .seconds(239)).isEmpty)
        #expect(election.gateway(for: tag) == "a")
        #expect(election.advance(to: .seconds(320)) == [.init(address: tag, gateway: nil, previous: "a", rssi: nil)])
        #expect(election.tagCount == 0)
        #expect(election.advance(to: .seconds(1_000_000_000)).isEmpty)
    }

    @Test func tagThatIsReportedOnceAMinuteKeepsItsGateway() {
        var election = GatewayElection()
        var changes = 0
        for minute in 0..<60 {
            let now = Duration.milliseconds(60_500 * minute)
            changes += election.advance(to: now).count
            changes += election.receive(tag, by: "a", rssi: -60, at: now) == nil ? 0 : 1
        }
        #expect(changes == 1)
    }

    @Test func offlineGatewayIsReplacedAndComesBackWithTheNextReception() {
        var election = election([("a", -40), ("b", -80)])
        #expect(election.setOnline(false, "a", at: .seconds(2)).map(\.gateway) == ["b"])
        #expect(election.setOnline(false, "b", at: .seconds(2)).map(\.gateway) == [nil])
        #expect(election.receive(tag, by: "a", rssi: -40, at: .seconds(3)) == nil)
        #expect(election.advance(to: .seconds(5)).isEmpty)
        #expect(election.setOnline(true, "a", at: .seconds(6)).isEmpty)
        #expect(election.receive(tag, by: "a", rssi: -40, at: .seconds(7)) == nil)
        #expect(election.advance(to: .seconds(9)).map(\.gateway) == ["a"])
    }

    @Test func gatewayWithoutFreeSlotsIsNotChosen() {
        var election = GatewayElection()
        #expect(election.setFreeSlots(0, "a", at: .zero).isEmpty)
        #expect(election.receive(tag, by: "a", rssi: -40, at: .zero) == nil)
        #expect(election.receive(tag, by: "b", rssi: -90, at: .zero) == nil)
        let now = Duration.seconds(2)
        #expect(election.advance(to: now).map(\.gateway) == ["b"])
        #expect(election.setFreeSlots(1, "a", at: now).isEmpty)
        #expect(election.receive(tag, by: "a", rssi: -40, at: now)?.gateway == "a")
        #expect(election.setFreeSlots(0, "a", at: now).map(\.gateway) == ["b"])
    }

    /// A broker sends the retained state of a gateway only once.
    @Test func stateOfASilentGatewayStaysKnown() {
        var election = GatewayElection()
        #expect(election.setFreeSlots(0, "full", at: .zero).isEmpty)
        #expect(election.setOnline(false, "offline", at: .zero).isEmpty)
        for hour in 1...3 { #expect(election.advance(to: .seconds(3600 * hour)).isEmpty) }
        let now = Duration.seconds(3 * 3600)
        for (gateway, rssi) in [("full", -40), ("offline", -50), ("free", -90)] {
            #expect(election.receive(tag, by: gateway, rssi: rssi, at: now) == nil)
        }
        #expect(election.advance(to: now + .seconds(2)).map(\.gateway) == ["free"])
        #expect(election.offlineGatewayCount == 1)
    }

    @Test func gatewayThatWasSilentLongestIsForgottenAtTheLimit() {
        var configuration = GatewayElection.Configuration()
        configuration.gatewayLimit = 2
        var election = GatewayElection(configuration)
        #expect(election.setFreeSlots(0, "a", at: .zero).isEmpty)
        #expect(election.setFreeSlots(0, "b", at: .seconds(1)).isEmpty)
        // Within an hour, no gateway is forgotten.
        #expect(election.setFreeSlots(1, "c", at: .seconds(3599)).isEmpty)
        #expect(election.refusedCount == 1)
        let now = Duration.seconds(7200)
        #expect(election.advance(to: now).isEmpty)
        #expect(election.receive(tag, by: "c", rssi: -90, at: now) == nil)
        #expect(election.receive(tag, by: "b", rssi: -40, at: now) == nil)
        #expect(election.refusedCount == 1)
        #expect(election.advance(to: now + .seconds(2)).map(\.gateway) == ["c"])
        #expect(election.receive(tag, by: "a", rssi: -40, at: now + .seconds(2)) == nil)
        #expect(election.refusedCount == 2)
    }

    @Test func tagsGatewaysAndCandidatesAreBounded() {
        var configuration = GatewayElection.Configuration()
        configuration.tagLimit = 10
        configuration.gatewayLimit = 20
        configuration.candidateLimit = 4
        var election = GatewayElection(configuration)
        for number in 0..<100 { _ = election.receive(UInt64(number), by: "a", rssi: -50, at: .zero) }
        #expect(election.tagCount == 10)
        #expect(election.advance(to: .seconds(2)).count == 10)
        for number in 0..<100 { _ = election.receive(0, by: "g\(number)", rssi: -50 + number, at: .seconds(2)) }
        #expect(election.refusedCount == 90 + 81)
        // The first one that is 16 dB stronger than a.
        #expect(election.gateway(for: 0) == "g16")
    }

    @Test func electionAgreesWithAPlainOne() {
        var generator = SplitMix(state: 11)
        for _ in 0..<50 {
            var election = GatewayElection()
            var plain = PlainElection()
            var now = Duration.zero
            for _ in 0..<400 {
                now += .milliseconds(Int.random(in: 0...3000, using: &generator))
                _ = election.endCollections(at: now)
                plain.advance(now)
                let index = Int.random(in: 0..<5, using: &generator)
                let gateway = "g\(index)"
                let address = UInt64.random(in: 0..<4, using: &generator)
                if Int.random(in: 0..<20, using: &generator) == 0 {
                    let isOnline = Bool.random(using: &generator)
                    _ = election.setOnline(isOnline, gateway, at: now)
                    plain.set(isOnline, gateway, now)
                } else {
                    // Never the same of two gateways.
                    let rssi = -100 + 5 * Int.random(in: 0..<14, using: &generator) + index
                    _ = election.receive(address, by: gateway, rssi: rssi, at: now)
                    plain.receive(address, gateway, Double(rssi), now)
                }
                #expect((0..<4).map { election.gateway(for: $0) } == (0..<4).map { plain.chosen[$0] })
            }
        }
    }
}

/// The rules of the election without any bounds.
private struct PlainElection {
    var chosen: [UInt64: String] = [:]
    private var offline: Set<String> = []
    /// The ends of the collections, which decide nothing before.
    private var ends: [UInt64: Duration] = [:]
    private var signals: [UInt64: [String: (rssi: Double, time: Duration)]] = [:]

    mutating func set(_ isOnline: Bool, _ gateway: String, _ now: Duration) {
        if isOnline { offline.remove(gateway) } else { offline.insert(gateway) }
        guard !isOnline else { return }
        for (address, name) in chosen where name == gateway { decide(address, now) }
    }

    mutating func receive(_ address: UInt64, _ gateway: String, _ rssi: Double, _ now: Duration) {
        let old = signals[address]?[gateway]
        let smoothed = old.flatMap { now - $0.time < .seconds(60) ? $0.rssi + 0.25 * (rssi - $0.rssi) : nil } ?? rssi
        signals[address, default: [:]][gateway] = (smoothed, now)
        let last = chosen[address].flatMap { signals[address]?[$0]?.time }
        if ends[address] == nil, let last, now - last < .seconds(60) {
            decide(address, now)
        } else {
            ends[address] = ends[address] ?? now + .seconds(2)
        }
    }

    /// Decides about the tags whose collections have ended.
    mutating func advance(_ now: Duration) {
        for (address, end) in ends where end <= now {
            ends[address] = nil
            decide(address, end)
        }
    }

    private mutating func decide(_ address: UInt64, _ now: Duration) {
        let online = signals[address, default: [:]].filter { !offline.contains($0.key) }
        let best = online.sorted { $0.key < $1.key }.filter { now - $0.value.time < .seconds(60) }.max {
            $0.value.rssi < $1.value.rssi
        }
        guard let name = chosen[address], let current = online[name] else {
            chosen[address] = best?.key
            return
        }
        guard let best, best.key != name else { return }
        if now - current.time >= .seconds(60) || best.value.rssi >= current.rssi + 16 { chosen[address] = best.key }
    }
}
