import Testing

@testable import GatewayFleet

struct GatewayElectionTests {
    private let tag: UInt64 = 0xC0DE_0000_0002

    @Test func firstGatewayIsChosen() {
        var election = GatewayElection()
        let change = election.receive(tag, by: "a", rssi: -70, at: .zero)
        #expect(change == .init(address: tag, gateway: "a", previous: nil, rssi: -70))
        #expect(
            change?.json
                == "{\"address\": \"C0:DE:00:00:00:02\", \"connect\": \"a\", \"previous\": null, \"rssi\": -70.0}"
        )
        #expect(election.receive(tag, by: "a", rssi: -90, at: .zero) == nil)
    }

    @Test(arguments: [(-54, nil), (-53, "b")] as [(Int, String?)])
    func anotherGatewayMustBeStrongerByTheHysteresis(rssi: Int, expected: String?) {
        var election = GatewayElection()
        _ = election.receive(tag, by: "a", rssi: -69, at: .zero)
        #expect(election.receive(tag, by: "b", rssi: rssi, at: .zero)?.gateway == expected)
    }

    @Test func signalIsSmoothed() {
        var election = GatewayElection()
        _ = election.receive(tag, by: "a", rssi: -60, at: .zero)
        _ = election.receive(tag, by: "b", rssi: -70, at: .zero)
        // One strong reception of b is not enough: -70, -60, -52.5, -46.9, -42.7.
        let changes = (1...4).map { election.receive(tag, by: "b", rssi: -30, at: .seconds($0))?.gateway }
        #expect(changes == [nil, nil, nil, "b"])
    }

    @Test func staleGatewayIsReplacedByOneThatHearsTheTag() {
        var election = GatewayElection()
        _ = election.receive(tag, by: "a", rssi: -40, at: .zero)
        #expect(election.receive(tag, by: "b", rssi: -90, at: .seconds(50)) == nil)
        #expect(election.advance(to: .seconds(59)).isEmpty)
        let changes = election.advance(to: .seconds(70))
        #expect(changes == [.init(address: tag, gateway: "b", previous: "a", rssi: -90)])
    }

    @Test func staleGatewayStaysIfNoOtherHearsTheTagUntilTheTagIsForgotten() {
        var election = GatewayElection()
        _ = election.receive(tag, by: "a", rssi: -40, at: .zero)
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
        var election = GatewayElection()
        _ = election.receive(tag, by: "a", rssi: -40, at: .zero)
        _ = election.receive(tag, by: "b", rssi: -80, at: .zero)
        #expect(election.setOnline(false, "a", at: .seconds(1)).map(\.gateway) == ["b"])
        #expect(election.setOnline(false, "b", at: .seconds(2)).map(\.gateway) == [nil])
        #expect(election.receive(tag, by: "a", rssi: -40, at: .seconds(3)) == nil)
        #expect(election.setOnline(true, "a", at: .seconds(4)).isEmpty)
        #expect(election.receive(tag, by: "a", rssi: -40, at: .seconds(5))?.gateway == "a")
    }

    @Test func gatewayWithoutFreeSlotsIsNotChosen() {
        var election = GatewayElection()
        #expect(election.setFreeSlots(0, "a", at: .zero).isEmpty)
        #expect(election.receive(tag, by: "a", rssi: -40, at: .zero) == nil)
        #expect(election.receive(tag, by: "b", rssi: -90, at: .zero)?.gateway == "b")
        #expect(election.setFreeSlots(1, "a", at: .zero).isEmpty)
        #expect(election.receive(tag, by: "a", rssi: -40, at: .zero)?.gateway == "a")
        #expect(election.setFreeSlots(0, "a", at: .zero).map(\.gateway) == ["b"])
    }

    @Test func tagsGatewaysAndCandidatesAreBounded() {
        var configuration = GatewayElection.Configuration()
        configuration.tagLimit = 10
        configuration.gatewayLimit = 20
        configuration.candidateLimit = 4
        var election = GatewayElection(configuration)
        for number in 0..<100 { _ = election.receive(UInt64(number), by: "a", rssi: -50, at: .zero) }
        #expect(election.tagCount == 10)
        for number in 0..<100 { _ = election.receive(0, by: "g\(number)", rssi: -50 + number, at: .zero) }
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
        decide(address, now)
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
