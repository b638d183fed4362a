import BLE
import BLEHCITransport
import BLEVirtualController
import BluetoothHost
import BluetoothTypes
import Synchronization

/// Runs a host on a recorded controller, in one thread and in simulated time, and compares the packets of the host with
/// the recording.
///
/// ```swift
/// let replay = Replay(try PacketRecording(path: "field.btsnoop"), seed: 1)
/// try replay.run { adapter in
///     let peer = try await adapter.central.connect(to: sensor)
///     _ = try await peer.discoverAll()
/// }
/// ```
///
/// The host sends the same packets if it is the recorded host with the same configuration, the same calls and the same
/// seed of its random numbers. This holds for a device in a ``World``, and for `ble … --seed N --capture FILE`. The
/// first packet that differs ends the run with a ``/BLEHCITransport/ReplayDifference``.
public final class Replay: Sendable {
    /// The recording to replay.
    public var recording: PacketRecording { transport.recording }
    /// The number of packets of the recording that have passed.
    public var position: Int { transport.position }
    /// The first difference of the host from the recording; nil if there is none.
    public var difference: ReplayDifference? { transport.difference }

    package let loop: SimulatedEventLoop
    private let transport: ReplayTransport
    private let pendingSleeps: PendingSleeps
    private let random: any RandomNumberGenerator & Sendable
    /// The adapter, while it is open.
    private let opened = Mutex<Adapter?>(nil)

    /// - Parameters:
    ///   - recording: the recording to replay.
    ///   - seed: the seed of the recorded host's random numbers.
    public convenience init(_ recording: PacketRecording, seed: UInt64) {
        self.init(recording, random: SeededGenerator(seed: seed))
    }

    package init(_ recording: PacketRecording, random: any RandomNumberGenerator & Sendable) {
        // A recording without times is replayed at one instant.
        let turnLimit = SimulatedEventLoop.defaultTurnLimit + 100 * recording.packets.count
        let loop = SimulatedEventLoop(turnLimit: turnLimit)
        let start = loop.now
        self.loop = loop
        self.random = random
        pendingSleeps = PendingSleeps(loop: loop)
        transport = ReplayTransport(
            recording,
            now: { loop.now - start },
            after: { delay, action in
                guard delay > .zero else { return loop.execute(action) }
                // The loop keeps the alarm until it is due.
                loop.makeAlarm(action).set(loop.now + delay)
            },
            checkLoop: { precondition(loop.isUsableOnThisThread, "used outside of the replay's loop") }
        )
    }

    /// Waits in the replay's time.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    public func sleep(for duration: Duration, file: StaticString = #fileID, line: Int = #line) async throws {
        try await pendingSleeps.sleep(until: loop.now + duration, caller: "the sleep at \(file):\(line)")
    }

    /// Removes the controller at the same point as in the recorded run: once it has sent all packets recorded before
    /// the host's next packet. The recording has no packet for this. The host tries to reach the controller again and
    /// continues at its position in the recording.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    public func loseController() async throws {
        while position < recording.packets.count, recording.packets[position].direction == .controllerToHost {
            try await pause("the packets of the controller before it is lost")
        }
        transport.lose()
    }

    /// Waits until the whole recording has passed.
    ///
    /// - Throws: `CancellationError` if the task is cancelled. The first difference cancels it.
    public func waitForEnd() async throws {
        while position < recording.packets.count { try await pause("the end of the recording") }
    }

    /// Waits for a millisecond, as a part of a longer wait.
    ///
    /// - Parameter purpose: what the app waits for.
    private func pause(_ purpose: String) async throws {
        try await pendingSleeps.sleep(until: loop.now + .milliseconds(1), caller: purpose)
    }

    /// Opens an adapter on the recorded controller, runs `body` with it in this thread and closes it. Call it once.
    ///
    /// The adapter begins without bonds and saves no state.
    ///
    /// - Parameters:
    ///   - limit: maximum time of the replay.
    ///   - configure: changes the configuration of the adapter.
    ///   - body: the actions of the app in the recorded run.
    /// - Throws:
    ///   - a ``/BLEHCITransport/ReplayDifference``, also if a part of the recording remains
    ///   - any error of `body`
    ///   - ``UnfinishedRun`` if `body` has not returned within `limit`, or if work repeats without time passing
    ///   - ``/BLE/BLEError/invalidArgument(_:)`` if the configuration names a directory for the state or requires the
    ///     state
    public func run<Value: Sendable>(
        limit: Duration = .seconds(3600),
        configure: (inout Adapter.Configuration) -> Void = { _ in },
        _ body: @escaping @Sendable (Adapter) async throws -> Value
    ) throws -> Value {
        var configuration = Adapter.Configuration()
        configure(&configuration)
        try configuration.requireNoSavedState()
        let settings = configuration
        var hasDifference = false
        do {
            let value = try loop.run(
                limit: limit,
                isAbandoned: {
                    hasDifference = self.transport.difference != nil
                    return hasDifference
                },
                whatIsAwaited: whatIsAwaited,
                body: { try await self.open(settings, body) }
            )
            transport.finish()
            if let difference { throw difference }
            return value
        } catch let error as UnfinishedRun where !hasDifference {
            // The host of a cancelled body sends packets that differ, too.
            throw error
        } catch {
            // An error of an app whose host has lost its controller is only a consequence of the difference.
            throw difference ?? error
        }
    }

    /// The pending operations of the replay, one line each.
    private func whatIsAwaited() -> [String] {
        let adapters = opened.withLock { $0 }.map { [(name: "host", adapter: $0)] } ?? []
        return loop.whatIsAwaited(by: adapters) + pendingSleeps.all.map(\.caller)
    }

    private func open<Value: Sendable>(
        _ configuration: Adapter.Configuration,
        _ body: @Sendable (Adapter) async throws -> Value
    ) async throws -> Value {
        let transport = transport
        let adapter = try await Adapter.open(
            on: loop,
            configuration: configuration,
            random: random
        ) { () async throws(TransportError) in
            guard transport.difference == nil else { throw .closedByPeer }
            return transport
        }
        opened.withLock { $0 = adapter }
        defer { opened.withLock { $0 = nil } }
        do {
            let value = try await body(adapter)
            await adapter.close()
            return value
        } catch {
            await adapter.close()
            throw error
        }
    }
}
