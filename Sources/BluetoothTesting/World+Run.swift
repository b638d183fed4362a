import BLE
import BluetoothHost
import BluetoothTypes

/// A run of a world did not come to its end.
public struct UnfinishedRun: Error, CustomStringConvertible {
    /// What it was to have ended within, in the world's time.
    public let limit: Duration
    /// What was waited for, a line each.
    public let awaited: [String]

    public var description: String {
        let lines = awaited.isEmpty ? ["something outside of the world"] : awaited
        return "the run did not end within \(limit) of its world's time; it waits for:\n"
            + lines.map { "  " + $0 }.joined(separator: "\n")
    }
}

extension World {
    /// Makes a world, runs `body` in it and closes it.
    public static func run<Value: Sendable>(
        seed: UInt64 = 0,
        limit: Duration = .seconds(600),
        _ body: @escaping @Sendable (World) async throws -> Value
    ) throws -> Value {
        let world = World(seed: seed)
        defer { world.close() }
        return try world.run(limit: limit) { try await body(world) }
    }

    /// Runs `body` in this thread, with all that happens in the world meanwhile, until it returns.
    ///
    /// - Parameter limit: how much of the world's time it may take.
    /// - Throws: what `body` throws; ``UnfinishedRun`` where it has not returned within `limit`, and its task is cancelled.
    public func run<Value: Sendable>(
        limit: Duration = .seconds(600),
        _ body: @escaping @Sendable () async throws -> Value
    ) throws -> Value {
        try run(limit: limit, afterEachStep: {}, body)
    }

    /// - Parameter afterEachStep: is called whenever all that was to be done at one moment has been done.
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

    /// What is waited for in the world, a line each.
    private func whatIsAwaited() -> [String] {
        var lines: [String] = []
        loop.run(limit: .zero) {
            lines = []
            for device in devices {
                for adapter in device.adapters {
                    lines += adapter.host.assumeIsolated { $0.whatIsAwaited() }.map { "\(device.name): \($0)" }
                }
            }
            return true
        }
        for sleeper in sleepers.all { lines.append("\(sleeper.caller), until \(instant(sleeper.deadline))") }
        return lines
    }

    /// Ends all that goes on in the world: scripts, adapters, controllers. It is not to be used afterwards.
    public func close() {
        let devices = devices
        let peripherals = peripherals
        try? run(limit: .seconds(120)) {
            for peripheral in peripherals { await peripheral.close() }
            for device in devices {
                for adapter in device.adapters { await adapter.close() }
            }
        }
        for device in devices { device.end() }
        // What controllers still have to do holds on to the air, and the air to them.
        loop.run(for: .seconds(60))
    }
}
