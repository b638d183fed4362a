import BluetoothHost
import BluetoothTypes

/// The states of a connection that is established again whenever it ends; see
/// ``Central/maintain(_:backoff:attemptTimeout:parameters:)``.
///
/// Each iteration keeps a connection of its own. The connection advances while the loop waits for the next state: a
/// loop that works with a ``RemotePeripheral`` until its link is lost sees the next state directly after that.
/// Cancellation and overflow are described in <doc:EventSequences>.
///
/// ## End
///
/// The sequence throws ``BLEError/cancelled`` when the task is cancelled, ``BLEError/closed`` when the adapter is
/// closed, and ``BLEError/invalidArgument(_:)`` if no attempt can succeed. It has no other end. When it throws or its
/// iterator is deallocated, it disconnects the peripheral that it has reported; another ``RemotePeripheral`` keeps the
/// link.
public struct MaintainedConnection: AsyncSequence, Sendable {
    public typealias Element = State
    public typealias Failure = BLEError

    /// A state of a maintained connection.
    public enum State: Sendable {
        /// An attempt to connect starts. Attempts are counted from 1 since the last connection.
        case connecting(attempt: Int)
        /// The peripheral is connected. After ``RemotePeripheral/disconnect()``, it is connected again.
        case connected(RemotePeripheral)
        /// The connection ended; the next attempt starts after a delay, which is zero after a stable connection.
        case disconnected(DisconnectionReason, nextAttemptAfter: Duration)
        /// The attempt failed; the next one starts after a delay.
        case failed(BLEError, attempt: Int, nextAttemptAfter: Duration)
    }

    let central: Central
    let address: DeviceAddress
    let backoff: ReconnectionBackoff
    let attemptTimeout: Duration?
    let parameters: ConnectionParameters

    public func makeAsyncIterator() -> Iterator {
        Iterator(keeper: ConnectionKeeper(self))
    }

    /// An iteration of a ``MaintainedConnection``. It keeps a connection of its own.
    public struct Iterator: AsyncIteratorProtocol {
        let keeper: ConnectionKeeper

        public mutating func next() async throws(BLEError) -> State? {
            try await keeper.next()
        }

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(BLEError) -> State? {
            try await keeper.next()
        }
    }
}

/// The state machine of one iteration of a ``MaintainedConnection``.
final class ConnectionKeeper {
    private enum Phase {
        case ready
        case connecting
        case connected(RemotePeripheral, since: Instant)
        case waiting(Duration)
        case ended
    }

    private let options: MaintainedConnection
    private let host: BluetoothHost
    private var phase = Phase.ready
    /// Attempts since the last connection.
    private var attempt = 0
    /// Failures since the last stable connection.
    private var failures = 0

    init(_ options: MaintainedConnection) {
        self.options = options
        host = options.central.host
    }

    deinit {
        release()
    }

    nonisolated(nonsending) func next() async throws(BLEError) -> MaintainedConnection.State? {
        while true {
            do throws(BLEError) {
                if let state = try await advance() { return state }
                if case .ended = phase { return nil }
            } catch {
                release()
                phase = .ended
                throw error
            }
        }
    }

    /// Leaves the present phase. Returns the state to report, if there is one.
    private nonisolated(nonsending) func advance() async throws(BLEError) -> MaintainedConnection.State? {
        switch phase {
        case .ready:
            if Task.isCancelled { throw .cancelled }
            attempt += 1
            phase = .connecting
            return .connecting(attempt: attempt)
        case .connecting:
            return try await connect()
        case .connected(let peripheral, let start):
            guard !Task.isCancelled, let reason = await peripheral.end() else { throw .cancelled }
            attempt = 0
            let end = peripheral.ending.time ?? host.loop.now
            failures = end - start >= options.backoff.stableDuration ? 0 : failures + 1
            let delay = await makeDelay()
            phase = .waiting(delay)
            return .disconnected(reason, nextAttemptAfter: delay)
        case .waiting(let delay):
            try await translating { () throws(HostError) in try await self.host.sleep(for: delay) }
            phase = .ready
            return nil
        case .ended:
            return nil
        }
    }

    private nonisolated(nonsending) func connect() async throws(BLEError) -> MaintainedConnection.State {
        do throws(BLEError) {
            let peripheral = try await options.central.connect(
                to: options.address,
                timeout: options.attemptTimeout,
                parameters: options.parameters
            )
            phase = .connected(peripheral, since: host.loop.now)
            // The reader may ask for the next state long after the end.
            await peripheral.observeEnd()
            return .connected(peripheral)
        } catch {
            switch error {
            case .cancelled, .closed, .invalidArgument: throw error
            default: break
            }
            failures += 1
            let delay = await makeDelay()
            phase = .waiting(delay)
            return .failed(error, attempt: attempt, nextAttemptAfter: delay)
        }
    }

    private nonisolated(nonsending) func makeDelay() async -> Duration {
        options.backoff.delay(afterFailures: failures, random: await host.randomFraction())
    }

    /// Disconnects the peripheral that was reported last, without waiting for it.
    private func release() {
        guard case .connected(let peripheral, _) = phase else { return }
        host.spawn { _ in await peripheral.disconnect() }
    }
}
