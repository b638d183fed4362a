import BLE
import BluetoothTypes

/// The error of a run of a world that did not finish.
public struct UnfinishedRun: Error, CustomStringConvertible {
    /// The time limit of the run, in the world's time.
    public let limit: Duration
    /// The number of turns of the world's loop at one instant after which the run ended, because work repeated
    /// without time passing; nil if the run reached its time limit.
    public let turnsAtOneInstant: Int?
    /// The pending operations, one line each.
    public let awaited: [String]

    public var description: String {
        guard let turnsAtOneInstant else {
            let problem = "the run did not end within \(limit) of its world's time"
            guard awaited.isEmpty else { return problem + "; pending:" + listed(awaited) }
            return problem + "; it waits for an event that has not come, such as a notification or the end of a link, "
                + "or for something outside of the world"
        }
        let problem =
            "the run did not end: work repeats without time passing (\(turnsAtOneInstant) turns at one instant); "
            + "let it sleep in the world's time"
        return awaited.isEmpty ? problem : problem + "; also pending:" + listed(awaited)
    }

    private func listed(_ lines: [String]) -> String {
        lines.map { "\n  " + $0 }.joined()
    }
}

extension World {
    /// Creates a world, runs `body` in it and closes it.
    public static func run<Value: Sendable>(
        seed: UInt64 = 0,
        limit: Duration = .seconds(600),
        _ body: @escaping @Sendable (World) async throws -> Value
    ) throws -> Value {
        let world = World(seed: seed)
        defer { world.close() }
        return try world.run(limit: limit) { try await body(world) }
    }

    /// Runs `body` and all work in the world in this thread until `body` returns.
    ///
    /// - Parameters:
    ///   - limit: maximum time of the run, in the world's time.
    ///   - body: the program. Its child tasks run in the world, too.
    /// - Throws:
    ///   - any error of `body`
    ///   - ``UnfinishedRun`` if `body` has not returned within `limit`, or if work repeats without time passing:
    ///     1,000,000 turns of the world's loop at one instant. The task of `body` is then cancelled. A task that
    ///     ignores the cancellation stays unfinished.
    public func run<Value: Sendable>(
        limit: Duration = .seconds(600),
        _ body: @escaping @Sendable () async throws -> Value
    ) throws -> Value {
        try run(limit: limit, afterEachStep: {}, body)
    }

    /// - Parameter afterEachStep: called before each turn of the loop, so also after all work of one instant is done.
    package func run<Value: Sendable>(
        limit: Duration,
        afterEachStep: () -> Void,
        _ body: @escaping @Sendable () async throws -> Value
    ) throws -> Value {
        try loop.run(
            limit: limit,
            isAbandoned: {
                afterEachStep()
                return false
            },
            whatIsAwaited: whatIsAwaited,
            body: body
        )
    }

    /// The pending operations in the world, one line each.
    private func whatIsAwaited() -> [String] {
        let adapters = devices.flatMap { device in device.adapters.map { (name: device.name, adapter: $0) } }
        var lines = loop.whatIsAwaited(by: adapters)
        for sleep in pendingSleeps.all { lines.append("\(sleep.caller), until \(instant(sleep.deadline))") }
        return lines
    }

    /// Ends everything in the world: scripts, adapters, controllers. Tasks that wait in the world's time get a
    /// `CancellationError`. Call it between two runs, not in a body. The world must not be used afterwards.
    public func close() {
        let devices = devices
        let peripherals = peripherals
        pendingSleeps.cancelAll()
        try? run(limit: .seconds(120)) {
            for peripheral in peripherals { await peripheral.close() }
            for device in devices {
                for adapter in device.adapters { await adapter.close() }
            }
        }
        for device in devices { device.end() }
        // Pending work of controllers retains the air, and the air retains them.
        loop.run(for: .seconds(60))
        // Tasks may have begun to wait since then. A waiting task retains the world.
        pendingSleeps.cancelAll()
        loop.run(for: .zero)
    }

    /// What remains after ``close()``, one line each; empty if everything was released.
    package var remains: [String] {
        var lines = pendingSleeps.all.map { "\($0.caller) waits until \(instant($0.deadline))" }
        let counts = air.counts
        if counts.controllers > 0 { lines.append("\(counts.controllers) controllers are on the air") }
        if counts.actions > 0 { lines.append("\(counts.actions) actions of controllers wait") }
        if loop.alarmCount > 0 { lines.append("\(loop.alarmCount) alarms are set") }
        return lines
    }
}
