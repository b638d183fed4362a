import BluetoothTypes
import ByteCoding
import HCI
import HCITransport

extension BluetoothHost {
    /// Sends a command. `completion` is called on the loop with the return parameters or the failure.
    func send<C: Command>(_ command: C, completion: @escaping (Result<C.ReturnParameters, CommandFailure>) -> Void) {
        guard transport != nil else { return completion(.failure(.aborted)) }
        commands.enqueue(TypedCommandExchange(command, completion: completion))
        sendNextCommand()
    }

    /// Sends a command whose failure is only logged.
    func sendAndForget<C: Command>(_ command: C) {
        send(command) { [logger] result in
            if case .failure(let failure) = result { logger.debug("\(failure)") }
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

    func sendNextCommand() {
        guard let transport else { return }
        guard let exchange = commands.takeNext() else { return awaitCommandCredit() }
        endAwaitingCommandCredit()
        metrics.packetsSent.increment()
        let packet = exchange.packet
        transport.send(packet.rawSpan)
        commandTimer = schedule(.command(exchange.opcode), after: configuration.commandTimeout)
    }

    /// Starts the timer for a controller that accepts no command. It must report when it accepts one (Vol 4, Part E,
    /// 4.4). If it does not within the command timeout, it is reset; during bring-up it is sent another command
    /// nevertheless.
    private func awaitCommandCredit() {
        guard commands.isStalled, commandCreditTimer == nil else { return }
        commandCreditTimer = schedule(.commandCredit, after: configuration.commandTimeout)
    }

    func commandCreditTimedOut() {
        commandCreditTimer = nil
        guard commands.isStalled else { return }
        logger.warning("the controller accepts no commands")
        if power == .on {
            controllerFailed("it accepts no commands", isTransportLost: false)
        } else {
            commands.assumeCredit()
            sendNextCommand()
        }
    }

    private func endAwaitingCommandCredit() {
        timers.cancel(commandCreditTimer)
        commandCreditTimer = nil
    }

    func receive(_ event: borrowing CommandComplete) {
        let exchange = commands.receiveAnswer(
            to: event.commandOpcode,
            credits: event.numHCICommandPackets,
            isSuccessStatus: false
        )
        if let exchange {
            timers.cancel(commandTimer)
            if event.status != .success { metrics.commandFailures.increment() }
            exchange.succeed(returning: event.returnParameters)
        }
        sendNextCommand()
    }

    func receive(_ event: CommandStatus) {
        let exchange = commands.receiveAnswer(
            to: event.commandOpcode,
            credits: event.numHCICommandPackets,
            isSuccessStatus: event.status == .success
        )
        if let exchange {
            timers.cancel(commandTimer)
            if event.status == .success {
                let status = [HCI.ErrorCode.success.rawValue]
                exchange.succeed(returning: status.rawSpan)
            } else {
                metrics.commandFailures.increment()
                exchange.fail(.status(event.status, event.commandOpcode))
            }
        }
        sendNextCommand()
    }

    /// Handles a command that was not answered in time. A controller in use is reset. During bring-up only the command
    /// fails, because many of its commands may be unknown to the controller.
    func commandTimedOut(_ opcode: HCI.Opcode) {
        guard commands.opcodeInFlight == opcode, let exchange = commands.takeTimedOut() else { return }
        logger.warning("the controller did not answer \(opcode)")
        exchange.fail(.timedOut(opcode))
        if power == .on {
            controllerFailed("it did not answer \(opcode)", isTransportLost: false)
        } else {
            sendNextCommand()
        }
    }

    func abortCommands() {
        timers.cancel(commandTimer)
        endAwaitingCommandCredit()
        for exchange in commands.removeAll() { exchange.fail(.aborted) }
    }
}
