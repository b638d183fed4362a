import Dispatch
import GatewayCore
import Synchronization

extension MQTTPublisher {
    /// Takes commands from the broker. To be called before ``run()``.
    package func takeCommands(_ commands: DeviceCommands) {
        queue.async { [self] in
            change { $0.channel = CommandChannel(commands, topics: topics, boot: boot, logger: logger) }
        }
    }

    /// Performs a command, on the queue.
    func perform(_ reception: MQTTReception, _ state: borrowing State) {
        guard let commands = state.channel?.commands else { return }
        let request = CommandRequest(reception)
        // Few results wait for the queue, because commands come from it and are bounded.
        let report: @Sendable (Result<DeviceCommandOutcome, DeviceCommandError>) -> Void = { [self] result in
            queue.async { [self] in
                changeChannel { $0.append(result, of: request, isConnected: $1) }
            }
        }
        switch request.command {
        case .failure(let error): report(.failure(error))
        case .success(let command):
            commands.perform(command) { [self] notification in
                publish(notification)
            } report: {
                report($0)
            }
        }
    }

    /// Publishes a notification of a device.
    func publish(_ notification: DeviceNotification) {
        // The lock makes the order of the numbers that of the messages.
        if notificationIntake.withLock({ $0.append(notification) }) { queue.async { self.publishNotifications() } }
    }

    private func publishNotifications() {
        let (notifications, firstNumber, needsTurn) = notificationIntake.withLock { $0.take() }
        changeChannel { channel, isConnected in
            channel.append(notifications, firstNumber: firstNumber, isLast: !needsTurn, isConnected: isConnected)
        }
        if needsTurn { queue.async { self.publishNotifications() } }
    }

    /// Changes the channel and sends what waits, on the queue.
    private func changeChannel(_ body: (inout CommandChannel, _ isConnected: Bool) -> Void) {
        change { state in
            guard state.channel != nil else { return }
            body(&state.channel!, state.connection != nil)
            state.sendAll()
        }
    }
}
