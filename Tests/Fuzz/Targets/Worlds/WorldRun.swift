import BLE
import BLEHCI
import BluetoothHost
import BluetoothTesting

/// Runs a program in a simulated world, which is then closed. Traps if the program waits indefinitely or throws.
///
/// A program throws only errors of its setup, which no input can cause. It handles the errors of fuzzed calls itself.
func runWorld(_ program: @escaping @Sendable (World) async throws -> Void) {
    let world = World(seed: 1)
    defer { world.close() }
    do {
        try world.run(limit: .seconds(3600)) { try await program(world) }
    } catch {
        stopFuzzing(error)
    }
}

/// Traps because of an error that no input can cause, or because a run has not finished.
func stopFuzzing(_ error: any Error) -> Never {
    fatalError(error is UnfinishedRun ? "\(error)" : "the setup of the fuzz target has failed: \(error)")
}

/// Performs a step of the setup, which no input can make fail. Traps if it throws.
func setUp<Value>(_ step: () async throws -> Value) async -> Value {
    do {
        return try await step()
    } catch {
        stopFuzzing(error)
    }
}

/// Performs a step of the setup, which no input can make fail. Traps if it throws.
func setUpAtOnce<Value>(_ step: () throws -> Value) -> Value {
    do {
        return try step()
    } catch {
        stopFuzzing(error)
    }
}

/// Traps if the state of a host is inconsistent.
func requireConsistency(of adapter: Adapter) async {
    let contradiction = await adapter.host.contradiction()
    require(contradiction == nil, contradiction ?? "")
}

/// Closes an adapter. Traps if its host holds anything afterwards.
func closeCompletely(_ adapter: Adapter) async {
    await adapter.close()
    let held = await adapter.host.inspect()
    require(held.isEmpty, "a closed host holds \(held)")
}

/// The kinds of controllers that differ in their commands for advertising, scanning and private addresses.
enum ControllerFeatures {
    static func features(_ number: UInt8) -> LEFeatures {
        let version: LEFeatures = number & 1 == 0 ? .all : .bluetooth42
        return number & 2 == 0 ? version : version.subtracting(.llPrivacy)
    }
}

/// Consecutive bytes of a packet as numbers; zeros after its end.
struct Choices {
    private var rest: ArraySlice<UInt8>

    init(_ octets: [UInt8]) {
        rest = octets[...]
    }

    mutating func next() -> UInt8 {
        rest.popFirst() ?? 0
    }

    mutating func next(below limit: UInt8) -> UInt8 {
        next() % limit
    }

    /// All bytes that are left.
    mutating func remaining() -> [UInt8] {
        defer { rest = [] }
        return Array(rest)
    }
}

/// The concurrent calls of a script's apps.
struct ConcurrentCalls {
    /// Maximum number of calls in one script, because some take long.
    private static let limit = 24

    let world: World
    private var tasks: [Task<Void, Never>] = []

    init(world: World) {
        self.world = world
    }

    /// Begins a call, unless there are too many.
    mutating func begin(_ call: @escaping @Sendable () async -> Void) {
        guard tasks.count < ConcurrentCalls.limit else { return }
        tasks.append(Task(executorPreference: world.taskExecutor, operation: call))
    }

    /// Takes the calls of another app, to end them.
    mutating func add(_ other: ConcurrentCalls) {
        tasks += other.tasks
    }

    /// Cancels a call; it may have ended.
    func cancel(_ number: UInt8) {
        guard !tasks.isEmpty else { return }
        tasks[Int(number) % tasks.count].cancel()
    }

    /// Cancels all calls and waits until they have ended.
    func end() async {
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
    }
}
