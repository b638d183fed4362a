import Synchronization

/// A command whose result is reported once: its own, its time-out, or the end of everything.
final class PendingCommand: Sendable {
    typealias Report = @Sendable (Result<DeviceCommandOutcome, DeviceCommandError>) -> Void

    private struct State {
        var report: Report?
        var operation: Task<Void, Never>?
        var timer: Task<Void, Never>?
    }

    let command: DeviceCommand
    /// Receives the values if the command is a subscription.
    let notified: @Sendable (DeviceNotification) -> Void
    private let state: Mutex<State>

    init(
        _ command: DeviceCommand,
        notified: @escaping @Sendable (DeviceNotification) -> Void,
        report: @escaping Report
    ) {
        self.command = command
        self.notified = notified
        state = Mutex(State(report: report))
    }

    /// Starts the time that the command may take.
    func startTimer() {
        let timer = Task { [self] in
            guard (try? await Task.sleep(for: command.timeout)) != nil else { return }
            finish(.failure(DeviceCommandError(.timeout, "not finished within \(command.timeout)")))
        }
        let isFinished = state.withLock { state in
            state.timer = timer
            return state.report == nil
        }
        if isFinished { timer.cancel() }
    }

    var isFinished: Bool { state.withLock { $0.report == nil } }

    /// Cancels a task when the command is finished by something else.
    func cancelWhenFinished(_ operation: Task<Void, Never>) {
        let isFinished = state.withLock { state in
            state.operation = operation
            return state.report == nil
        }
        if isFinished { operation.cancel() }
    }

    /// Reports the result, unless there is one already.
    func finish(_ result: Result<DeviceCommandOutcome, DeviceCommandError>) {
        let last = state.withLock { state in
            defer { state = State() }
            return state
        }
        last.timer?.cancel()
        last.operation?.cancel()
        last.report?(result)
    }
}
