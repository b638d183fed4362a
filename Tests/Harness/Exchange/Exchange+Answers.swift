extension Exchange {
    /// Answers an unexpected message by the rules of the script, then by the controller.
    ///
    /// - Returns: false if neither answers it.
    func answer(_ message: Message) throws(Difference) -> Bool {
        isAnswering = true
        defer { isAnswering = false }
        if let index = try rules.lastIndex(matching: message, on: self) {
            let rule = rules[index]
            if rule.isOnce { rules.remove(at: index) }
            try apply(rule.action, to: message)
            return true
        }
        guard case .command(let opcode, let parameters) = message, let controller else { return false }
        try answer(opcode, parameters, as: controller)
        return true
    }

    private func apply(_ action: Rule.Action, to message: Message) throws(Difference) {
        switch (action, message) {
        case (.reply(let octets), .command(let opcode, _)): try complete(opcode, filled(octets))
        case (.reply(let octets), .frame(_, let channel, _)): try send(filled(octets), on: channel)
        case (.status(let status), .command(let opcode, _)): try send(status: status, for: opcode)
        default: break
        }
    }

    /// Command Complete (Vol 4, Part E, 7.7.14).
    func complete(_ opcode: UInt16, _ parameters: [UInt8]) throws(Difference) {
        try send(event: 0x0E, [0x01] + [UInt8](number: opcode) + parameters)
    }

    /// Command Status (Vol 4, Part E, 7.7.15).
    func send(status: UInt8, for opcode: UInt16) throws(Difference) {
        try send(event: 0x0F, [status, 0x01] + [UInt8](number: opcode))
    }

    func filled(_ octets: Octets) throws(Difference) -> [UInt8] {
        do throws(Complaint) {
            return try octets.filled(variables)
        } catch {
            throw Difference(error.message)
        }
    }

    func pattern(_ octets: Octets) throws(Difference) -> Pattern {
        do throws(Complaint) {
            return try Pattern(octets, variables)
        } catch {
            throw Difference(error.message)
        }
    }

    // MARK: The controller

    func answer(_ opcode: UInt16, _ parameters: [UInt8], as controller: Controller) throws(Difference) {
        switch controller.answer(to: opcode, parameters) {
        case .complete(let octets): try complete(opcode, octets)
        case .status(let status): try send(status: status, for: opcode)
        }
        try follow(opcode, parameters, controller)
    }

    /// Sends the events that follow the answer.
    private func follow(_ opcode: UInt16, _ parameters: [UInt8], _ controller: Controller) throws(Difference) {
        let handle = Array(parameters.prefix(2))
        switch opcode {
        case 0x0406 where openLinks.contains(handle.number(at: 0)):
            // Connection Terminated By Local Host.
            try sendDisconnection(of: handle.number(at: 0), reason: 0x16)
        case 0x0C03:
            for link in openLinks { forgetLink(link) }
            isInitiating = false
        case 0x200D, 0x2043: isInitiating = true
        case 0x200E where isInitiating:
            isInitiating = false
            // Unknown Connection Identifier reports the cancellation (Vol 4, Part E, 7.8.13).
            try send(connection: Connection(role: .central), status: 0x02, as: controller)
        case 0x2013 where parameters.count >= 10:
            try send(event: EventNames.leMeta, [0x03, 0x00] + handle + parameters[4..<10])
        case 0x2016: try send(event: EventNames.leMeta, [0x04, 0x00] + handle + [0x01, 0, 0, 0, 0, 0, 0, 0])
        case 0x041D: try send(event: 0x0C, [0x00] + handle + [0x09, 0xFF, 0xFF, 0x00, 0x00])
        default: break
        }
    }

    func sendDisconnection(of handle: UInt16, reason: UInt8) throws(Difference) {
        forgetLink(handle)
        try send(event: 0x05, [0x00] + [UInt8](number: handle) + [reason])
    }

    /// Sends LE Connection Complete, or the enhanced event if the controller is extended
    /// (Vol 4, Part E, 7.7.65.1, 7.7.65.10).
    func send(connection: Connection, status: UInt8 = 0, as controller: Controller) throws(Difference) {
        let isEnhanced = controller.isExtended
        var parameters: [UInt8] = [isEnhanced ? 0x0A : 0x01, status]
        parameters += [UInt8](number: link) + [connection.role.rawValue, connection.isPeerRandom ? 1 : 0]
        parameters += connection.peer
        if isEnhanced { parameters += [UInt8](repeating: 0, count: 12) }
        for number in [connection.interval, connection.latency, connection.supervisionTimeout] {
            parameters += [UInt8](number: number)
        }
        try send(event: EventNames.leMeta, parameters + [0x00])
    }
}

extension [Rule] {
    /// The index of the last defined rule that matches a message.
    fileprivate func lastIndex(matching message: Exchange.Message, on exchange: Exchange) throws(Difference) -> Int? {
        for (index, rule) in enumerated().reversed() {
            guard let octets = message.content(for: rule.source, link: exchange.link) else { continue }
            if try exchange.pattern(rule.pattern).difference(to: octets) == nil { return index }
        }
        return nil
    }
}

extension Exchange.Message {
    /// The bytes that a source's pattern is compared with; nil if the message is not from the source.
    func content(for source: Source, link: UInt16) -> [UInt8]? {
        switch (source, self) {
        case (.packet, .packet(let packet)): packet
        case (.command(let wanted), .command(let opcode, let parameters)): wanted == opcode ? parameters : nil
        case (.channel(let wanted), .frame(link, let channel, let payload)): wanted == channel ? payload : nil
        default: nil
        }
    }

    /// The message in words.
    func description(on link: UInt16) -> String {
        switch self {
        case .command(let opcode, let parameters):
            return Description.command(opcode, Description.hexadecimal(parameters))
        case .frame(let handle, let channel, let payload):
            let frame = Description.frame(payload, on: channel)
            return handle == link ? frame : "on link 0x\(handle.hexadecimal): \(frame)"
        case .packet(let packet): return Description.packet(packet) + ": " + Description.hexadecimal(packet)
        }
    }
}
