import BluetoothTesting
import Foundation
import Testing

@Suite("A gateway for days")
struct GatewaySimulationTests {
    private static let environment = ProcessInfo.processInfo.environment

    private static func simulate(
        seed: UInt64,
        periods: Int,
        afterPeriod: @escaping @Sendable (GatewaySimulation.Outcome) -> Void = { _ in }
    ) throws -> GatewaySimulation.Outcome {
        try LeakCheck.run(seed: seed, limit: .seconds(periods * 7 * 3600 + 3600)) { world in
            try await GatewaySimulation(world: world).run(periods: periods, afterPeriod: afterPeriod)
        }
    }

    /// Costs a minute of processor time in a debug build, too much for each run of the tests.
    @Test(.enabled(if: environment["SIMULATION_DAYS"] != nil, "make simulate-month runs it"))
    func sixHoursWithFaultsLeaveNothing() throws {
        let outcome = try Self.simulate(seed: 30, periods: 1)
        #expect(outcome.violations == [], "\(outcome)")
        #expect(outcome.faults > 10 && outcome.connections > 10 && outcome.pairings > 3 && outcome.visits > 3)
        #expect(outcome.reads > 10 && outcome.values > 10 && outcome.reports > 10)
    }

    /// `SIMULATION_DAYS` is the number of days, and `SIMULATION_SEED` the seed.
    @Test(.enabled(if: environment["SIMULATION_DAYS"] != nil, "make simulate-month runs it"))
    func daysWithFaultsLeaveNothing() throws {
        let days = Self.environment["SIMULATION_DAYS"].flatMap(Int.init) ?? 30
        let seed = Self.environment["SIMULATION_SEED"].flatMap(UInt64.init) ?? 1
        let start = ContinuousClock().now
        let outcome = try Self.simulate(seed: seed, periods: days * 4) { outcome in
            let day = outcome.simulated / .seconds(86_400)
            print(String(format: "day %.2f, seed \(seed), after \(ContinuousClock().now - start): \(outcome)", day))
            fflush(nil)
        }
        #expect(outcome.violations == [])
    }
}
