@testable import GatewayFleet

/// Runs a script of a broker's messages against the consumer of a fleet. The readers of messages and topics also get
/// the bytes by themselves.
///
/// The low three bits of an action select what happens, the next two the gateway, and the others the tag; see
/// ``perform(_:)``.
struct FleetFuzzing {
    private static let prefix = "ble"
    private static let topics = FleetTopics(prefix: prefix)

    private var consumer = FleetConsumer()
    private var now = Duration.zero
    private var lastToken: UInt64 = 0
    /// The tokens of messages that are in no observation yet, and that were not discarded.
    private var waiting: Set<UInt64> = []

    static func run(_ script: FuzzScript) {
        var fuzzing = FleetFuzzing()
        for step in script.steps { fuzzing.perform(step) }
        let output = fuzzing.consumer.finish(at: fuzzing.now)
        fuzzing.check(output)
        require(fuzzing.waiting.isEmpty, "\(fuzzing.waiting.count) messages have not come back at the end")
        let status = fuzzing.consumer.status(at: fuzzing.now)
        require(status.openWindowCount == 0, "\(status.openWindowCount) windows are open at the end")
    }

    private mutating func perform(_ step: FuzzScript.Step) {
        let choice = step.action >> 3
        let gateway = "gateway-\(choice & 3)"
        let address = UInt64(choice >> 2)
        let text = String(decoding: step.octets, as: UTF8.self)
        switch step.action & 7 {
        case 0: receive(text, from: gateway, about: address)
        case 1: checkTopic(text)
        case 2: consumer.addRetainedElection(of: address, payload: text, at: now)
        case 3: setConnections(text, of: gateway)
        case 4:
            now += .seconds(Int(choice) * 5)
            check(consumer.advance(to: now))
        case 5: check(consumer.setOnline(address & 1 != 0, gateway: gateway, at: now))
        case 6: checkJSON(step.octets)
        default: deliver(step.octets)
        }
    }

    // MARK: Messages

    /// Delivers a message with its topic, which ends with a zero byte.
    private mutating func deliver(_ octets: [UInt8]) {
        let topic = octets.prefix { $0 != 0 }
        let payload = String(decoding: octets.dropFirst(topic.count + 1), as: UTF8.self)
        let text = String(decoding: topic, as: UTF8.self)
        switch Self.topics.subject(of: text) {
        case .readings(let address, let gateway): receive(payload, from: gateway, about: address)
        case .status(let gateway): check(consumer.setOnline(payload == "online", gateway: gateway, at: now))
        case .connections(let gateway): setConnections(payload, of: gateway)
        case nil:
            guard let address = Self.topics.electedTag(of: text) else { return }
            consumer.addRetainedElection(of: address, payload: payload, at: now)
        }
    }

    private mutating func receive(_ payload: String, from gateway: String, about address: UInt64) {
        do throws(FleetMessageError) {
            let message = try FleetMessage(gateway: gateway, address: address, payload: payload)
            let again = try? FleetMessage(gateway: gateway, address: address, payload: Self.json(of: message))
            require(again == message, "a message that was written is read as another one: \(message)")
            lastToken += 1
            waiting.insert(lastToken)
            check(consumer.receive(message, token: lastToken, at: now))
        } catch {
            require(!error.description.isEmpty, "an error without a text")
            _ = consumer.countMalformed()
        }
    }

    private mutating func setConnections(_ payload: String, of gateway: String) {
        guard let output = try? consumer.setConnections(payload, gateway: gateway, at: now) else { return }
        check(output)
    }

    /// The message as JSON, with the texts as they were read.
    private static func json(of message: FleetMessage) -> String {
        var fields = [
            "\"time\":\"\(message.time)\"", "\"format\":\"\(message.format)\"", "\"readings\":\(message.readings)",
        ]
        if let rssi = message.rssi { fields.append("\"rssi\":\(rssi)") }
        if let counter = message.counter { fields.append("\"counter\":\(counter)") }
        if let number = message.number {
            fields.append("\"boot\":\"\(number.bootDigits)\"")
            fields.append("\"sequence\":\(number.sequence)")
        }
        return "{" + fields.joined(separator: ",") + "}"
    }

    // MARK: Checks

    /// Each message comes back once, and everything that is written can be read.
    private mutating func check(_ output: FleetConsumer.Output) {
        for token in output.discarded + output.observations.flatMap(\.observation.tokens) {
            let isFirst = waiting.remove(token) != nil
            require(isFirst, "the message \(token) has come back twice")
        }
        for (observation, elected) in output.observations { requireObject(observation.json(elected: elected)) }
        for change in output.changes {
            requireObject(change.json)
            let gateway = RetainedElections.gateway(in: change.json)
            require(gateway == change.gateway, "the election \(change.json) is read as one of \(gateway ?? "none")")
        }
    }

    private func requireObject(_ text: String) {
        var scanner = JSONScanner(Array(text.utf8))
        let count = scanner.object { scanner, _ in scanner.value(depth: 1) != nil }
        let isAtEnd = scanner.isAtEnd()
        require(count != nil && isAtEnd, "a line that is no object of JSON: \(text)")
    }

    /// A topic that was read is written so that it reads as the same.
    private func checkTopic(_ topic: String) {
        if let tag = Self.topics.electedTag(of: topic) {
            require(Self.topics.election(of: tag) == topic, "the topic of an election is written otherwise: \(topic)")
        }
        guard let subject = Self.topics.subject(of: topic) else { return }
        let written =
            switch subject {
            case .readings(let address, let gateway):
                "\(Self.prefix)/sensors/\(FleetTopics.digits(of: address))/\(gateway)"
            case .status(let gateway): "\(Self.prefix)/gateways/\(gateway)/status"
            case .connections(let gateway): "\(Self.prefix)/gateways/\(gateway)/connections"
            }
        require(Self.topics.subject(of: written) == subject, "the topic \(topic) is read otherwise as \(written)")
    }

    /// A value is within the bytes, and is read in the same way by itself.
    private func checkJSON(_ octets: [UInt8]) {
        var scanner = JSONScanner(octets)
        guard let (kind, range) = scanner.value() else { return }
        require(range.upperBound <= octets.count, "a value behind the end")
        var other = JSONScanner(Array(octets[range]))
        let again = other.value()
        require(again?.kind == kind && again?.range == 0..<range.count, "a value that is read otherwise by itself")
    }
}
