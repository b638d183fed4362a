import BLE
import Logging
import Synchronization

/// Performs commands on devices. Connections are made on demand, and use the slots of the gateway.
///
/// The commands for a device are performed one after the other, in the order of the calls. Each has exactly one result.
public final class DeviceCommands: Sendable {
    private struct State {
        var sessions: [UInt64: CommandSession] = [:]
        /// The commands that are not finished, by device.
        var pending: [UInt64: [PendingCommand]] = [:]
        var pendingCount = 0
        var isStopping = false
    }

    /// Maximum number of commands for one device, including the running one.
    public static let deviceLimit = 16
    /// The greatest number of commands that wait for all devices.
    public static let limit = 256

    private let devices: DeviceTable
    private let idleTimeout: Duration
    private let logger: Logger
    private let state = Mutex(State())

    /// - Parameter idleTimeout: how long a connection without subscriptions remains after the last command.
    init(devices: DeviceTable, idleTimeout: Duration, logger: Logger) {
        self.devices = devices
        self.idleTimeout = idleTimeout
        self.logger = logger
    }

    /// Performs a command.
    ///
    /// - Parameters:
    ///   - notified: receives the values if the command is a subscription, and its end.
    ///   - report: is called once with the result, on any thread. It must not block.
    public func perform(
        _ command: DeviceCommand,
        notified: @escaping @Sendable (DeviceNotification) -> Void = { _ in },
        report: @escaping @Sendable (Result<DeviceCommandOutcome, DeviceCommandError>) -> Void
    ) {
        let pending = PendingCommand(command, notified: notified, report: report)
        let address = command.address
        let refusal = state.withLock { state -> DeviceCommandError? in
            guard !state.isStopping else { return DeviceCommandError(.stopped, "the gateway stops") }
            guard state.pendingCount < Self.limit else {
                return DeviceCommandError(.full, "\(state.pendingCount) commands wait; send fewer at a time")
            }
            let count = state.pending[address]?.count ?? 0
            guard count < Self.deviceLimit else {
                return DeviceCommandError(.full, "\(count) commands wait for the device; send fewer at a time")
            }
            state.pending[address, default: []].append(pending)
            state.pendingCount += 1
            session(for: address, &state).submit(pending)
            return nil
        }
        if let refusal { pending.finish(.failure(refusal)) } else { pending.startTimer() }
    }

    private func session(for address: UInt64, _ state: inout State) -> CommandSession {
        if let session = state.sessions[address] { return session }
        let session = CommandSession(address: address, devices: devices, idleTimeout: idleTimeout, logger: logger)
        state.sessions[address] = session
        session.start(
            performed: { [self] pending in remove(pending, of: address) },
            mayEnd: { [self] in removeSession(of: address) }
        )
        return session
    }

    private func remove(_ pending: PendingCommand, of address: UInt64) {
        state.withLock { state in
            guard let index = state.pending[address]?.firstIndex(where: { $0 === pending }) else { return }
            state.pending[address]?.remove(at: index)
            state.pendingCount -= 1
        }
    }

    /// Removes a session without a connection, unless a command waits for it.
    private func removeSession(of address: UInt64) -> Bool {
        state.withLock { state in
            guard state.pending[address]?.isEmpty != false else { return false }
            state.pending[address] = nil
            state.sessions[address] = nil
            return true
        }
    }

    // MARK: The end

    /// Ends all commands with an error, and all connections.
    public func cancelAll(_ error: DeviceCommandError) {
        let (sessions, pending) = state.withLock { state in
            (Array(state.sessions.values), state.pending.values.flatMap { $0 })
        }
        for pending in pending { pending.finish(.failure(error)) }
        for session in sessions { session.end(error) }
    }

    /// Ends all commands and connections, waits for the ends of the links for a limited time, and refuses later
    /// commands.
    func stop(timeout: Duration) async {
        let sessions = state.withLock { state in
            state.isStopping = true
            return Array(state.sessions.values)
        }
        cancelAll(DeviceCommandError(.stopped, "the gateway stops"))
        await wait(atMost: timeout) {
            for session in sessions { await session.finished() }
        }
    }
}
