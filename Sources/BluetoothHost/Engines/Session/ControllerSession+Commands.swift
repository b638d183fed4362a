import BLEHCI
import BluetoothTypes

// Commands, and packets whose connection handle belongs to no link.
extension ControllerSession {
    // MARK: Commands

    /// Queues a command. Without a transport it fails at once, and so does a command of others during a bring-up.
    ///
    /// A command beyond ``CommandQueue/eventLimit`` fails at once, too. The controller then fails in the next call of
    /// ``advance(to:)``, because the caller still handles an event now.
    mutating func submit(_ request: CommandRequest, at now: Instant) -> [SessionEffect] {
        guard mayTake(request), commands.enqueue(request, at: now) else { return failures(of: [request], .aborted) }
        return sendNext(at: now)
    }

    /// Sends the next command, if the controller accepts one now. Call this after each answer, when it was handled.
    mutating func sendNext(at now: Instant) -> [SessionEffect] {
        commands.takeNext(at: now).map { [.send($0.packet)] } ?? []
    }

    /// Handles a Command Complete or Command Status event.
    ///
    /// - Parameters:
    ///   - credits: Num_HCI_Command_Packets.
    ///   - isSuccessStatus: whether the event was Command Status with success, which answers only commands that have no
    ///     Command Complete.
    /// - Returns: what the answer is for; nil if it answers no command. Pass the answer of a session's own command to
    ///   ``receive(_:for:at:)``.
    mutating func answered(_ opcode: HCIOpcode, credits: UInt8, isSuccessStatus: Bool) -> CommandTag? {
        commands.receiveAnswer(to: opcode, credits: credits, isSuccessStatus: isSuccessStatus)?.tag
    }

    /// Handles the answer to a command of the session.
    ///
    /// - Parameter reply: the status and the return parameters that follow it.
    mutating func receive(_ reply: RawSpan, for tag: CommandTag, at now: Instant) -> [SessionEffect] {
        switch tag {
        case .bringUp(let step): return received(reply, for: step, at: now)
        case .strayLink(let handle):
            let isEnding = (try? Disconnect.decodeReply(reply)) != nil
            return strayLinkAnswered(handle, isEnding: isEnding, at: now)
        case .plan, .isochronous, .caller, .unawaited: return []
        }
    }

    /// Fails all commands. Those of a bring-up end with it.
    mutating func abortCommands() -> [SessionEffect] {
        failures(of: commands.removeAll(), .aborted)
    }

    private func failures(of requests: [CommandRequest], _ failure: CommandFailure) -> [SessionEffect] {
        requests.compactMap { request in
            switch request.tag {
            case .plan, .isochronous, .caller, .unawaited: .commandFailed(request.tag, failure)
            case .bringUp, .strayLink: nil
            }
        }
    }

    // MARK: Links that the host does not know

    /// Handles data for an unknown link, and finds out once whether the controller has the link.
    ///
    /// - Returns: whether the ``deadline`` may have changed.
    mutating func strayData(_ handle: ConnectionHandle, _ packet: RawSpan, at now: Instant) -> Bool {
        power == .on && strays.dataArrived(handle, packet, at: now)
    }

    /// Handles the end of an unknown link, which may have stopped advertising or initiating.
    mutating func unknownLinkEnded(_ handle: ConnectionHandle, at now: Instant) -> [SessionEffect] {
        guard power == .on, strays.unknownLinkEnded(handle, at: now) else { return [] }
        return [.report(.unknownLinkEnded(handle))]
    }

    /// Forgets that a handle was used without a link. Commands that wait are about an earlier link with this handle, so
    /// they fail as if the controller had refused them.
    ///
    /// - Returns: also the link's ACL packets that arrived before its Connection Complete event.
    mutating func linkBegan(_ handle: ConnectionHandle) -> (effects: [SessionEffect], earlyPackets: [[UInt8]]) {
        let packets = strays.linkBegan(handle)
        let effects = commands.removeWaiting(on: handle).flatMap { request in
            failures(of: [request], .status(.unknownConnectionIdentifier, request.opcode))
        }
        return (effects, packets)
    }

    /// Remembers the end of a link for a while, because its last data may still arrive.
    mutating func linkEnded(_ handle: ConnectionHandle, at now: Instant) {
        if power == .on { strays.linkEnded(handle, at: now) }
    }

    private mutating func strayLinkAnswered(
        _ handle: ConnectionHandle,
        isEnding: Bool,
        at now: Instant
    ) -> [SessionEffect] {
        let isAwaited = strays.endAnswered(handle, isEnding: isEnding, commandTimeout: commands.timeout, at: now)
        return isAwaited ? [.report(.endingUnknownLink(handle))] : []
    }

    // MARK: Time

    /// Handles all time limits that have passed.
    mutating func advance(to now: Instant) -> [SessionEffect] {
        var effects: [SessionEffect] = []
        if commands.takeOverflow() {
            effects += failed("it has caused more than \(CommandQueue.eventLimit) commands that wait", at: now)
        }
        if let request = commands.takeUnanswered(at: now) { effects += unanswered(request, at: now) }
        if commands.takeMissingCredit(at: now) {
            effects.append(.report(.acceptsNoCommands))
            effects += power == .on ? failed("it accepts no commands", at: now) : sendNext(at: now)
        }
        if case .pausing(let end) = phase, end <= now { effects += attempt(at: now) }
        while let due = strays.takeDue(at: now) {
            switch due {
            case .end(let handle):
                let command = Disconnect(connectionHandle: handle, reason: .remoteUserTerminatedConnection)
                effects += submit(CommandRequest(command, .strayLink(handle)), at: now)
            case .notEnded(let handle): effects += failed("it did not end the link \(handle)", at: now)
            case .restartRoles: effects.append(.restartRoles)
            }
        }
        return effects
    }

    private mutating func unanswered(_ request: CommandRequest, at now: Instant) -> [SessionEffect] {
        let failure = CommandFailure.timedOut(request.opcode)
        var effects = [.report(.unanswered(request.opcode))] + failures(of: [request], failure)
        if power == .on { return effects + failed("it did not answer \(request.opcode)", at: now) }
        // The remaining commands of a host that is being closed would each wait as long.
        if case .closing = phase { return effects + abortCommands() }
        if case .bringUp(let step) = request.tag { effects += stepFailed(step, failure, at: now) }
        return effects + sendNext(at: now)
    }
}
