import BLEByteCoding
import BLEHCI
import BluetoothTypes

extension BluetoothHost {
    /// Sends a command. `completion` is called on the loop with the return parameters or the failure.
    func send<C: Command>(_ command: C, completion: @escaping (Result<C.ReturnParameters, CommandFailure>) -> Void) {
        let caller = observers.commands.insert(TypedCommandCaller<C>(completion))
        submit(CommandRequest(command, .caller(caller)))
    }

    /// Sends a command whose failure is only logged.
    func sendAndForget(_ command: some Command) {
        submit(CommandRequest(command, .unawaited))
    }

    /// Has the controller report further LE events. The command of a feature that needs them is sent after this call.
    func enableEvents(_ events: LEEventMask) {
        let added = session.enable(events)
        guard !added.isEmpty, let mask = information?.leEvents else { return }
        send(LESetEventMask(leEventMask: mask)) { [weak self] result in
            guard case .failure(let failure) = result else { return }
            self?.assumeIsolated { host in
                host.logger.debug("\(failure)")
                host.session.enablingFailed(added, failure)
            }
        }
    }

    /// Sends a command and waits for its return parameters. Everything that the caller did before ends as one input.
    @discardableResult
    func perform<C: Command>(_ command: C) async throws(CommandFailure) -> C.ReturnParameters {
        endInput()
        return try await withCheckedContinuation { continuation in
            send(command) { continuation.resume(returning: $0) }
        }.get()
    }

    func submit(_ request: CommandRequest) {
        perform(session.submit(request, at: loop.now))
    }

    // MARK: Answers

    func receive(_ event: borrowing CommandComplete) {
        let tag = session.answered(
            event.commandOpcode,
            credits: event.numHCICommandPackets,
            isSuccessStatus: false
        )
        if let tag { receive(event.returnParameters, of: event.commandOpcode, for: tag) }
        perform(session.sendNext(at: loop.now))
    }

    func receive(_ event: CommandStatus) {
        let tag = session.answered(
            event.commandOpcode,
            credits: event.numHCICommandPackets,
            isSuccessStatus: event.status == .success
        )
        if let tag {
            let reply = [event.status.rawValue]
            receive(reply.rawSpan, of: event.commandOpcode, for: tag)
        }
        perform(session.sendNext(at: loop.now))
    }

    /// Passes the answer to a command to the part of the host that has sent the command.
    ///
    /// - Parameter reply: the status and the return parameters that follow it.
    private func receive(_ reply: RawSpan, of opcode: HCIOpcode, for tag: CommandTag) {
        if reply[checked: 0] != HCIErrorCode.success.rawValue { metrics.commandFailures.increment() }
        switch tag {
        case .caller(let caller): observers.commands.remove(caller)?.receive(reply)
        case .plan(let step): planCommandEnded(step, CommandFailure(in: reply, of: opcode))
        case .isochronous(let step): perform(isochronous.answered(step, reply, of: opcode))
        case .unawaited: if let failure = CommandFailure(in: reply, of: opcode) { logger.debug("\(failure)") }
        case .bringUp, .strayLink: perform(session.receive(reply, for: tag, at: loop.now))
        }
    }

    /// Reports the failure of a command to its caller.
    func commandFailed(_ tag: CommandTag, _ failure: CommandFailure) {
        switch tag {
        case .caller(let caller): observers.commands.remove(caller)?.fail(failure)
        case .plan(let step): planCommandEnded(step, failure)
        case .isochronous(let step): perform(isochronous.failed(step, failure))
        case .bringUp, .strayLink, .unawaited: logger.debug("\(failure)")
        }
    }
}
