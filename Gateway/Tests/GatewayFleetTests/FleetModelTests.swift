import Testing

@testable import GatewayFleet

/// The engine against a plain one, with messages that are lost, repeated and delivered in another order.
struct FleetModelTests {
    @Test(arguments: UInt64(0)..<40)
    func engineAgreesWithAPlainOne(seed: UInt64) {
        var generator = SplitMix(state: seed)
        var fleet = FleetWindow()
        var plain = PlainFleet()
        var now = Duration.zero
        for delivery in deliveries(&generator) {
            now = max(now, delivery.time)
            let outcome = fleet.receive(delivery.message, token: delivery.token, at: now)
            let expected = plain.receive(delivery.message, delivery.token, now)
            #expect(outcome.kind == expected.kind)
            #expect(outcome.observations == expected.observations)
            #expect(fleet.counters.missing == plain.missing)
        }
        #expect(fleet.finish(at: now) == plain.finish())
        #expect(fleet.counters.observations == plain.count)
    }

    @Test(arguments: UInt64(0)..<20)
    func eachMessageThatIsNotADuplicateOrLateIsInOneObservation(seed: UInt64) {
        var generator = SplitMix(state: seed &+ 1000)
        var fleet = FleetWindow()
        var tokens: [UInt64] = []
        var expected: [UInt64] = []
        var now = Duration.zero
        for delivery in deliveries(&generator) {
            now = max(now, delivery.time)
            let outcome = fleet.receive(delivery.message, token: delivery.token, at: now)
            if outcome.kind == .first || outcome.kind == .another { expected.append(delivery.token) }
            tokens += outcome.observations.flatMap(\.tokens)
        }
        tokens += fleet.finish(at: now).flatMap(\.tokens)
        #expect(tokens.sorted() == expected)
    }

    private struct Delivery {
        var time: Duration
        var message: FleetMessage
        var token: UInt64 = 0
    }

    /// Transmissions of some tags, received by some of the gateways, with faults on their way.
    private func deliveries(_ generator: inout SplitMix) -> [Delivery] {
        var deliveries: [Delivery] = []
        var sequences = [UInt64](repeating: 0, count: 6)
        var boots = [UInt32](repeating: 1, count: 6)
        var lastStarts = [Int](repeating: 0, count: 6)
        for transmission in 0..<300 {
            let sent = Duration.milliseconds(transmission * 300)
            let tag = UInt64.random(in: 0..<4, using: &generator)
            let content = Int.random(in: 0..<3, using: &generator)
            for gateway in 0..<6 where Bool.random(using: &generator) {
                // The engine knows two starts: messages of the last but one must not be on their way any more.
                if Int.random(in: 0..<100, using: &generator) == 0, transmission - lastStarts[gateway] > 100 {
                    lastStarts[gateway] = transmission
                    boots[gateway] += 1
                    sequences[gateway] = 0
                }
                sequences[gateway] += 1
                let received = message(
                    "g\(gateway)",
                    gateway == 5 ? nil : sequences[gateway],
                    boot: boots[gateway],
                    tag: tag,
                    content,
                    rssi: Int.random(in: -90...(-40), using: &generator),
                    time: time(sent + .seconds(gateway * 1000))
                )
                let fault = Int.random(in: 0..<20, using: &generator)
                // Lost.
                if fault == 0 { continue }
                let way = fault == 1 ? 0...20_000 : 0...1500
                let times = fault == 2 ? 2 : 1
                for _ in 0..<times {
                    let arrival = sent + .milliseconds(Int.random(in: way, using: &generator))
                    deliveries.append(Delivery(time: arrival, message: received))
                }
            }
        }
        deliveries.sort { $0.time < $1.time }
        for index in deliveries.indices { deliveries[index].token = UInt64(index) }
        return deliveries
    }

    /// A time within the first day of 2026.
    private func time(_ time: Duration) -> String {
        let milliseconds = Int(time / .milliseconds(1))
        func digits(_ number: Int, _ count: Int) -> String {
            String(repeating: "0", count: count - "\(number)".count) + "\(number)"
        }
        let seconds = milliseconds / 1000
        return "2026-01-01T\(digits(seconds / 3600, 2)):\(digits(seconds / 60 % 60, 2)):\(digits(seconds % 60, 2))."
            + "\(digits(milliseconds % 1000, 3))Z"
    }
}

