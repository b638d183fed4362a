extension Exchange {
    /// Maximum time for the host to end after it was asked to.
    private static let patienceForEnd = Duration.seconds(20)

    /// Executes a line of a script.
    func perform(_ statement: Statement) throws(Difference) {
        switch statement {
        case .controller(let controller): self.controller = controller
        case .define(let name, let octets): variables[name] = try filled(octets)
        case .patience(let time): patience = time
        case .fragments(let length): fragmentLength = length
        case .completions(let isOn): completesPackets = isOn
        case .link(let handle): link = handle
        case .rule(let rule): rules.append(rule)
        case .send(let destination, let octets): try send(filled(octets), to: destination)
        case .expect(let source, let octets, let time): try expect(source, pattern(octets), within: time ?? patience)
        case .await(let opcode, let octets, let time):
            let message = try expect(.command(opcode), pattern(octets), within: time ?? patience)
            guard try answer(message) else { throw Difference("there is no controller to answer; see `controller`") }
        case .reply(let octets): try complete(takeExpectedCommand(), filled(octets))
        case .status(let status): try send(status: status, for: takeExpectedCommand())
        case .completed(let count):
            let octets = [0x01] + [UInt8](number: link) + [UInt8](number: UInt16(clamping: count))
            try send(event: 0x13, octets)
        case .connect(let connection):
            openLinks.insert(link)
            isInitiating = false
            try send(connection: connection, as: controller ?? Controller())
        case .disconnect(let reason): try sendDisconnection(of: link, reason: reason)
        case .nothing(let time): try expectNothing(for: time)
        case .pause(let time): try letPass(time)
        case .close: disconnectHost()
        case .accept: try acceptHost(within: patience)
        case .input(let text): try write(text)
        case .output(let text):
            try waitForHost("the host has not written a line with \"\(text)\"") { $0.takeOutput(containing: text) }
        case .errors(let text):
            try waitForHost("the host has not complained of \"\(text)\"") { $0.takeErrors(containing: text) }
        case .exit(let status): try expectExit(status)
        }
    }

    private func send(_ octets: [UInt8], to destination: Destination) throws(Difference) {
        switch destination {
        case .packet: try send(octets)
        case .event(let code, let subevent): try send(event: code, (subevent.map { [$0] } ?? []) + octets)
        case .acl(let boundary): try send(acl: octets, boundary: boundary)
        case .channel(let channel): try send(octets, on: channel)
        }
    }

    private func takeExpectedCommand() throws(Difference) -> UInt16 {
        guard let opcode = expectedCommand else { throw Difference("no command is expected before this line") }
        expectedCommand = nil
        return opcode
    }

    // MARK: Expecting

    /// Waits for a message that matches a pattern. Rules must answer all messages before it.
    @discardableResult
    private func expect(
        _ source: Source,
        _ pattern: Pattern,
        within time: Duration
    ) throws(Difference) -> Message {
        let deadline = ContinuousClock.now + time
        var overtaken: [Message] = []
        while true {
            while let message = try nextMessage(asPacket: source == .packet) {
                let octets = message.content(for: source, link: link)
                if let octets, pattern.difference(to: octets) == nil {
                    variables.merge(pattern.captures(in: octets)) { $1 }
                    if case .command(let opcode, _) = message { expectedCommand = opcode }
                    putBack(overtaken)
                    return message
                }
                // An expected message with other contents is a difference, even if the controller has an answer to it.
                let isAnswered = try octets == nil ? answer(message) : answerByRule(message)
                // Commands and data are separate streams: a frame waits for the line that expects it.
                if !isAnswered, case .frame = message, case .command = source {
                    overtaken.append(message)
                    continue
                }
                guard isAnswered else {
                    throw Difference(
                        expected: (source.words(pattern), pattern),
                        got: (message.description(on: link), octets)
                    )
                }
            }
            if let loss {
                throw Difference("the host has closed its HCI socket (\(loss))", details: awaiting(source, pattern))
            }
            guard try wait(until: deadline) else {
                let others = overtaken.map { "got       \($0.description(on: link))" }
                throw Difference("no further packet arrived in \(time)", details: awaiting(source, pattern) + others)
            }
        }
    }

    private func awaiting(_ source: Source, _ pattern: Pattern) -> [String] {
        ["expected  \(source.words(pattern)) \(pattern.description)"] + hostDetails
    }

    private func answerByRule(_ message: Message) throws(Difference) -> Bool {
        let preset = controller
        controller = nil
        defer { controller = preset }
        return try answer(message)
    }

    private func expectNothing(for time: Duration) throws(Difference) {
        let deadline = ContinuousClock.now + time
        repeat {
            while let message = try nextMessage() {
                guard try answer(message) else {
                    throw Difference("a packet arrived", details: ["got       \(message.description(on: link))"])
                }
            }
        } while try wait(until: deadline)
    }

    // MARK: The host's process

    /// Answers messages until a time has passed. Unanswered messages are kept for the following lines.
    private func letPass(_ time: Duration) throws(Difference) {
        let deadline = ContinuousClock.now + time
        var kept: [Message] = []
        repeat { try answerAll(keepingOthersIn: &kept) } while try wait(until: deadline)
        putBack(kept)
    }

    private func answerAll(keepingOthersIn kept: inout [Message]) throws(Difference) {
        while let message = try nextMessage() {
            if try !answer(message) { kept.append(message) }
        }
    }

    private func write(_ text: String) throws(Difference) {
        guard let host else { throw Difference("there is no host of this harness to write to") }
        journal.note("input: \(text)")
        do throws(SystemError) {
            try host.write(text)
        } catch {
            throw Difference("the host does not read: \(error)", details: hostDetails)
        }
    }

    private func waitForHost(_ failure: String, _ isDone: (HostProcess) -> Bool) throws(Difference) {
        guard let host else { throw Difference("there is no host of this harness whose words could be read") }
        let deadline = ContinuousClock.now + patience
        var kept: [Message] = []
        while !isDone(host) {
            try answerAll(keepingOthersIn: &kept)
            var canGoOn = host.end == nil
            if canGoOn { canGoOn = try wait(until: deadline) }
            guard canGoOn || isDone(host) else { throw Difference(failure, details: hostDetails) }
        }
        putBack(kept)
    }

    private func expectExit(_ status: Int32) throws(Difference) {
        try waitForHost("the host does not end") { host in host.end != nil }
        guard let end = host?.end, end != .status(status) else { return }
        throw Difference("the host ended with \(end), not with status \(status)", details: hostDetails)
    }

    /// Asks the host to end if it has not ended, and checks that it did not crash.
    func finish() throws(Difference) {
        guard let host else { return disconnectHost() }
        host.reap()
        let deadline = ContinuousClock.now + Exchange.patienceForEnd
        if host.end == nil {
            journal.note("the host is asked to end")
            host.terminate()
        }
        var ignored: [Message] = []
        while host.end == nil {
            try answerAll(keepingOthersIn: &ignored)
            guard try wait(until: deadline) else {
                throw Difference("the host has not ended in \(Exchange.patienceForEnd)", details: hostDetails)
            }
        }
        if case .signal(let signal) = host.end, !HostProcess.asked.contains(signal) {
            throw Difference("the host has crashed: \(HostProcess.End.signal(signal))", details: hostDetails)
        }
    }
}

extension Source {
    /// The source and pattern in words.
    fileprivate func words(_ pattern: Pattern) -> String {
        switch self {
        case .packet: return "Packet"
        case .command(let opcode): return Description.command(opcode, "")
        case .channel(let channel):
            let name = pattern.first.flatMap { ChannelNames.name(ofPayload: $0, on: channel) }
            return ([ChannelNames.name(of: channel)] + (name.map { [$0] } ?? [])).joined(separator: " ")
        }
    }
}
