import BLE
import BluetoothTesting
import Synchronization
import Testing

@Suite("Work that repeats without time passing")
struct StandingTimeTests {
    private static let turnLimit = 3000

    private static func run(_ body: @escaping @Sendable (World) async throws -> Void) throws {
        let world = World(turnLimit: turnLimit)
        defer { world.close() }
        try world.run { try await body(world) }
    }

    @Test func worldsOfUsersHaveTheDefaultLimit() {
        #expect(World().loop.turnLimit == SimulatedEventLoop.defaultTurnLimit)
    }

    @Test func loopThatOnlyYieldsEndsTheRun() {
        let error = #expect(throws: UnfinishedRun.self) {
            try Self.run { _ in
                while !Task.isCancelled { await Task.yield() }
            }
        }
        #expect(error?.turnsAtOneInstant == Self.turnLimit)
        #expect(error?.description.contains("\(Self.turnLimit) turns at one instant") == true)
    }

    @Test func scheduleWithoutAnIntervalEndsTheRun() {
        let error = #expect(throws: UnfinishedRun.self) {
            try Self.run { world in
                let eager = ScriptedCharacteristic(
                    "FFE1",
                    properties: [.notify],
                    schedule: .every(.zero) { [UInt8(truncatingIfNeeded: $0)] }
                )
                _ = try await world.peripheral("lamp", services: [ScriptedService("FFE0", [eager])])
                try await world.sleep(for: .seconds(1))
            }
        }
        #expect(error?.turnsAtOneInstant != nil)
    }

    @Test func loopThatIgnoresItsCancellationEndsTheRun() {
        let world = World(turnLimit: Self.turnLimit)
        let release = Release()
        #expect(throws: UnfinishedRun.self) {
            try world.run {
                while !release.isGiven { await Task.yield() }
            }
        }
        world.advance(by: .seconds(1))
        #expect(world.elapsed == .zero, "the loop still repeats")
        release.give()
        world.advance(by: .seconds(1))
        #expect(world.elapsed == .seconds(1))
        world.close()
    }

    @Test func turnsAreCountedForEachInstant() throws {
        try Self.run { world in
            for second in 1...4 {
                for _ in 0..<Self.turnLimit / 3 { await Task.yield() }
                try await world.sleep(for: .seconds(1))
                #expect(world.elapsed == .seconds(second))
            }
        }
    }

    /// Ends a loop that does not end when its task is cancelled.
    private final class Release: Sendable {
        private let state = Atomic(false)

        var isGiven: Bool { state.load(ordering: .relaxed) }

        func give() { state.store(true, ordering: .relaxed) }
    }
}
