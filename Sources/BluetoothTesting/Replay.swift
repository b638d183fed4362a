import BLE
import BluetoothHost
import BluetoothTypes
import HCITransport
import VirtualController

/// Runs a host on a recorded controller, in one thread and in a time of its own, and compares what it sends with the
/// recording.
///
/// ```swift
/// let replay = Replay(try PacketRecording(path: "field.btsnoop"), seed: 1)
/// try replay.run { adapter in
///     let peer = try await adapter.central.connect(to: sensor)
///     _ = try await peer.discoverAll()
/// }
/// ```
///
/// The host sends the same packets where it is the same host that was recorded, its configuration, the calls and the seed of
/// its random numbers are the same: those of a device in a ``World`` are, and those of `ble … --seed N --capture FILE`. The
/// first packet that is another ends the run with a ``ReplayDifference``.
public final class Replay: Sendable {
    /// What is played.
    public var recording: PacketRecording { transport.recording }
    /// How many packets of the recording have passed.
    public var position: Int { transport.position }
    /// How the host has first done otherwise than recorded; nil where it has not.
    public var difference: ReplayDifference? { transport.difference }

    package let loop: SimulatedEventLoop
    private let transport: ReplayTransport
    private let sleepers: Sleepers
    private let random: any RandomNumberGenerator & Sendable

    /// - Parameters:
    ///   - recording: what is played.
    ///   - seed: of the recorded host's random numbers.
    public convenience init(_ recording: PacketRecording, seed: UInt64) {
        self.init(recording, random: SeededGenerator(seed: seed))
    }

    package init(_ recording: PacketRecording, random: any RandomNumberGenerator & Sendable) {
        let loop = SimulatedEventLoop()
        let start = loop.now
        self.loop = loop
        self.random = random
        sleepers = Sleepers(loop: loop)
        transport = ReplayTransport(
            recording,
            now: { loop.now - start },
            after: { delay, action in
                guard delay > .zero else { return loop.execute(action) }
                let alarm = AlarmInUse()
                alarm.alarm = loop.makeAlarm {
                    alarm.alarm = nil
                    action()
                }
                alarm.alarm?.set(loop.now + delay)
            }
        )
    }

    /// Waits in the replay's time.
    ///
    /// - Throws: `CancellationError` where the task is cancelled.
    public func sleep(for duration: Duration, file: StaticString = #fileID, line: Int = #line) async throws {
        try await sleepers.sleep(until: loop.now + duration, caller: "the sleep at \(file):\(line)")
    }

    /// Takes the controller away once it has sent all that it had sent before the host's next packet, as it had been in the
    /// recorded run: no packet tells of that. The host tries to reach it again and goes on in the recording where it was.
    ///
    /// - Throws: `CancellationError` where the task is cancelled.
    public func loseController() async throws {
        while position < recording.packets.count, recording.packets[position].direction == .controllerToHost {
            try await sleep(for: .milliseconds(1))
        }
        transport.lose()
    }

    /// Waits until all of the recording has passed.
    ///
    /// - Throws: `CancellationError` where the task is cancelled, as it is at the first difference.
    public func waitForEnd() async throws {
        while position < recording.packets.count { try await sleep(for: .milliseconds(1)) }
    }

    /// Opens an adapter on the recorded controller, runs `body` with it in this thread and closes it. To be called once.
    ///
    /// - Parameters:
    ///   - limit: how much of the replay's time it may take.
    ///   - configure: changes what the adapter is opened with.
    ///   - body: what the app did when the recording was made.
    /// - Throws: a ``ReplayDifference``, also where something of the recording is left; what `body` throws;
    ///   ``UnfinishedRun`` where it has not returned within `limit`.
    public func run<Value: Sendable>(
        limit: Duration = .seconds(3600),
        configure: (inout Adapter.Configuration) -> Void = { _ in },
        _ body: @escaping @Sendable (Adapter) async throws -> Value
    ) throws -> Value {
        var configuration = Adapter.Configuration()
        configure(&configuration)
        let settings = configuration
        do {
            let value = try loop.run(
                limit: limit,
                isAbandoned: { self.transport.difference != nil },
                whatIsAwaited: { self.sleepers.all.map { "\($0.caller)" } },
                body: { try await self.open(settings, body) }
            )
            transport.finish()
            if let difference { throw difference }
            return value
        } catch {
            // What the app makes of a host that has lost its controller is not what went wrong.
            throw difference ?? error
        }
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

/// An alarm until it goes off. Used on its loop only.
private final class AlarmInUse: @unchecked Sendable {
    // @unchecked: used on the thread that runs the loop only.

    var alarm: (any Alarm)?
}
