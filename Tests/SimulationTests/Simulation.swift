import BLE
import BluetoothHost
import BluetoothTesting

/// One run: a few devices that meet, talk and part, with what goes wrong meanwhile, all decided by a seed.
final class Simulation: @unchecked Sendable {
    /// What a run has come to.
    struct Outcome: Sendable {
        let seed: UInt64
        /// What has gone against the rules, first things first; empty where all is well.
        let violations: [String]
        /// Each device's HCI packets as a btsnoop file, by its name.
        let captures: [(name: String, bytes: [UInt8])]
        let operationCount: Int
        let errorCount: Int
        let deliveredCount: Int
        let duration: Duration
    }

    private let world: World
    private let ledger: Ledger
    private let dice: Dice
    private var stations: [Station] = []
    private var hosts: [BluetoothHost] = []

    private init(seed: UInt64, recordsCaptures: Bool) {
        world = World(seed: seed, recordsCaptures: recordsCaptures)
        ledger = Ledger(world: world)
        dice = Dice(world.makeGenerator())
    }

    /// Runs the seed's world to its end and looks for what is left of it.
    static func run(seed: UInt64, recordsCaptures: Bool = false) -> Outcome {
        var remains = WeakHosts()
        var outcome = runWorld(seed: seed, recordsCaptures: recordsCaptures, &remains)
        let count = remains.count
        if count > 0, outcome.violations.isEmpty {
            outcome = outcome.adding("\(count) host(s) are still in memory after the end")
        }
        return outcome
    }

    private static func runWorld(seed: UInt64, recordsCaptures: Bool, _ remains: inout WeakHosts) -> Outcome {
        let simulation = Simulation(seed: seed, recordsCaptures: recordsCaptures)
        simulation.run()
        for host in simulation.hosts { remains.add(host) }
        return Outcome(
            seed: seed,
            violations: simulation.ledger.violations,
            captures: simulation.world.devices.map { ($0.name, $0.capture) },
            operationCount: simulation.ledger.operationCount,
            errorCount: simulation.ledger.errorCount,
            deliveredCount: simulation.ledger.deliveredCount,
            duration: simulation.world.elapsed
        )
    }

    private func run() {
        do {
            try world.run(limit: .seconds(1800), afterEachStep: { self.checkStep() }) { [self] in
                try await bringUp()
                await live()
                await heal()
                await closeAdapters()
            }
        } catch {
            ledger.violate("\(error)")
        }
        for host in hosts { checkEnd(of: host) }
        world.close()
    }

    // MARK: Acts

    private func bringUp() async throws {
        let count = dice.number(in: 2...4)
        for index in 0..<count {
            let packetCount = UInt8(dice.number(in: 1...8))
            let packetLength = UInt16(dice.number(in: 27...251))
            let device = world.device("device\(index)") {
                $0.aclPacketCount = packetCount
                $0.aclDataLength = packetLength
            }
            let mtu = UInt16(dice.number(in: 23...517))
            let adapter = try await device.openAdapter { $0.mtu = mtu }
            hosts.append(adapter.host)
            let station = try await Station(
                index: index,
                device: device,
                adapter: adapter,
                ledger: ledger,
                storedLength: dice.number(in: 4...512)
            )
            stations.append(station)
            try await station.publish(world, random: world.makeGenerator())
            try await station.advertise(every: .milliseconds(dice.number(in: 20...300)))
        }
    }

    private func live() async {
        let (stations, world, ledger, dice) = (stations, world, ledger, dice)
        await withTaskGroup(of: Void.self) { group in
            for station in stations {
                group.addTask { [dice = dice.split()] in await station.sendValues(world, dice) }
            }
            if dice.chance(0.6) {
                let faults = Faults(world: world, stations: stations, dice: dice.split())
                group.addTask { await faults.run() }
            }
            await withTaskGroup(of: Void.self) { centrals in
                for station in stations where dice.chance(0.7) || station.index == 0 {
                    let task = CentralTask(
                        station: station,
                        others: stations.filter { $0.index != station.index },
                        world: world,
                        ledger: ledger,
                        dice: dice.split()
                    )
                    let rounds = dice.number(in: 1...2)
                    centrals.addTask { await task.run(rounds: rounds) }
                }
            }
            group.cancelAll()
        }
    }

    /// Ends all faults; every host must then come up again and be of use.
    private func heal() async {
        Faults(world: world, stations: stations, dice: dice).heal()
        for station in stations {
            let up: Void? = await ledger.operation("\(station.name) comes up again", within: .seconds(100)) {
                while !(await station.adapter.host.inspect().isOn) { try await world.sleep(for: .milliseconds(100)) }
            }
            if up == nil { return }
        }
        // Links whose peers are gone last until their supervision timeouts.
        try? await world.sleep(for: .seconds(33))
        guard let central = stations.first, let target = stations.last else { return }
        let value = await ledger.operation("\(central.name) reads \(target.name) at the end", within: .seconds(150)) {
            let peer = try await central.adapter.central.connect(to: target.address, timeout: .seconds(60))
            guard let handle = target.handle(of: Station.stored) else { throw BLEError.notFound("the value") }
            let value = try await peer.read(handle)
            await peer.disconnect()
            return value
        }
        if let value {
            if value.count != target.storedLength { ledger.violate("\(value.count) octets read at the end") }
        } else {
            ledger.violate("\(central.name) cannot read \(target.name) once all faults are gone")
        }
    }

    private func closeAdapters() async {
        for station in stations {
            _ = await ledger.operation("\(station.name) closes", within: .seconds(10)) { await station.adapter.close() }
        }
    }

    // MARK: Checks

    private func checkStep() {
        ledger.checkDeadlines()
        for (index, host) in hosts.enumerated() {
            if let contradiction = host.assumeIsolated({ $0.contradiction() }) {
                ledger.violate("device\(index): \(contradiction)")
            }
        }
    }

    private func checkEnd(of host: BluetoothHost) {
        world.loop.run(limit: .zero) {
            let inspection = host.assumeIsolated { $0.inspect() }
            if !inspection.isEmpty { ledger.violate("a closed host still holds something: \(inspection)") }
            return true
        }
    }
}

extension Simulation.Outcome {
    fileprivate func adding(_ violation: String) -> Simulation.Outcome {
        Simulation.Outcome(
            seed: seed,
            violations: violations + [violation],
            captures: captures,
            operationCount: operationCount,
            errorCount: errorCount,
            deliveredCount: deliveredCount,
            duration: duration
        )
    }
}

/// Hosts that nobody should hold any more.
private struct WeakHosts {
    private struct Reference {
        weak var host: BluetoothHost?
    }

    private var references: [Reference] = []

    mutating func add(_ host: BluetoothHost) { references.append(Reference(host: host)) }

    /// How many are still there.
    var count: Int { references.count { $0.host != nil } }
}