/// The rules of the engine without bounds: it searches everything each time.
private struct PlainFleet {
    private struct Window {
        let start: Duration
        var end: Duration?
        let first: FleetMessage
        var messages: [(message: FleetMessage, token: UInt64)]
        var gateways: Set<String>
    }

    private var windows: [Window] = []
    private var numbers: [String: Set<FleetMessage.Number>] = [:]
    private var offsets: [String: ClockOffset] = [:]
    private(set) var count: UInt64 = 0

    /// The first number of each start that came.
    private var firsts: [String: UInt64] = [:]

    /// The numbers between the first and the last of each start that did not come.
    var missing: UInt64 {
        var sum: UInt64 = 0
        for (gateway, numbers) in numbers {
            for (boot, group) in Dictionary(grouping: numbers, by: \.boot) {
                let sequences = group.map(\.sequence).filter { $0 >= firsts["\(boot) \(gateway)", default: 0] }
                guard let least = sequences.min(), let greatest = sequences.max() else { continue }
                sum += greatest - least + 1 - UInt64(sequences.count)
            }
        }
        return sum
    }

    mutating func receive(
        _ message: FleetMessage,
        _ token: UInt64,
        _ now: Duration
    ) -> (kind: FleetWindow.Kind, observations: [CombinedObservation]) {
        var observations: [CombinedObservation] = []
        for index in windows.indices where windows[index].end == nil && windows[index].start + .seconds(2) <= now {
            observations.append(end(index, windows[index].start + .seconds(2)))
        }
        if let number = message.number {
            let isFirst = !numbers[message.gateway, default: []].contains { $0.boot == number.boot }
            if isFirst { firsts["\(number.boot) \(message.gateway)"] = number.sequence }
            guard numbers[message.gateway, default: []].insert(number).inserted else {
                return (.duplicate, observations)
            }
        }
        let delay = delay(message, now)
        let known = windows.indices.last { index in
            let first = windows[index].first
            let isRemembered = windows[index].end.map { now - $0 < .seconds(30) } ?? true
            return isRemembered && first.address == message.address && first.readings == message.readings
        }
        if let known {
            let isIn = windows[known].gateways.contains(message.gateway)
            if windows[known].end == nil {
                if !isIn {
                    windows[known].messages.append((message, token))
                    windows[known].gateways.insert(message.gateway)
                    return (.another, observations)
                }
                let isSame = windows[known].messages.contains { $0.message == message }
                if message.number == nil, isSame { return (.duplicate, observations) }
                observations.append(end(known, now))
            } else if !isIn {
                let newest = windows.indices.last { windows[$0].first.address == message.address }
                if newest == known || delay > .seconds(2) {
                    windows[known].gateways.insert(message.gateway)
                    return (.late, observations)
                }
            }
        }
        let messages = [(message: message, token: token)]
        windows.append(Window(start: now, first: message, messages: messages, gateways: [message.gateway]))
        return (.first, observations)
    }

    mutating func finish() -> [CombinedObservation] {
        windows.indices.filter { windows[$0].end == nil }.map { end($0, .zero) }
    }

    private mutating func delay(_ message: FleetMessage, _ now: Duration) -> Duration {
        var offset = offsets[message.gateway] ?? ClockOffset()
        defer { offsets[message.gateway] = offset }
        return ClockOffset.parse(message.time).map { offset.delay(of: $0, at: now) } ?? .zero
    }

    private mutating func end(_ index: Int, _ time: Duration) -> CombinedObservation {
        windows[index].end = time
        count += 1
        let window = windows[index]
        let sorted = window.messages.enumerated().sorted { first, second in
            let left = first.element.message.rssi ?? Int.min
            let right = second.element.message.rssi ?? Int.min
            return left != right ? left > right : first.offset < second.offset
        }
        return CombinedObservation(
            address: window.first.address,
            format: window.first.format,
            counter: nil,
            readings: window.first.readings,
            time: window.first.time,
            receivers: sorted.map {
                let message = $0.element.message
                return .init(
                    gateway: message.gateway,
                    rssi: message.rssi,
                    time: message.time,
                    number: message.number
                )
            },
            tokens: window.messages.map(\.token)
        )
    }
}
